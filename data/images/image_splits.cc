#include "data/images/image_splits.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "data/images/color_jitter.h"
#include "data/images/crop.h"
#include "data/images/image_folder.h"
#include "data/transform.h"
#include "nn/random/philox.h"

namespace troupe::data {
namespace {

constexpr char kTrainFolder[] = "train";
constexpr const char* kTestFolders[] = {"val", "test"};

// Mean and deviation of ImageNet's pixels in [0, 1], by channel: what
// torchvision's models expect.
std::vector<float> ImageNetMean() { return {0.485f, 0.456f, 0.406f}; }
std::vector<float> ImageNetStddev() { return {0.229f, 0.224f, 0.225f}; }

// Appends the last transforms of both parts.
Transforms Pixels(const ImageOptions& options, Transforms transforms) {
  if (options.normalize) {
    transforms.push_back(Normalize(ImageNetMean(), ImageNetStddev()));
  }
  return transforms;
}

absl::StatusOr<DatasetPtr> MakeTest(std::shared_ptr<base::FileSystem> files,
                                    ImageFiles images,
                                    const ImageOptions& options) {
  return MakeImageFolderDataset(std::move(files), std::move(images),
                                ResizedCenterCrop(options.resize, options.size),
                                Pixels(options, {ToFloat()}));
}

absl::StatusOr<DatasetPtr> MakeTrain(std::shared_ptr<base::FileSystem> files,
                                     ImageFiles images,
                                     const ImageOptions& options,
                                     std::uint64_t seed) {
  if (!options.augment) {
    return MakeTest(std::move(files), std::move(images), options);
  }
  ColorJitterOptions jitter;
  jitter.brightness = jitter.contrast = jitter.saturation =
      options.color_jitter;
  jitter.hue = options.hue_jitter;
  Transforms transforms = {RandomMirror(seed), ToFloat()};
  if (options.color_jitter > 0 || options.hue_jitter > 0) {
    transforms.push_back(ColorJitter(jitter, seed));
  }
  return MakeImageFolderDataset(
      std::move(files), std::move(images),
      RandomResizedCrop(options.size, options.crop_area_min, seed),
      Pixels(options, std::move(transforms)));
}

// Returns the images with these indices, in this order.
ImageFiles Take(const ImageFiles& images, std::vector<std::size_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  ImageFiles taken;
  taken.classes = images.classes;
  for (const std::size_t number : numbers) {
    taken.paths.push_back(images.paths[number]);
    taken.labels.push_back(images.labels[number]);
  }
  return taken;
}

// Moves a random part of `images` out of them and returns it.
ImageFiles HoldBack(const SplitOptions& split, ImageFiles& images) {
  std::vector<std::size_t> order(images.paths.size());
  std::iota(order.begin(), order.end(), 0);
  nn::RandomPosition position;
  position.path = nn::HashName("data.image_splits");
  nn::RandomStream draws(nn::RandomKey(split.seed, nn::Purpose::kData),
                         position);
  draws.Shuffle(order.begin(), order.end());
  const auto held = static_cast<std::ptrdiff_t>(
      static_cast<double>(order.size()) * split.val_fraction);
  const auto cut = order.end() - held;
  ImageFiles test = Take(images, {cut, order.end()});
  images = Take(images, {order.begin(), cut});
  return test;
}

// Returns the folder of test images beside "train"; empty if there is none.
std::string TestFolder(base::FileSystem& files, const std::string& path) {
  for (const char* name : kTestFolders) {
    const std::string folder = base::JoinPath(path, name);
    if (files.Exists(folder)) return folder;
  }
  return "";
}

absl::Status CheckClasses(const ImageFiles& train, const ImageFiles& test,
                          const std::string& folder) {
  if (train.classes == test.classes) return absl::OkStatus();
  const auto& [a, b] = std::mismatch(train.classes.begin(), train.classes.end(),
                                     test.classes.begin(), test.classes.end());
  return absl::InvalidArgumentError(absl::StrCat(
      folder, " has other classes than the folder \"", kTrainFolder,
      "\" beside it: ",
      a == train.classes.end() ? absl::StrCat("\"", *b, "\" is new")
                               : absl::StrCat("\"", *a, "\" is missing"),
      "; give both the same folders"));
}

template <auto kField>
absl::Status CheckBetween(const ImageOptions& options, double least,
                          double most) {
  const auto value = options.*kField;
  if (least <= value && value <= most) return absl::OkStatus();
  return base::FieldError<kField>(absl::StrCat(base::FieldName<kField>(), " = ",
                                               value, ": must be ", least,
                                               " to ", most));
}

}  // namespace

absl::Status ImageOptions::Validate() const {
  TROUPE_RETURN_IF_ERROR(
      CheckBetween<&ImageOptions::size>(*this, 1, kImageSizeMax));
  TROUPE_RETURN_IF_ERROR(
      CheckBetween<&ImageOptions::resize>(*this, 1, kImageSizeMax));
  if (resize < size) {
    return base::FieldError<&ImageOptions::resize, &ImageOptions::size>(
        absl::StrCat(base::FieldName<&ImageOptions::resize>(), " = ", resize,
                     ": must be at least ",
                     base::FieldName<&ImageOptions::size>(), ", ", size,
                     ", which is cut out of its middle"));
  }
  TROUPE_RETURN_IF_ERROR(
      CheckBetween<&ImageOptions::crop_area_min>(*this, 1e-6, 1));
  TROUPE_RETURN_IF_ERROR(
      CheckBetween<&ImageOptions::color_jitter>(*this, 0, 10));
  return CheckBetween<&ImageOptions::hue_jitter>(*this, 0, 0.5);
}

absl::StatusOr<ImageSplits> OpenImages(std::shared_ptr<base::FileSystem> files,
                                       const std::string& path,
                                       const ImageOptions& options,
                                       const SplitOptions& split) {
  TROUPE_RETURN_IF_ERROR(options.Validate());
  const std::string train_folder = base::JoinPath(path, kTrainFolder);
  const bool has_parts = files->Exists(train_folder);
  TROUPE_ASSIGN_OR_RETURN(
      ImageFiles train,
      ListImageFolder(*files, has_parts ? train_folder : path));
  ImageFiles test;
  if (!has_parts) {
    test = HoldBack(split, train);
  } else if (const std::string folder = TestFolder(*files, path);
             !folder.empty()) {
    TROUPE_ASSIGN_OR_RETURN(test, ListImageFolder(*files, folder));
    TROUPE_RETURN_IF_ERROR(CheckClasses(train, test, folder));
  }
  ImageSplits splits;
  splits.classes = train.classes;
  if (!test.paths.empty()) {
    TROUPE_ASSIGN_OR_RETURN(splits.test,
                            MakeTest(files, std::move(test), options));
  }
  TROUPE_ASSIGN_OR_RETURN(
      splits.train,
      MakeTrain(std::move(files), std::move(train), options, split.seed));
  return splits;
}

absl::StatusOr<DatasetPtr> OpenImageFiles(
    std::shared_ptr<base::FileSystem> files, std::vector<std::string> paths,
    std::vector<std::string> classes, const ImageOptions& options) {
  TROUPE_RETURN_IF_ERROR(options.Validate());
  ImageFiles images;
  images.labels.resize(paths.size());
  images.paths = std::move(paths);
  images.classes = std::move(classes);
  return MakeTest(std::move(files), std::move(images), options);
}

}  // namespace troupe::data
