#include "data/registry.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/field_error.h"
#include "data/cifar10.h"
#include "data/content_hash.h"
#include "data/image_dataset.h"
#include "data/mnist.h"
#include "data/subset.h"
#include "data/synthetic/glyphs.h"
#include "data/synthetic/synthetic.h"
#include "data/text/byte_tokenizer.h"
#include "data/text/token_windows.h"
#include "data/training_part.h"
#include "data/transform.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kGlyphTrain = 16384;
constexpr std::int64_t kGlyphTest = 2048;
constexpr std::int64_t kSyntheticTrain = 1024;
constexpr std::int64_t kSyntheticTest = 256;
// Number of every 10 images of MNIST's t10k files that are training samples, if
// these files serve as both splits.
constexpr std::int64_t kTrainTenths = 8;

// The file system, shared with datasets that read from it later.
using FilesPtr = std::shared_ptr<base::FileSystem>;

FilesPtr FilesOf(const DatasetOptions& options) {
  if (options.files == nullptr) {
    return std::make_shared<base::PosixFileSystem>();
  }
  return FilesPtr(options.files, [](auto*) {});  // the caller owns it
}

constexpr auto kTrainCount = &DatasetOptions::train_count;
constexpr auto kTestCount = &DatasetOptions::test_count;

std::int64_t CountOr(std::int64_t count, std::int64_t otherwise) {
  return count == 0 ? otherwise : count;
}

// Returns ToFloat(), then Normalize() if `options` ask for it.
Transforms PixelTransforms(const DatasetOptions& options,
                           std::vector<float> mean, std::vector<float> stddev) {
  Transforms transforms = {ToFloat()};
  if (options.normalize) {
    transforms.push_back(Normalize(std::move(mean), std::move(stddev)));
  }
  return transforms;
}

// Returns the error for a count above the `there` samples that exist.
template <auto kCount>
absl::Status TooMany(const DatasetOptions& options, std::int64_t there) {
  return base::FieldError<kCount>(absl::StrCat(
      base::FieldName<kCount>(), " = ", options.*kCount, " is more than the ",
      there,
      " samples that the files have for it; lower it, or set 0 for all"));
}

// Returns the first options.*kCount of images [begin, end), or all for 0.
template <auto kCount>
absl::StatusOr<DatasetPtr> Take(const DatasetOptions& options,
                                const ByteImages& images, std::int64_t begin,
                                std::int64_t end, Transforms transforms) {
  const std::int64_t count = options.*kCount;
  if (count > end - begin) return TooMany<kCount>(options, end - begin);
  TROUPE_ASSIGN_OR_RETURN(
      ByteImages taken,
      TakeImages(images, begin, begin + CountOr(count, end - begin)));
  return MakeImageDataset(std::move(taken), std::move(transforms));
}

// Returns a split of generated data, or its error with the number of samples
// and the fields `kOthers` to blame.
template <auto kCount, auto... kOthers>
absl::StatusOr<DatasetPtr> Generated(absl::StatusOr<DatasetPtr> made) {
  if (made.ok()) return made;
  return base::WithFields<kCount, kOthers...>(absl::Status(
      made.status().code(),
      absl::StrCat(base::FieldName<kCount>(), ": ", made.status().message())));
}

// Returns DataSplits::content of images in memory.
std::string HashOf(const ByteImages& images) {
  ContentHash hash;
  hash.Add(images.pixels);
  hash.Add(images.labels);
  return hash.ToString();
}

// Returns the test split of files; null if there are none.
absl::StatusOr<DatasetPtr> TakeTest(const DatasetOptions& options,
                                    const ByteImages& images,
                                    std::int64_t begin, Transforms transforms) {
  const auto end = static_cast<std::int64_t>(images.labels.size());
  if (end == 0 && options.test_count == 0) return nullptr;
  return Take<kTestCount>(options, images, begin, end, std::move(transforms));
}

// Sets the training split of files, all of their images, and the content.
absl::Status TakeTraining(const DatasetOptions& options,
                          const absl::StatusOr<ByteImages>& images,
                          Transforms transforms, DataSplits& splits) {
  TROUPE_RETURN_IF_ERROR(images.status());
  splits.content = HashOf(*images);
  const auto end = static_cast<std::int64_t>(images->labels.size());
  TROUPE_ASSIGN_OR_RETURN(splits.train,
                          Take<kTrainCount>(options, *images, /*begin=*/0, end,
                                            std::move(transforms)));
  return absl::OkStatus();
}

absl::StatusOr<DataSplits> OpenGlyphs(const DatasetOptions& options,
                                      const FilesPtr&) {
  GlyphOptions glyphs;
  glyphs.seed = options.seed;
  const Transforms transforms =
      PixelTransforms(options, {kGlyphMean}, {kGlyphStddev});
  DataSplits splits;
  if (ReadsTraining(options)) {
    glyphs.count = CountOr(options.train_count, kGlyphTrain);
    TROUPE_ASSIGN_OR_RETURN(
        splits.train,
        Generated<kTrainCount>(MakeGlyphDataset(glyphs, "train", transforms)));
  }
  glyphs.count = CountOr(options.test_count, kGlyphTest);
  TROUPE_ASSIGN_OR_RETURN(splits.test, Generated<kTestCount>(MakeGlyphDataset(
                                           glyphs, "test", transforms)));
  return splits;
}

absl::StatusOr<DataSplits> OpenMnist(const DatasetOptions& options,
                                     const FilesPtr& files) {
  const Transforms transforms =
      PixelTransforms(options, {kMnistMean}, {kMnistStddev});
  const bool has_train = HasMnist(*files, options.path, MnistPart::kTrain);
  ByteImages test;
  if (!has_train || HasMnist(*files, options.path, MnistPart::kTest)) {
    TROUPE_ASSIGN_OR_RETURN(test,
                            ReadMnist(*files, options.path, MnistPart::kTest));
  }
  DataSplits splits;
  const std::string folder = FindMnist(*files, options.path);
  if (folder != options.path) {
    splits.notes.push_back(absl::StrCat("MNIST is read from ", folder));
  }
  // The test files alone serve as both parts. A model that was trained on
  // others is evaluated on all of them.
  const std::string& trained_on = options.part.trained_on.value_or("");
  const bool is_shared =
      !has_train && (trained_on.empty() || trained_on == HashOf(test));
  std::int64_t test_begin = 0;
  if (is_shared) {
    test_begin =
        static_cast<std::int64_t>(test.labels.size()) * kTrainTenths / 10;
    splits.content = HashOf(test);
    TROUPE_ASSIGN_OR_RETURN(
        splits.train,
        Take<kTrainCount>(options, test, 0, test_begin, transforms));
  } else if (ReadsTraining(options)) {
    TROUPE_RETURN_IF_ERROR(TakeTraining(
        options, ReadMnist(*files, options.path, MnistPart::kTrain), transforms,
        splits));
  }
  TROUPE_ASSIGN_OR_RETURN(splits.test,
                          TakeTest(options, test, test_begin, transforms));
  return splits;
}

absl::StatusOr<DataSplits> OpenCifar10(const DatasetOptions& options,
                                       const FilesPtr& files) {
  const Transforms transforms =
      PixelTransforms(options, Cifar10Mean(), Cifar10Stddev());
  Transforms augmented = transforms;
  if (options.augment) {
    augmented.insert(augmented.begin(),
                     {RandomShift(/*pixels_max=*/4, options.seed),
                      RandomMirror(options.seed)});
  }
  DataSplits splits;
  if (ReadsTraining(options)) {
    TROUPE_RETURN_IF_ERROR(TakeTraining(
        options, ReadCifar10(*files, options.path, Cifar10Part::kTrain),
        augmented, splits));
  }
  ByteImages test;
  if (HasCifar10(*files, options.path, Cifar10Part::kTest)) {
    TROUPE_ASSIGN_OR_RETURN(
        test, ReadCifar10(*files, options.path, Cifar10Part::kTest));
  }
  TROUPE_ASSIGN_OR_RETURN(splits.test,
                          TakeTest(options, test, /*begin=*/0, transforms));
  return splits;
}

absl::StatusOr<DataSplits> OpenSynthetic(const DatasetOptions& options,
                                         const FilesPtr&) {
  SyntheticOptions synthetic;
  synthetic.input_shape = options.input_shape;
  synthetic.num_classes = options.num_classes;
  synthetic.target_dim = options.target_dim;
  synthetic.seed = options.seed;
  DataSplits splits;
  if (ReadsTraining(options)) {
    synthetic.count = CountOr(options.train_count, kSyntheticTrain);
    TROUPE_ASSIGN_OR_RETURN(
        splits.train,
        (Generated<kTrainCount, &DatasetOptions::input_shape,
                   &DatasetOptions::num_classes, &DatasetOptions::target_dim>(
            MakeSyntheticDataset(synthetic, "train"))));
  }
  synthetic.count = CountOr(options.test_count, kSyntheticTest);
  TROUPE_ASSIGN_OR_RETURN(
      splits.test,
      (Generated<kTestCount, &DatasetOptions::input_shape,
                 &DatasetOptions::num_classes, &DatasetOptions::target_dim>(
          MakeSyntheticDataset(synthetic, "test"))));
  return splits;
}

SplitOptions SplitOf(const DatasetOptions& options) {
  // Images of which a share is cut need no random part besides.
  if (options.part.validation_share > 0) return {0, options.seed};
  return {options.val_fraction, options.seed, options.part.trained_on};
}

// Returns the first options.*kCount samples of `dataset`, or all for 0.
template <auto kCount>
absl::StatusOr<DatasetPtr> Head(const DatasetOptions& options,
                                DatasetPtr dataset) {
  const std::int64_t count = options.*kCount;
  const std::int64_t there = dataset == nullptr ? 0 : dataset->size();
  if (count == 0) return dataset;
  if (count > there) return TooMany<kCount>(options, there);
  return MakeSubset(std::move(dataset), 0, count);
}

absl::StatusOr<DataSplits> Heads(const DatasetOptions& options,
                                 DataSplits splits) {
  TROUPE_ASSIGN_OR_RETURN(splits.train,
                          Head<kTrainCount>(options, std::move(splits.train)));
  TROUPE_ASSIGN_OR_RETURN(splits.test,
                          Head<kTestCount>(options, std::move(splits.test)));
  return splits;
}

absl::StatusOr<DataSplits> FromText(const DatasetOptions& options,
                                    absl::StatusOr<TextSplits> text) {
  TROUPE_RETURN_IF_ERROR(text.status());
  DataSplits splits;
  splits.train = std::move(text->train);
  splits.test = std::move(text->test);
  splits.tokenizer = std::move(text->tokenizer);
  splits.content = std::move(text->content);
  splits.notes = std::move(text->notes);
  return Heads(options, std::move(splits));
}

absl::StatusOr<DataSplits> OpenTextKind(const DatasetOptions& options,
                                        const FilesPtr& files) {
  return FromText(
      options, OpenText(*files, options.path, options.text, SplitOf(options)));
}

absl::StatusOr<DataSplits> OpenTokensKind(const DatasetOptions& options,
                                          const FilesPtr& files) {
  return FromText(
      options, OpenTokens(files, options.path, options.text, SplitOf(options)));
}

ImageOptions ImagesOf(const DatasetOptions& options) {
  ImageOptions images = options.images;
  images.augment = options.augment;
  images.normalize = options.normalize;
  return images;
}

absl::StatusOr<DataSplits> OpenImagesKind(const DatasetOptions& options,
                                          const FilesPtr& files) {
  TROUPE_ASSIGN_OR_RETURN(
      ImageSplits images,
      OpenImages(files, options.path, ImagesOf(options), SplitOf(options)));
  DataSplits splits;
  splits.train = std::move(images.train);
  splits.test = std::move(images.test);
  splits.classes = std::move(images.classes);
  splits.notes = std::move(images.notes);
  splits.content = std::move(images.content);
  return Heads(options, std::move(splits));
}

enum class Path { kUnused, kOptional, kNeeded };

struct Kind {
  const char* name;
  Path path;
  absl::StatusOr<DataSplits> (*open)(const DatasetOptions&, const FilesPtr&);
};

constexpr Kind kKinds[] = {
    {"glyphs", Path::kUnused, OpenGlyphs},
    {"mnist", Path::kNeeded, OpenMnist},
    {"cifar10", Path::kNeeded, OpenCifar10},
    {"synthetic", Path::kUnused, OpenSynthetic},
    {"text", Path::kOptional, OpenTextKind},
    {"tokens", Path::kNeeded, OpenTokensKind},
    {"images", Path::kNeeded, OpenImagesKind},
};

// Returns null if no kind has that name.
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

// Checks that files have samples, and that both splits have equal specs: the
// files of one folder may belong to two data sets.
absl::Status CheckSplits(const char* kind, const DataSplits& splits) {
  if (splits.train == nullptr) return absl::OkStatus();
  const Dataset& train = *splits.train;
  if (train.size() < 1) {
    return base::FieldError<&DatasetOptions::path>(absl::StrCat(
        "dataset \"", kind, "\" has no training samples here; check the path"));
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

std::optional<SampleSpec> KnownSampleSpec(const DatasetOptions& options) {
  const std::string& kind = options.kind;
  if (kind == "glyphs" || kind == "mnist") {
    return ClassificationSpec({28, 28, 1}, /*num_classes=*/10);
  }
  if (kind == "cifar10") {
    return ClassificationSpec({kCifar10Side, kCifar10Side, 3}, kCifar10Classes);
  }
  if (kind == "synthetic") {
    return options.num_classes > 0
               ? ClassificationSpec(options.input_shape, options.num_classes)
               : RegressionSpec(options.input_shape, options.target_dim);
  }
  const TextOptions& text = options.text;
  if (kind == "tokens") return TokenWindowSpec(text.context, text.vocab_size);
  if (kind == "text" && text.tokenizer == "bytes") {
    return TokenWindowSpec(text.context, kByteVocabSize);
  }
  return std::nullopt;
}

absl::Status DatasetOptions::Validate() const {
  const Kind* found = FindKind(kind);
  if (found == nullptr) {
    return base::FieldError<&DatasetOptions::kind>(
        absl::StrCat(base::FieldName<&DatasetOptions::kind>(), " = \"", kind,
                     "\": must be one of \"",
                     absl::StrJoin(DatasetKinds(), "\", \""), "\""));
  }
  if (found->path == Path::kNeeded && path.empty()) {
    return base::FieldError<&DatasetOptions::kind, &DatasetOptions::path>(
        absl::StrCat(base::FieldName<&DatasetOptions::kind>(), " = \"", kind,
                     "\" needs ", base::FieldName<&DatasetOptions::path>(),
                     "; set it to",
                     kind == "tokens" ? " its file or folder"
                                      : " the folder of its files"));
  }
  if (!(val_fraction >= 0 && val_fraction < 1)) {
    return base::FieldError<&DatasetOptions::val_fraction>(
        absl::StrCat(base::FieldName<&DatasetOptions::val_fraction>(), " = ",
                     val_fraction, ": must be at least 0 and less than 1"));
  }
  TROUPE_RETURN_IF_ERROR(CheckTrainingPart(*this));
  if (kind == "text" || kind == "tokens") {
    TROUPE_RETURN_IF_ERROR(text.Validate());
  }
  if (kind == "images") TROUPE_RETURN_IF_ERROR(ImagesOf(*this).Validate());
  TROUPE_RETURN_IF_ERROR(CheckCount<kTrainCount>(*this));
  return CheckCount<kTestCount>(*this);
}

absl::StatusOr<DataSplits> OpenDataset(const DatasetOptions& options) {
  TROUPE_RETURN_IF_ERROR(options.Validate());
  const Kind& kind = *FindKind(options.kind);
  absl::StatusOr<DataSplits> splits = kind.open(options, FilesOf(options));
  if (!splits.ok()) {
    const absl::Status why = WithReasonToRead(options, splits.status());
    return kind.path != Path::kUnused
               ? base::WithFields<&DatasetOptions::path>(why)
               : why;
  }
  TROUPE_RETURN_IF_ERROR(CheckSplits(kind.name, *splits));
  DatasetOptions plain = options;
  plain.augment = false;
  const auto open_plain = [&]() -> absl::StatusOr<DatasetPtr> {
    TROUPE_ASSIGN_OR_RETURN(DataSplits others,
                            kind.open(plain, FilesOf(plain)));
    return std::move(others.train);
  };
  TROUPE_RETURN_IF_ERROR(
      CutTrainingPart(options, *FilesOf(options), open_plain, *splits));
  if (options.part.trained_on) splits->train = nullptr;
  return splits;
}

absl::StatusOr<DatasetPtr> OpenImagesAt(const DatasetOptions& options,
                                        std::vector<std::string> paths,
                                        std::vector<std::string> classes) {
  return OpenImageFiles(FilesOf(options), std::move(paths), std::move(classes),
                        ImagesOf(options));
}

}  // namespace troupe::data
