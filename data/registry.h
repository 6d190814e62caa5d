// Opens datasets by name, as a config file gives it.
//
//   DatasetOptions options;
//   options.kind = "mnist";
//   options.path = "data/mnist";              // folder with the IDX files
//   TROUPE_ASSIGN_OR_RETURN(DataSplits splits, OpenDataset(options));
//   splits.train->size(); splits.train->spec().ToString();
//
// kind         needs           samples (train, test)    per sample
// "glyphs"     -               16384, 2048              28x28x1, 10 classes
// "mnist"      path: folder    60000, 10000 or fewer    28x28x1, 10 classes
// "cifar10"    path: folder    50000, 10000             32x32x3, 10 classes
// "synthetic"  -               1024, 256                input_shape
// "text"       - or path: file windows of tokens        i64 text.context
// "tokens"     path: file or   windows of tokens        i64 text.context
//              folder
// "images"     path: folder    its images               images.size squared
//
// "mnist" with only the t10k files in the folder splits those: the first 8,000
// to train, the last 2,000 to test. A folder without test files gives training
// samples alone. Images become f32 in [0, 1], then, with
// `normalize`, mean 0 and variance 1 per channel by fixed numbers.
// text/text_splits.h and images/image_splits.h describe the last three kinds.

#ifndef DATA_REGISTRY_H_
#define DATA_REGISTRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "data/dataset.h"
#include "data/images/image_splits.h"
#include "data/sample_weights.h"
#include "data/split_options.h"
#include "data/text/text_splits.h"
#include "data/text/tokenizer.h"

namespace troupe::data {

// Options that take training samples away, or weigh them.
struct TrainingPartOptions {
  // Part of them, in [0, 1), that is cut out at random, by the seed, to test
  // with in place of the data's own test part; not of "text" and "tokens".
  double validation_share = 0;
  // File of a weight for each training sample (ReadSampleWeights()), by which
  // they are drawn.
  std::string sample_weights;
  // Whether samples are drawn so that each class comes equally often.
  bool balance_classes = false;
  // Set: only test samples are wanted, to evaluate a model that was trained on
  // data of this DataSplits::content, or on unknown ones if it is empty.
  // Training samples are then read only where test samples are cut from them,
  // and DataSplits::train is null.
  std::optional<std::string> trained_on = {};
};

struct DatasetOptions {
  std::string kind = "glyphs";
  std::string path;  // file or folder; for the kinds that read files
  // Number of samples of a split to use, from the first on; 0: all (for
  // generated data, the numbers above).
  std::int64_t train_count = 0;
  std::int64_t test_count = 0;
  // Seed of generated data, augmentation, random windows and random splits.
  std::uint64_t seed = 0;
  // Part that is held back for validation, in [0, 1), by "text", "tokens" and
  // "images" without test files.
  double val_fraction = SplitOptions().val_fraction;
  bool normalize = true;  // images
  // Whether to augment the train split: of "cifar10" by random shift and
  // mirror; of "images" by random resized crop, mirror and colours.
  bool augment = false;
  TrainingPartOptions part;
  TextOptions text;     // "text" and "tokens"
  ImageOptions images;  // "images"; normalize and augment are those above
  // "synthetic" only.
  nn::Shape input_shape = {10};
  std::int64_t num_classes = 10;  // 0: regression
  std::int64_t target_dim = 1;    // length of regression targets
  // File system of the files; null: the real disk. Outlives the datasets.
  base::FileSystem* files = nullptr;

  // Checks what needs no file: a known kind, a path for a kind that reads
  // files, no negative counts, valid options. Errors blame the field
  // (base/field_error.h).
  absl::Status Validate() const;
};

struct DataSplits {
  DatasetPtr train;  // null with TrainingPartOptions::trained_on
  DatasetPtr test;   // null: the files have training samples only
  std::vector<std::string> classes = {};  // names of classes, for "images"
  TokenizerPtr tokenizer = nullptr;       // for "text", "tokens" with a path
  SampleWeightsPtr weights = nullptr;     // null: all samples once an epoch
  // Sentences for the user about what was assumed, or not read, of the files.
  std::vector<std::string> notes = {};
  // Hash of the training samples of kinds that read files (content_hash.h): of
  // all of them or, where that is much to read, of samples. Empty if they are
  // not read.
  std::string content = {};
};

// Returns the kinds above, for messages and --help.
std::vector<std::string> DatasetKinds();

// Returns the shape of a sample if it is known before files are opened: the
// classes of "images" and vocabularies from files are not.
std::optional<SampleSpec> KnownSampleSpec(const DatasetOptions& options);

//   kInvalidArgument: unknown kind (the message lists them), no path, more
//                     samples asked for than there are, bad sizes, a split that
//                     is empty or unlike the other.
//   kNotFound and others: from the files; the message names file and offset.
// Errors blame the field of `options` that they are about.
absl::StatusOr<DataSplits> OpenDataset(const DatasetOptions& options);

// Opens the images `paths` with the transforms of test samples for `options`,
// of kind "images"; `classes` are those of its splits. All labels are 0.
absl::StatusOr<DatasetPtr> OpenImagesAt(const DatasetOptions& options,
                                        std::vector<std::string> paths,
                                        std::vector<std::string> classes);

}  // namespace troupe::data

#endif  // DATA_REGISTRY_H_
