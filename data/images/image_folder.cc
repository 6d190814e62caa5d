#include "data/images/image_folder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "data/images/decode.h"
#include "data/images/image_names.h"

namespace troupe::data {
namespace {

// Kinds of entries that are not read for another reason than their ending.
constexpr char kDeadLink[] = "linked to nothing";
constexpr char kOutsideClasses[] = "in no class";
constexpr std::size_t kUnreadKindsShownMax = 8;

// Returns the kind of a file that is not read, by the end of its name.
std::string KindOf(absl::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos || dot + 1 == name.size()) {
    return "without an ending";
  }
  return absl::AsciiStrToLower(name.substr(dot));
}

// Appends the paths of the images in a folder with these names and in those
// below it, and counts the files that are not read.
absl::Status FindImages(base::FileSystem& files, const std::string& folder,
                        const std::vector<std::string>& names, int depth,
                        std::vector<std::string>& paths, UnreadFiles& unread) {
  if (depth > kImageFolderDepthMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        folder, " lies ", depth, " folders deep in its class, at most ",
        kImageFolderDepthMax, " are looked into; move its images up"));
  }
  for (const std::string& name : names) {
    if (IsHiddenName(name)) continue;
    const std::string path = base::JoinPath(folder, name);
    if (IsImageName(name)) {
      paths.push_back(path);
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const Entry entry, ListEntry(files, path));
    if (!entry.is_folder) {
      ++unread[entry.is_dead_link ? kDeadLink : KindOf(name)];
      continue;
    }
    TROUPE_RETURN_IF_ERROR(
        FindImages(files, path, entry.names, depth + 1, paths, unread));
  }
  return absl::OkStatus();
}

absl::Status AddClass(base::FileSystem& files, const std::string& folder,
                      const std::vector<std::string>& names,
                      ImageFiles& images) {
  std::vector<std::string> paths;
  TROUPE_RETURN_IF_ERROR(
      FindImages(files, folder, names, /*depth=*/0, paths, images.unread));
  if (paths.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no image (", ImageEndings("or"), ") in ", folder,
        ", which stands for a class; put some there or remove the folder"));
  }
  std::sort(paths.begin(), paths.end());
  const auto label = static_cast<std::int64_t>(images.classes.size()) - 1;
  images.labels.insert(images.labels.end(), paths.size(), label);
  images.paths.insert(images.paths.end(), paths.begin(), paths.end());
  if (static_cast<std::int64_t>(images.paths.size()) > kImageFilesMax ||
      static_cast<std::int64_t>(images.classes.size()) > kImageClassesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "more than ", kImageFilesMax, " images or ", kImageClassesMax,
        " classes, up to ", folder, "; split the data set"));
  }
  return absl::OkStatus();
}

class ImageFolderDataset : public Dataset {
 public:
  ImageFolderDataset(std::shared_ptr<base::FileSystem> files, ImageFiles images,
                     CropPtr crop, Transforms transforms,
                     const SampleSpec& spec)
      : Dataset(static_cast<std::int64_t>(images.paths.size()), spec),
        files_(std::move(files)),
        images_(std::move(images)),
        crop_(std::move(crop)),
        transforms_(std::move(transforms)) {}

  absl::StatusOr<std::vector<std::int64_t>> Labels() const override {
    return std::vector<std::int64_t>(images_.labels.begin(),
                                     images_.labels.end());
  }

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    const nn::Shape& shape = spec().input_shape;
    float* values = inputs.data<float>();
    std::int64_t* labels = targets.data<std::int64_t>();
    for (const std::int64_t index : indices) {
      const std::string& path = images_.paths[index];
      TROUPE_ASSIGN_OR_RETURN(
          const std::vector<std::uint8_t> bytes,
          base::ReadBytes(*files_, path, kImageFileBytesMax));
      TROUPE_ASSIGN_OR_RETURN(const Image image, DecodeImage(bytes, path));
      const SampleKey key = {epoch, index};
      ResizeBilinear(image, crop_->RegionOf(key, image.height, image.width),
                     values);
      for (const TransformPtr& transform : transforms_) {
        transform->Apply(key, shape, values);
      }
      values += shape.numel();
      *labels++ = images_.labels[index];
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<base::FileSystem> files_;
  const ImageFiles images_;
  const CropPtr crop_;
  const Transforms transforms_;
};

}  // namespace

std::string NoteOfUnread(const std::string& folder, const UnreadFiles& unread) {
  // The most frequent first.
  std::vector<std::pair<std::int64_t, std::string>> kinds;
  std::int64_t total = 0;
  for (const auto& [kind, count] : unread) {
    kinds.emplace_back(-count, kind);
    total += count;
  }
  if (total == 0) return "";
  std::sort(kinds.begin(), kinds.end());
  std::vector<std::string> shown;
  for (const auto& [negative, kind] : kinds) {
    if (shown.size() == kUnreadKindsShownMax) {
      shown.push_back("others");
      break;
    }
    shown.push_back(absl::StrCat(-negative, " ", kind));
  }
  return absl::StrCat(
      folder, ": ", total, total == 1 ? " file is" : " files are",
      " not read: ", absl::StrJoin(shown, ", "), "; images are the ",
      ImageEndings("and"), " in the folders of classes");
}

absl::StatusOr<ImageFiles> ListImageFolder(base::FileSystem& files,
                                           const std::string& folder) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          files.List(folder));
  ImageFiles images;
  for (const std::string& name : names) {
    if (IsHiddenName(name)) continue;
    const std::string path = base::JoinPath(folder, name);
    TROUPE_ASSIGN_OR_RETURN(const Entry entry, ListEntry(files, path));
    if (!entry.is_folder) {
      ++images.unread[entry.is_dead_link  ? kDeadLink
                      : IsImageName(name) ? kOutsideClasses
                                          : KindOf(name)];
      continue;
    }
    images.classes.push_back(name);
    TROUPE_RETURN_IF_ERROR(AddClass(files, path, entry.names, images));
  }
  if (images.classes.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no folder in ", folder,
        "; put the images of each class into a folder of the class's "
        "name there"));
  }
  return images;
}

absl::StatusOr<DatasetPtr> MakeImageFolderDataset(
    std::shared_ptr<base::FileSystem> files, ImageFiles images, CropPtr crop,
    Transforms transforms) {
  TROUPE_CHECK(files != nullptr && crop != nullptr, "files, and what of them");
  const auto classes = static_cast<std::int64_t>(images.classes.size());
  if (images.paths.empty() || images.paths.size() != images.labels.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(images.paths.size(), " images with ", images.labels.size(),
                     " labels are no data set; give a label for each"));
  }
  for (const std::int64_t label : images.labels) {
    if (label >= 0 && label < classes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("label ", label, " is not one of ", classes,
                     " classes; number them from 0"));
  }
  const SampleSpec spec =
      ClassificationSpec({crop->size(), crop->size(), kImageChannels}, classes);
  TROUPE_RETURN_IF_ERROR(CheckTransforms(transforms, spec.input_shape));
  return DatasetPtr(std::make_shared<ImageFolderDataset>(
      std::move(files), std::move(images), std::move(crop),
      std::move(transforms), spec));
}

}  // namespace troupe::data
