#include "data/images/image_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace troupe::data {
namespace {

constexpr std::array<absl::string_view, 12> kEndings = {
    ".jpg",  ".jpeg", ".png", ".webp", ".gif", ".tif",
    ".tiff", ".bmp",  ".pbm", ".pgm",  ".ppm", ".pnm"};

}  // namespace

bool IsHiddenName(absl::string_view name) {
  return absl::StartsWith(name, ".");
}

std::string ImageEndings(absl::string_view conjunction) {
  const auto others = absl::MakeConstSpan(kEndings).first(kEndings.size() - 1);
  return absl::StrCat(absl::StrJoin(others, ", "), " ", conjunction, " ",
                      kEndings.back());
}

bool IsImageName(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&lower](absl::string_view ending) {
                       return absl::EndsWith(lower, ending);
                     });
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
