#include "data/registry.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "data/cifar10.h"
#include "data/glyphs.h"
#include "data/image_dataset.h"
#include "data/mnist.h"
#include "data/synthetic.h"
#include "data/transform.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kGlyphTrain = 16384;
constexpr std::int64_t kGlyphTest = 2048;
constexpr std::int64_t kSyntheticTrain = 1024;
constexpr std::int64_t kSyntheticTest = 256;
// Of every 10 images of MNIST's t10k files, where they serve as both splits.
constexpr std::int64_t kTrainTenths = 8;

std::int64_t CountOr(std::int64_t count, std::int64_t otherwise) {
  return count == 0 ? otherwise : count;
}

// ToFloat(), then Normalize() where asked for.
Transforms PixelTransforms(const DatasetOptions& options,
                           std::vector<float> mean, std::vector<float> stddev) {
  Transforms transforms = {ToFloat()};
  if (options.normalize) {
    transforms.push_back(Normalize(std::move(mean), std::move(stddev)));
  }
  return transforms;
}

// The first `count` of images [begin, end), or all of those for 0.
absl::StatusOr<DatasetPtr> Take(const ByteImages& images, std::int64_t begin,
                                std::int64_t end, const char* key,
                                std::int64_t count, Transforms transforms) {
  if (count > end - begin) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, " (", count, ") is more than the ", end - begin,
                     " samples that the files have for it"));
  }
  TROUPE_ASSIGN_OR_RETURN(
      ByteImages taken,
      TakeImages(images, begin, begin + CountOr(count, end - begin)));
  return MakeImageDataset(std::move(taken), std::move(transforms));
}

// A split of generated data; errors begin with `key`, its number of samples.
absl::StatusOr<DatasetPtr> Generated(const char* key,
                                     absl::StatusOr<DatasetPtr> made) {
  if (made.ok()) return made;
  return absl::Status(made.status().code(),
                      absl::StrCat(key, ": ", made.status().message()));
}

absl::StatusOr<DataSplits> OpenGlyphs(const DatasetOptions& options) {
  GlyphOptions glyphs;
  glyphs.seed = options.seed;
  const Transforms transforms =
      PixelTransforms(options, {kGlyphMean}, {kGlyphStddev});
  DataSplits splits;
  glyphs.count = CountOr(options.train_count, kGlyphTrain);
  TROUPE_ASSIGN_OR_RETURN(
      splits.train,
      Generated("train_count", MakeGlyphDataset(glyphs, "train", transforms)));
  glyphs.count = CountOr(options.test_count, kGlyphTest);
  TROUPE_ASSIGN_OR_RETURN(
      splits.test,
      Generated("test_count", MakeGlyphDataset(glyphs, "test", transforms)));
  return splits;
}

absl::StatusOr<DataSplits> OpenMnist(const DatasetOptions& options) {
  const Transforms transforms =
      PixelTransforms(options, {kMnistMean}, {kMnistStddev});
  TROUPE_ASSIGN_OR_RETURN(const ByteImages test,
                          ReadMnist(options.path, MnistPart::kTest));
  const std::int64_t count = static_cast<std::int64_t>(test.labels.size());
  DataSplits splits;
  std::int64_t test_begin = 0;
  if (HasMnist(options.path, MnistPart::kTrain)) {
    TROUPE_ASSIGN_OR_RETURN(const ByteImages train,
                            ReadMnist(options.path, MnistPart::kTrain));
    TROUPE_ASSIGN_OR_RETURN(
        splits.train,
        Take(train, 0, static_cast<std::int64_t>(train.labels.size()),
             "train_count", options.train_count, transforms));
  } else {
    test_begin = count * kTrainTenths / 10;
    TROUPE_ASSIGN_OR_RETURN(splits.train,
                            Take(test, 0, test_begin, "train_count",
                                 options.train_count, transforms));
  }
  TROUPE_ASSIGN_OR_RETURN(splits.test,
                          Take(test, test_begin, count, "test_count",
                               options.test_count, transforms));
  return splits;
}

absl::StatusOr<DataSplits> OpenCifar10(const DatasetOptions& options) {
  const Transforms transforms =
      PixelTransforms(options, Cifar10Mean(), Cifar10Stddev());
  Transforms augmented = transforms;
  if (options.augment) {
    augmented.insert(augmented.begin(),
                     {RandomShift(/*pixels_max=*/4, options.seed),
                      RandomMirror(options.seed)});
  }
  TROUPE_ASSIGN_OR_RETURN(const ByteImages train,
                          ReadCifar10(options.path, Cifar10Part::kTrain));
  TROUPE_ASSIGN_OR_RETURN(const ByteImages test,
                          ReadCifar10(options.path, Cifar10Part::kTest));
  DataSplits splits;
  TROUPE_ASSIGN_OR_RETURN(
      splits.train,
      Take(train, 0, static_cast<std::int64_t>(train.labels.size()),
           "train_count", options.train_count, augmented));
  TROUPE_ASSIGN_OR_RETURN(
      splits.test, Take(test, 0, static_cast<std::int64_t>(test.labels.size()),
                        "test_count", options.test_count, transforms));
  return splits;
}

absl::StatusOr<DataSplits> OpenSynthetic(const DatasetOptions& options) {
  SyntheticOptions synthetic;
  synthetic.input_shape = options.input_shape;
  synthetic.num_classes = options.num_classes;
  synthetic.target_dim = options.target_dim;
  synthetic.seed = options.seed;
  DataSplits splits;
  synthetic.count = CountOr(options.train_count, kSyntheticTrain);
  TROUPE_ASSIGN_OR_RETURN(
      splits.train,
      Generated("train_count", MakeSyntheticDataset(synthetic, "train")));
  synthetic.count = CountOr(options.test_count, kSyntheticTest);
  TROUPE_ASSIGN_OR_RETURN(
      splits.test,
      Generated("test_count", MakeSyntheticDataset(synthetic, "test")));
  return splits;
}

struct Kind {
  const char* name;
  bool reads_files;
  bool has_images;
  absl::StatusOr<DataSplits> (*open)(const DatasetOptions&);
};

constexpr Kind kKinds[] = {
    {"glyphs", /*reads_files=*/false, /*has_images=*/true, OpenGlyphs},
    {"mnist", /*reads_files=*/true, /*has_images=*/true, OpenMnist},
    {"cifar10", /*reads_files=*/true, /*has_images=*/true, OpenCifar10},
    {"synthetic", /*reads_files=*/false, /*has_images=*/false, OpenSynthetic},
};

// Files of one folder may still be of two data sets.
absl::Status CheckSplits(const char* kind, const DataSplits& splits) {
  const Dataset& train = *splits.train;
  const Dataset& test = *splits.test;
  if (train.size() < 1 || test.size() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset \"", kind, "\" has ", train.size(), " training and ",
        test.size(), " test samples here; it needs at least one of each"));
  }
  if (!(train.spec() == test.spec())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dataset \"", kind, "\" has training samples ", train.spec().ToString(),
        " and test samples ", test.spec().ToString(),
        " here; give files of one data set"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> DatasetKinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  return names;
}

std::map<std::string, std::string> DescribeData(const DatasetOptions& options) {
  std::map<std::string, std::string> data = {{"kind", options.kind}};
  for (const Kind& kind : kKinds) {
    if (options.kind != kind.name) continue;
    if (!kind.reads_files) data["seed"] = absl::StrCat(options.seed);
    if (kind.has_images) {
      data["normalize"] = options.normalize ? "true" : "false";
    }
  }
  return data;
}

absl::StatusOr<DataSplits> OpenDataset(const DatasetOptions& options) {
  if (options.train_count < 0 || options.test_count < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("train_count (", options.train_count, ") and test_count (",
                     options.test_count, ") are not negative; 0 means all"));
  }
  for (const Kind& kind : kKinds) {
    if (options.kind != kind.name) continue;
    if (kind.reads_files && options.path.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dataset \"", kind.name, "\" needs a path: the folder of its files"));
    }
    TROUPE_ASSIGN_OR_RETURN(DataSplits splits, kind.open(options));
    TROUPE_RETURN_IF_ERROR(CheckSplits(kind.name, splits));
    return splits;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown dataset \"", options.kind, "\"; known are ",
                   absl::StrJoin(DatasetKinds(), ", ")));
}

}  // namespace troupe::data
