// Names in folders of images: which are images, which are folders.
//
//   const bool is_listed = IsImageName(name) && !IsHiddenName(name);
//   TROUPE_ASSIGN_OR_RETURN(const Entry entry, ListEntry(*files, path));
//   entry.is_folder;
//
// A part of image_folder.h and image_parts.h.

#ifndef DATA_IMAGES_IMAGE_NAMES_H_
#define DATA_IMAGES_IMAGE_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"

namespace troupe::data {

// Whether the name begins with a dot.
bool IsHiddenName(absl::string_view name);

// Endings of the names of images, for messages: ".jpg, .jpeg, ... and .pnm".
std::string ImageEndings(absl::string_view conjunction);

// Whether the name ends as those of images that are read do, in either case.
bool IsImageName(absl::string_view name);

// An entry of a folder, with links followed.
struct Entry {
  bool is_folder = false;
  bool is_dead_link = false;
  std::vector<std::string> names;  // content of a folder, sorted
};

// Returns what `path`, a name that a folder lists, is.
absl::StatusOr<Entry> ListEntry(base::FileSystem& files,
                                const std::string& path);

}  // namespace troupe::data

#endif  // DATA_IMAGES_IMAGE_NAMES_H_
