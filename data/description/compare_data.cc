#include "data/description/compare_data.h"

#include "absl/strings/str_cat.h"
#include "data/description/class_names.h"

namespace troupe::data {
namespace {

using Description = std::map<std::string, std::string>;

std::string ValueIn(const Description& data, const std::string& name) {
  const auto found = data.find(name);
  return found == data.end() ? "none" : found->second;
}

// Returns whether the entry is a hash of what the files have. Checkpoints of
// earlier versions, and runs whose files cannot be read, have none.
bool IsHash(const std::string& name) {
  return name == kContentEntry || name == "vocabulary";
}

// Returns whether a side may lack the entry, as earlier versions do.
bool IsOptional(const std::string& name) {
  return IsHash(name) || name == kClassesEntry;
}

}  // namespace

absl::Status CompareData(const Description& saved, const Description& now) {
  if (saved.empty() || now.empty()) return absl::OkStatus();
  Description both = saved;
  both.insert(now.begin(), now.end());
  for (const auto& [name, value] : both) {
    const std::string was = ValueIn(saved, name), is = ValueIn(now, name);
    if (was == is) continue;
    if (IsOptional(name) && (saved.count(name) == 0 || now.count(name) == 0)) {
      continue;
    }
    if (name == kClassesEntry) return CompareClasses(was, is);
    return absl::InvalidArgumentError(absl::StrCat(
        "the data were of ", name, " ", was, ", this job's are of ", is,
        IsHash(name) ? " (hashes)" : "",
        "; go on with the same data, or start anew"));
  }
  return absl::OkStatus();
}

absl::Status CompareTestData(Description saved, const Description& now) {
  saved.erase(kWeightsEntry);
  return CompareData(saved, now);
}

}  // namespace troupe::data
