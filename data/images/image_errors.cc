#include "data/images/image_errors.h"

#include "absl/strings/str_cat.h"

namespace troupe::data {

absl::Status DamagedImage(absl::string_view name, absl::string_view format,
                          absl::string_view cause) {
  return absl::DataLossError(
      absl::StrCat(name, ": damaged ", format, ": ", cause,
                   "; replace it by a whole copy or remove it"));
}

absl::Status UnreadKind(absl::string_view name, absl::string_view format,
                        absl::string_view kind) {
  return absl::UnimplementedError(
      absl::StrCat(name, ": a ", format, " of a kind that is not read: ", kind,
                   "; convert it to an ordinary JPEG or to PNG"));
}

absl::Status NoImageMemory(absl::string_view name, absl::string_view library) {
  return absl::ResourceExhaustedError(
      absl::StrCat(name, ": ", library,
                   " has no memory to decode it; decode fewer images at once, "
                   "or a smaller one"));
}

}  // namespace troupe::data
