// A dataset of images in a folder for each class, like torchvision's
// ImageFolder.
//
//     photos/cat/1.jpg  photos/cat/more/2.png  photos/dog/3.jpeg
//
//   TROUPE_ASSIGN_OR_RETURN(ImageFiles images,
//                           ListImageFolder(*files, "photos"));
//   images.classes;                          // {"cat", "dog"}
//   TROUPE_ASSIGN_OR_RETURN(
//       DatasetPtr train,
//       MakeImageFolderDataset(files, images, RandomResizedCrop(224, 0.08, 0),
//                              {RandomMirror(0), ToFloat()}));
//
// Classes are numbered by their folders' names, sorted; samples by class, then
// by path. Names that begin with a dot are skipped. Files that do not end as
// images do (IsImageName(): .jpg, .png, .ppm, ..., in either case) are counted
// by kind (NoteOfUnread()), and so are links to nothing. A sample is f32
// [size, size, 3]; Fill() reads and decodes it, so that a folder may be larger
// than memory. The transforms get bytes as f32 0..255.

#ifndef DATA_IMAGES_IMAGE_FOLDER_H_
#define DATA_IMAGES_IMAGE_FOLDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "data/dataset.h"
#include "data/images/crop.h"
#include "data/transform.h"

namespace troupe::data {

// Limits: on the bytes of a file, the number of files, of classes, and of
// folders inside each other below a class.
inline constexpr std::int64_t kImageFileBytesMax = 64 << 20;
inline constexpr std::int64_t kImageFilesMax = 100'000'000;
inline constexpr std::int64_t kImageClassesMax = 1 << 16;
inline constexpr int kImageFolderDepthMax = 8;

// Number of files that are not read, by kind: {".heic": 2}.
using UnreadFiles = std::map<std::string, std::int64_t>;

struct ImageFiles {
  std::vector<std::string> paths;
  std::vector<std::int64_t> labels;  // index into `classes` for each path
  std::vector<std::string> classes;
  UnreadFiles unread = {};
};

// kNotFound:          no class folder in `folder`, or one without an image.
// kResourceExhausted: more files, classes or folders than the limits.
absl::StatusOr<ImageFiles> ListImageFolder(base::FileSystem& files,
                                           const std::string& folder);

// Returns a sentence for the user about the files that are not read, such as
// "photos: 3 files are not read: 2 .heic, 1 .txt; ..."; empty: there are none.
std::string NoteOfUnread(const std::string& folder, const UnreadFiles& unread);

// Returns the dataset of `images`. Fill() returns the errors of reading and of
// DecodeImage(), which name the file.
//   kInvalidArgument: no image, labels that are no classes, or a transform that
//                     does not fit.
absl::StatusOr<DatasetPtr> MakeImageFolderDataset(
    std::shared_ptr<base::FileSystem> files, ImageFiles images, CropPtr crop,
    Transforms transforms);

}  // namespace troupe::data

#endif  // DATA_IMAGES_IMAGE_FOLDER_H_
