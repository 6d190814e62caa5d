#include "data/images/image_folder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/images/decode.h"

namespace troupe::data {
namespace {

bool IsHidden(absl::string_view name) { return absl::StartsWith(name, "."); }

bool IsImageName(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return absl::EndsWith(lower, ".jpg") || absl::EndsWith(lower, ".jpeg") ||
         absl::EndsWith(lower, ".png");
}

// Returns the names in `path`, or none if it is a file.
absl::StatusOr<std::vector<std::string>> ListIfFolder(base::FileSystem& files,
                                                      const std::string& path,
                                                      bool& is_folder) {
  absl::StatusOr<std::vector<std::string>> names = files.List(path);
  is_folder = names.ok();
  const bool is_file =
      names.status().code() == absl::StatusCode::kFailedPrecondition;
  if (is_file) return std::vector<std::string>();
  return names;
}

// Appends the paths of the images in a folder with these names and in those
// below it.
absl::Status FindImages(base::FileSystem& files, const std::string& folder,
                        const std::vector<std::string>& names, int depth,
                        std::vector<std::string>& paths) {
  if (depth > kImageFolderDepthMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        folder, " lies ", depth, " folders deep in its class, at most ",
        kImageFolderDepthMax, " are looked into"));
  }
  for (const std::string& name : names) {
    if (IsHidden(name)) continue;
    const std::string path = base::JoinPath(folder, name);
    if (IsImageName(name)) {
      paths.push_back(path);
      continue;
    }
    bool is_folder = false;
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> inside,
                            ListIfFolder(files, path, is_folder));
    TROUPE_RETURN_IF_ERROR(FindImages(files, path, inside, depth + 1, paths));
  }
  return absl::OkStatus();
}

absl::Status AddClass(base::FileSystem& files, const std::string& folder,
                      const std::vector<std::string>& names,
                      ImageFiles& images) {
  std::vector<std::string> paths;
  TROUPE_RETURN_IF_ERROR(FindImages(files, folder, names, /*depth=*/0, paths));
  if (paths.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no image (.jpg, .jpeg or .png) in ", folder,
        ", which stands for a class; put some there or remove the folder"));
  }
  std::sort(paths.begin(), paths.end());
  const auto label = static_cast<std::int64_t>(images.classes.size()) - 1;
  images.labels.insert(images.labels.end(), paths.size(), label);
  images.paths.insert(images.paths.end(), paths.begin(), paths.end());
  if (static_cast<std::int64_t>(images.paths.size()) > kImageFilesMax ||
      static_cast<std::int64_t>(images.classes.size()) > kImageClassesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", kImageFilesMax, " images or ",
                     kImageClassesMax, " classes, up to ", folder));
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

absl::StatusOr<ImageFiles> ListImageFolder(base::FileSystem& files,
                                           const std::string& folder) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          files.List(folder));
  ImageFiles images;
  for (const std::string& name : names) {
    if (IsHidden(name)) continue;
    const std::string path = base::JoinPath(folder, name);
    bool is_folder = false;
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> inside,
                            ListIfFolder(files, path, is_folder));
    if (!is_folder) continue;
    images.classes.push_back(name);
    TROUPE_RETURN_IF_ERROR(AddClass(files, path, inside, images));
  }
  if (images.classes.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no folder in ", folder,
                     "; the images of each class belong into a folder of the "
                     "class's name there"));
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
                     " labels are no data set"));
  }
  for (const std::int64_t label : images.labels) {
    if (label >= 0 && label < classes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("label ", label, " is not one of ", classes, " classes"));
  }
  const SampleSpec spec =
      ClassificationSpec({crop->size(), crop->size(), kImageChannels}, classes);
  TROUPE_RETURN_IF_ERROR(CheckTransforms(transforms, spec.input_shape));
  return DatasetPtr(std::make_shared<ImageFolderDataset>(
      std::move(files), std::move(images), std::move(crop),
      std::move(transforms), spec));
}

}  // namespace troupe::data
