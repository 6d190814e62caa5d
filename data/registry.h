// Datasets by name, as a config file asks for them.
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
//
// "mnist" with only the t10k files in the folder splits those: the first 8,000
// to train, the last 2,000 to test. A folder without test files gives training
// samples alone. Images become f32 in [0, 1], then, with
// `normalize`, mean 0 and variance 1 per channel by fixed numbers.

#ifndef DATA_REGISTRY_H_
#define DATA_REGISTRY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_system.h"
#include "data/dataset.h"

namespace troupe::data {

struct DatasetOptions {
  std::string kind = "glyphs";
  std::string path;  // folder; for the kinds that read files
  // Use the first so many samples of a split; 0 means all there are (for
  // generated data, the numbers above).
  std::int64_t train_count = 0;
  std::int64_t test_count = 0;
  std::uint64_t seed = 0;  // of generated data and of augmentation
  bool normalize = true;   // images
  bool augment = false;    // "cifar10" train split: random shift and mirror
  // "synthetic" only.
  nn::Shape input_shape = {10};
  std::int64_t num_classes = 10;  // 0: regression
  std::int64_t target_dim = 1;    // of regression
  // Where the files are; null: the real disk. Used by OpenDataset() alone.
  base::FileSystem* files = nullptr;

  // What needs no file: a known kind, a path where it reads files, no negative
  // counts. Errors blame the field (base/field_error.h).
  absl::Status Validate() const;
};

struct DataSplits {
  DatasetPtr train;
  DatasetPtr test;  // null: the files have training samples only
};

// The kinds above, for messages and --help.
std::vector<std::string> DatasetKinds();

// What tells these samples from others of as many, for checkpoints: {"kind":
// "glyphs", "normalize": "true", "seed": "0"}. The path is not part of it,
// since it may change, nor are the numbers of samples: a sampler knows those.
std::map<std::string, std::string> DescribeData(const DatasetOptions& options);

//   kInvalidArgument: unknown kind (the message lists them), no path, more
//                     samples asked for than there are, bad sizes, a split that
//                     is empty or unlike the other.
//   kNotFound and others: from the files; the message names file and offset.
// Errors blame the field of `options` that they are about.
absl::StatusOr<DataSplits> OpenDataset(const DatasetOptions& options);

}  // namespace troupe::data

#endif  // DATA_REGISTRY_H_
