#include "data/registry.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/field_error.h"
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
// So many of every 10 images of MNIST's t10k files train, where these serve as
// both splits.
constexpr std::int64_t kTrainTenths = 8;

constexpr auto kTrainCount = &DatasetOptions::train_count;
constexpr auto kTestCount = &DatasetOptions::test_count;

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

// The first options.*kCount of images [begin, end), or all of those for 0.
template <auto kCount>
absl::StatusOr<DatasetPtr> Take(const DatasetOptions& options,
                                const ByteImages& images, std::int64_t begin,
                                std::int64_t end, Transforms transforms) {
  const std::int64_t count = options.*kCount;
  if (count > end - begin) {
    return base::FieldError<kCount>(absl::StrCat(
        base::FieldName<kCount>(), " = ", count, " is more than the ",
        end - begin, " samples that the files have for it"));
  }
  TROUPE_ASSIGN_OR_RETURN(
      ByteImages taken,
      TakeImages(images, begin, begin + CountOr(count, end - begin)));
  return MakeImageDataset(std::move(taken), std::move(transforms));
}

// A split of generated data. Its errors are about the number of samples, or
// where `kOthers` are given, about the sizes there.
template <auto kCount, auto... kOthers>
absl::StatusOr<DatasetPtr> Generated(absl::StatusOr<DatasetPtr> made) {
  if (made.ok()) return made;
  return base::WithFields<kCount, kOthers...>(absl::Status(
      made.status().code(),
      absl::StrCat(base::FieldName<kCount>(), ": ", made.status().message())));
}

// The test split of files, of which there may be none: null then.
absl::StatusOr<DatasetPtr> TakeTest(const DatasetOptions& options,
                                    const ByteImages& images,
                                    std::int64_t begin, Transforms transforms) {
  const auto end = static_cast<std::int64_t>(images.labels.size());
  if (end == 0 && options.test_count == 0) return nullptr;
  return Take<kTestCount>(options, images, begin, end, std::move(transforms));
}

absl::StatusOr<DataSplits> OpenGlyphs(const DatasetOptions& options) {
  GlyphOptions glyphs;
  glyphs.seed = options.seed;
  const Transforms transforms =
      PixelTransforms(options, {kGlyphMean}, {kGlyphStddev});
  DataSplits splits;
  glyphs.count = CountOr(options.train_count, kGlyphTrain);
  TROUPE_ASSIGN_OR_RETURN(splits.train, Generated<kTrainCount>(MakeGlyphDataset(
                                            glyphs, "train", transforms)));
  glyphs.count = CountOr(options.test_count, kGlyphTest);
  TROUPE_ASSIGN_OR_RETURN(splits.test, Generated<kTestCount>(MakeGlyphDataset(
                                           glyphs, "test", transforms)));
  return splits;
}

absl::StatusOr<DataSplits> OpenMnist(const DatasetOptions& options) {
  const Transforms transforms =
      PixelTransforms(options, {kMnistMean}, {kMnistStddev});
  const bool has_train =
      HasMnist(*options.files, options.path, MnistPart::kTrain);
  ByteImages test;
  if (!has_train || HasMnist(*options.files, options.path, MnistPart::kTest)) {
    TROUPE_ASSIGN_OR_RETURN(
        test, ReadMnist(*options.files, options.path, MnistPart::kTest));
  }
  DataSplits splits;
  std::int64_t test_begin = 0;
  if (has_train) {
    TROUPE_ASSIGN_OR_RETURN(
        const ByteImages train,
        ReadMnist(*options.files, options.path, MnistPart::kTrain));
    TROUPE_ASSIGN_OR_RETURN(
        splits.train,
        Take<kTrainCount>(options, train, 0,
                          static_cast<std::int64_t>(train.labels.size()),
                          transforms));
  } else {
    test_begin =
        static_cast<std::int64_t>(test.labels.size()) * kTrainTenths / 10;
    TROUPE_ASSIGN_OR_RETURN(
        splits.train,
        Take<kTrainCount>(options, test, 0, test_begin, transforms));
  }
  TROUPE_ASSIGN_OR_RETURN(splits.test,
                          TakeTest(options, test, test_begin, transforms));
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
  TROUPE_ASSIGN_OR_RETURN(
      const ByteImages train,
      ReadCifar10(*options.files, options.path, Cifar10Part::kTrain));
  ByteImages test;
  if (HasCifar10(*options.files, options.path, Cifar10Part::kTest)) {
    TROUPE_ASSIGN_OR_RETURN(
        test, ReadCifar10(*options.files, options.path, Cifar10Part::kTest));
  }
  DataSplits splits;
  TROUPE_ASSIGN_OR_RETURN(
      splits.train,
      Take<kTrainCount>(options, train, 0,
                        static_cast<std::int64_t>(train.labels.size()),
                        augmented));
  TROUPE_ASSIGN_OR_RETURN(splits.test,
                          TakeTest(options, test, /*begin=*/0, transforms));
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
      (Generated<kTrainCount, &DatasetOptions::input_shape,
                 &DatasetOptions::num_classes, &DatasetOptions::target_dim>(
          MakeSyntheticDataset(synthetic, "train"))));
  synthetic.count = CountOr(options.test_count, kSyntheticTest);
  TROUPE_ASSIGN_OR_RETURN(
      splits.test,
      (Generated<kTestCount, &DatasetOptions::input_shape,
                 &DatasetOptions::num_classes, &DatasetOptions::target_dim>(
          MakeSyntheticDataset(synthetic, "test"))));
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

// Null where there is none of that name.
const Kind* FindKind(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

template <auto kCount>
absl::Status CheckCount(const DatasetOptions& options) {
  if (options.*kCount >= 0) return absl::OkStatus();
  return base::FieldError<kCount>(
      absl::StrCat(base::FieldName<kCount>(), " = ", options.*kCount,
                   ": must be at least 0, which means all"));
}

// Files may hold nothing, and those of one folder may be of two data sets.
absl::Status CheckSplits(const char* kind, const DataSplits& splits) {
  const Dataset& train = *splits.train;
  if (train.size() < 1) {
    return base::FieldError<&DatasetOptions::path>(
        absl::StrCat("dataset \"", kind, "\" has no training samples here"));
  }
  if (splits.test == nullptr) return absl::OkStatus();
  const Dataset& test = *splits.test;
  if (!(train.spec() == test.spec())) {
    return base::FieldError<&DatasetOptions::path>(absl::StrCat(
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
  const Kind* kind = FindKind(options.kind);
  if (kind == nullptr) return data;
  if (!kind->reads_files) data["seed"] = absl::StrCat(options.seed);
  if (kind->has_images) {
    data["normalize"] = options.normalize ? "true" : "false";
  }
  return data;
}

absl::Status DatasetOptions::Validate() const {
  const Kind* found = FindKind(kind);
  if (found == nullptr) {
    return base::FieldError<&DatasetOptions::kind>(
        absl::StrCat(base::FieldName<&DatasetOptions::kind>(), " = \"", kind,
                     "\": must be one of \"",
                     absl::StrJoin(DatasetKinds(), "\", \""), "\""));
  }
  if (found->reads_files && path.empty()) {
    return base::FieldError<&DatasetOptions::kind, &DatasetOptions::path>(
        absl::StrCat(base::FieldName<&DatasetOptions::kind>(), " = \"", kind,
                     "\" needs ", base::FieldName<&DatasetOptions::path>(),
                     ", the folder of its files"));
  }
  TROUPE_RETURN_IF_ERROR(CheckCount<kTrainCount>(*this));
  return CheckCount<kTestCount>(*this);
}

absl::StatusOr<DataSplits> OpenDataset(const DatasetOptions& options) {
  TROUPE_RETURN_IF_ERROR(options.Validate());
  const Kind& kind = *FindKind(options.kind);
  base::PosixFileSystem disk;
  DatasetOptions with_files = options;
  if (options.files == nullptr) with_files.files = &disk;
  absl::StatusOr<DataSplits> splits = kind.open(with_files);
  if (!splits.ok()) {
    return kind.reads_files
               ? base::WithFields<&DatasetOptions::path>(splits.status())
               : splits.status();
  }
  TROUPE_RETURN_IF_ERROR(CheckSplits(kind.name, *splits));
  return splits;
}

}  // namespace troupe::data
