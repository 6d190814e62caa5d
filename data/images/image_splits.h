// Opens a folder of images as training and test samples (data.kind =
// "images").
//
//   ImageOptions options;
//   options.size = 64, options.resize = 72;
//   TROUPE_ASSIGN_OR_RETURN(
//       ImageSplits splits,
//       OpenImages(files, "photos", options, {/*val_fraction=*/0.1,
//                                             /*seed=*/0}));
//   splits.classes;                          // names, by label
//
// `photos` has the folders "train" and "val" (or "test"; image_parts.h has all
// spellings), each with a folder for each class and both with the same classes.
// Or it has the class folders itself; then a part of the images, chosen by the
// seed, is the test part.
//
// Training images with `augment` get RandomResizedCrop(size), RandomMirror and
// ColorJitter. Test images, and training images without it, get Resize(resize)
// and CenterCrop(size). All become [0, 1]; `normalize` then normalizes them by
// ImageNet's means and deviations.

#ifndef DATA_IMAGES_IMAGE_SPLITS_H_
#define DATA_IMAGES_IMAGE_SPLITS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "data/dataset.h"
#include "data/split_options.h"

namespace troupe::data {

// Limit on the side of a sample, in pixels.
inline constexpr std::int64_t kImageSizeMax = 4096;

struct ImageOptions {
  std::int64_t size = 224;      // pixels of a sample's side
  std::int64_t resize = 256;    // pixels of the shorter side before CenterCrop
  double crop_area_min = 0.08;  // least part of the image, RandomResizedCrop
  double color_jitter = 0;      // brightness, contrast and saturation
  double hue_jitter = 0;
  bool augment = false;
  bool normalize = true;

  // Checks sizes and jitters. Errors blame the field (base/field_error.h).
  absl::Status Validate() const;
};

struct ImageSplits {
  DatasetPtr train;                  // null: only the test folder was wanted
  DatasetPtr test;                   // null: no such folder, or val_fraction 0
  std::vector<std::string> classes;  // names, indexed by label
  // Sentences for the user about folders and files that are not read.
  std::vector<std::string> notes;
  // Hash of the training images' names and labels, and of the bytes of a few;
  // empty without them.
  std::string content;
};

// Lists the folder, or with `split.trained_on` the folder of test images alone,
// if it has one. Images are read when a batch needs them.
//   kInvalidArgument: `options`, or other classes to evaluate than to
//                     train on; FindImageParts().
//   other:            from the files.
absl::StatusOr<ImageSplits> OpenImages(std::shared_ptr<base::FileSystem> files,
                                       const std::string& path,
                                       const ImageOptions& options,
                                       const SplitOptions& split);

// Opens the images `paths` of unknown class, cropped as test images are. All
// labels are 0.
//   kInvalidArgument: `options`, no path or no class.
absl::StatusOr<DatasetPtr> OpenImageFiles(
    std::shared_ptr<base::FileSystem> files, std::vector<std::string> paths,
    std::vector<std::string> classes, const ImageOptions& options);

}  // namespace troupe::data

#endif  // DATA_IMAGES_IMAGE_SPLITS_H_
