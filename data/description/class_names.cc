#include "data/description/class_names.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "data/content_hash.h"

namespace troupe::data {
namespace {

constexpr char kHashed[] = " names of hash ";

std::string Quoted(const std::vector<std::string>& names, std::size_t i) {
  return i < names.size() ? absl::StrCat("\"", names[i], "\"") : "none";
}

}  // namespace

std::string ClassNames(const std::vector<std::string>& classes) {
  std::string names = absl::StrJoin(classes, "/");
  if (names.size() <= kClassNamesBytesMax) return names;
  ContentHash hash;
  hash.Add(names);
  return absl::StrCat(classes.size(), kHashed, hash.ToString());
}

std::vector<std::string> NamesOfClasses(const std::string& saved) {
  std::vector<std::string> names = absl::StrSplit(saved, '/');
  if (names.size() == 1 && absl::StrContains(saved, kHashed)) names.clear();
  return names;
}

absl::Status CompareClasses(const std::string& saved, const std::string& now) {
  if (saved == now) return absl::OkStatus();
  const std::vector<std::string> was = absl::StrSplit(saved, '/');
  const std::vector<std::string> is = absl::StrSplit(now, '/');
  const auto first = static_cast<std::size_t>(
      std::mismatch(was.begin(), was.end(), is.begin(), is.end()).first -
      was.begin());
  std::vector<std::string> sorted_was = was, sorted_is = is;
  std::sort(sorted_was.begin(), sorted_was.end());
  std::sort(sorted_is.begin(), sorted_is.end());
  const bool is_reordered = sorted_was == sorted_is;
  return absl::InvalidArgumentError(absl::StrCat(
      "class ", first, " was ", Quoted(was, first), " and is ",
      Quoted(is, first), " now, of ", was.size(), " and ", is.size(),
      " classes",
      is_reordered
          ? ", which have the same names in another order; give them in the "
            "order of the run, or start anew"
          : "; name the folders as they were, or start anew"));
}

}  // namespace troupe::data
