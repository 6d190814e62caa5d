// Finds the folders of training and of test images in a folder.
//
//   TROUPE_ASSIGN_OR_RETURN(const ImageParts parts,
//                           FindImageParts(*files, "photos"));
//   parts.train;                             // "photos/Train"
//   parts.test;                              // "photos/valid"
//   parts.note;                              // that photos/test is not read
//
// Names count in any spelling and case: "train", "training"; "val", "valid",
// "validation", "dev"; "test", "testing"; each also with "set", "data" or
// "images" behind it and with separators ("Test_Set"). Images for validation
// are preferred to those for a final test.
//
// A folder with one of these names may also be a class, such as trains: without
// folders in it, and with none of the other names beside it, it is.

#ifndef DATA_IMAGES_IMAGE_PARTS_H_
#define DATA_IMAGES_IMAGE_PARTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "base/files/file_system.h"

namespace troupe::data {

struct ImageParts {
  // Path of the folder; the folder itself if not split; empty: none.
  std::string train;
  std::string test;  // empty: none
  bool is_split = false;
  std::string note;  // sentence about folders that are not read; may be empty
};

// `needs_train`: whether there must be images to train on.
//   kInvalidArgument: two folders for the same part, or none to train on beside
//                     others.
//   other:            from the files.
absl::StatusOr<ImageParts> FindImageParts(base::FileSystem& files,
                                          const std::string& folder,
                                          bool needs_train = true);

}  // namespace troupe::data

#endif  // DATA_IMAGES_IMAGE_PARTS_H_
