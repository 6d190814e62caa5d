#include "data/images/image_splits.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/field_error.h"
#include "data/content_hash.h"
#include "data/images/color_jitter.h"
#include "data/images/crop.h"
#include "data/images/image_folder.h"
#include "data/images/image_parts.h"
#include "data/transform.h"
#include "nn/random/philox.h"

namespace troupe::data {
namespace {

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

// Appends those of `all` that are not in `others` to `found`.
void AppendMissing(const std::vector<std::string>& all,
                   const std::vector<std::string>& others, const char* what,
                   std::vector<std::string>& found) {
  constexpr std::size_t kShownMax = 5;
  std::vector<std::string> missing;
  std::set_difference(all.begin(), all.end(), others.begin(), others.end(),
                      std::back_inserter(missing));
  for (std::size_t i = 0; i < missing.size() && i < kShownMax; ++i) {
    found.push_back(absl::StrCat("\"", missing[i], "\" is ", what));
  }
  if (missing.size() > kShownMax) {
    found.push_back(
        absl::StrCat(missing.size() - kShownMax, " more are ", what));
  }
}

absl::Status CheckClasses(const ImageFiles& train, const ImageFiles& test,
                          const ImageParts& parts) {
  if (train.classes == test.classes) return absl::OkStatus();
  std::vector<std::string> found;
  AppendMissing(test.classes, train.classes, "new", found);
  AppendMissing(train.classes, test.classes, "missing", found);
  return absl::InvalidArgumentError(
      absl::StrCat(parts.test, " has other classes than ", parts.train, ": ",
                   absl::StrJoin(found, ", "), "; give both the same folders"));
}

void AppendNote(std::string note, std::vector<std::string>& notes) {
  if (!note.empty()) notes.push_back(std::move(note));
}

absl::StatusOr<ImageSplits> OpenTestAlone(
    std::shared_ptr<base::FileSystem> files, const ImageParts& parts,
    const ImageOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(ImageFiles test, ListImageFolder(*files, parts.test));
  ImageSplits splits;
  AppendNote(NoteOfUnread(parts.test, test.unread), splits.notes);
  splits.classes = test.classes;
  TROUPE_ASSIGN_OR_RETURN(splits.test,
                          MakeTest(std::move(files), std::move(test), options));
  return splits;
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

// Number of images whose bytes are hashed.
constexpr std::size_t kHashedImages = 16;

// Returns ImageSplits::content. `folder`: that of the classes, which may move.
std::string HashOf(base::FileSystem& files, absl::string_view folder,
                   const ImageFiles& images) {
  ContentHash hash;
  const std::size_t count = images.paths.size();
  for (std::size_t i = 0; i < count; ++i) {
    hash.Add(absl::StripPrefix(images.paths[i], folder));
    hash.Add(images.labels[i]);
  }
  const std::size_t hashed = std::min(count, kHashedImages);
  for (std::size_t i = 0; i < hashed; ++i) {
    const absl::StatusOr<std::string> bytes = base::ReadWholeFile(
        files, images.paths[i * count / hashed], kImageFileBytesMax);
    // A batch will report the error.
    hash.Add(bytes.ok() ? *bytes : "");
  }
  return hash.ToString();
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
  TROUPE_ASSIGN_OR_RETURN(
      const ImageParts parts,
      FindImageParts(*files, path, /*needs_train=*/!split.trained_on));
  if (split.trained_on && parts.is_split && !parts.test.empty()) {
    return OpenTestAlone(std::move(files), parts, options);
  }
  TROUPE_ASSIGN_OR_RETURN(ImageFiles train,
                          ListImageFolder(*files, parts.train));
  ImageSplits splits;
  AppendNote(parts.note, splits.notes);
  AppendNote(NoteOfUnread(parts.train, train.unread), splits.notes);
  ImageFiles test;
  if (!parts.is_split) {
    test = HoldBack(split, train);
  } else if (!parts.test.empty()) {
    TROUPE_ASSIGN_OR_RETURN(test, ListImageFolder(*files, parts.test));
    AppendNote(NoteOfUnread(parts.test, test.unread), splits.notes);
    TROUPE_RETURN_IF_ERROR(CheckClasses(train, test, parts));
  }
  splits.classes = train.classes;
  splits.content = HashOf(*files, parts.train, train);
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
