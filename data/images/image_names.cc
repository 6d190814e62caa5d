#include "data/images/image_names.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace troupe::data {

bool IsHiddenName(absl::string_view name) {
  return absl::StartsWith(name, ".");
}

bool IsImageName(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return absl::EndsWith(lower, ".jpg") || absl::EndsWith(lower, ".jpeg") ||
         absl::EndsWith(lower, ".png");
}

absl::StatusOr<Entry> ListEntry(base::FileSystem& files,
                                const std::string& path) {
  Entry entry;
  absl::StatusOr<std::vector<std::string>> names = files.List(path);
  if (names.ok()) {
    entry.is_folder = true;
    entry.names = *std::move(names);
    return entry;
  }
  const absl::StatusCode code = names.status().code();
  if (code == absl::StatusCode::kFailedPrecondition) return entry;  // a file
  // The name is listed, so that only the target of a link can be missing.
  entry.is_dead_link =
      code != absl::StatusCode::kPermissionDenied && files.ReadLink(path).ok();
  if (entry.is_dead_link) return entry;
  return names.status();
}

}  // namespace troupe::data
