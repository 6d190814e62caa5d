#include "base/field_error.h"

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace troupe::base {
namespace {

constexpr char kPayload[] = "troupe/fields";

}  // namespace

namespace internal {

// GCC and Clang write "[with auto kMember = &troupe::nn::SgdOptions::lr]" and
// "[kMember = &troupe::nn::SgdOptions::lr]". Namespaces begin with a small
// letter, structs with a capital.
std::string NameIn(absl::string_view signature, const char* named_struct) {
  constexpr absl::string_view kBefore = "kMember = &";
  const std::size_t at = signature.find(kBefore);
  TROUPE_CHECK(at != absl::string_view::npos,
               "the compiler names the template's argument");
  absl::string_view path = signature.substr(at + kBefore.size());
  path = path.substr(0, path.find_first_of(";]"));
  std::vector<absl::string_view> parts = absl::StrSplit(path, "::");
  if (named_struct != nullptr) {
    return absl::StrCat(named_struct, ".", parts.back());
  }
  while (parts.size() > 2 && !absl::ascii_isupper(parts.front().front())) {
    parts.erase(parts.begin());
  }
  return absl::StrJoin(parts, ".");
}

}  // namespace internal

absl::Status WithFields(absl::Status status,
                        const std::vector<std::string>& fields) {
  if (!status.ok() && !status.GetPayload(kPayload)) {
    status.SetPayload(kPayload, absl::Cord(absl::StrJoin(fields, "\n")));
  }
  return status;
}

absl::Status WithMessage(const absl::Status& status,
                         absl::string_view message) {
  absl::Status changed(status.code(), message);
  const auto fields = status.GetPayload(kPayload);
  if (fields) changed.SetPayload(kPayload, *fields);
  return changed;
}

std::vector<std::string> FieldsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return {};
  return absl::StrSplit(std::string(*payload), '\n', absl::SkipEmpty());
}

}  // namespace troupe::base
