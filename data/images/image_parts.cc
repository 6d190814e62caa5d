#include "data/images/image_parts.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "data/images/image_names.h"

namespace troupe::data {
namespace {

enum Part { kTrain, kVal, kTest, kParts };

struct PartName {
  absl::string_view name;
  Part part;
};
constexpr PartName kPartNames[] = {
    {"train", kTrain},     {"training", kTrain}, {"val", kVal},
    {"valid", kVal},       {"validation", kVal}, {"dev", kVal},
    {"development", kVal}, {"test", kTest},      {"testing", kTest},
};

// Returns the part that a folder of this name has; nullopt: none.
std::optional<Part> PartOf(absl::string_view name) {
  const std::string plain = absl::StrReplaceAll(
      absl::AsciiStrToLower(name), {{"_", ""}, {"-", ""}, {" ", ""}});
  absl::string_view stem = plain;
  for (const absl::string_view end : {"set", "data", "images"}) {
    if (absl::ConsumeSuffix(&stem, end)) break;
  }
  for (const PartName& known : kPartNames) {
    if (plain == known.name || stem == known.name) return known.part;
  }
  return std::nullopt;
}

// Folders of a folder, by their names.
struct Found {
  std::vector<std::string> of_part[kParts];
  std::vector<std::string> others;
  bool train_has_folders = false;
  bool test_has_folders = false;  // or the one for validation
};

absl::StatusOr<bool> HasFolders(base::FileSystem& files,
                                const std::string& folder,
                                const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (IsHiddenName(name) || IsImageName(name)) continue;
    TROUPE_ASSIGN_OR_RETURN(const Entry entry,
                            ListEntry(files, base::JoinPath(folder, name)));
    if (entry.is_folder) return true;
  }
  return false;
}

// Looks at the folders that have names of parts, and, `with_others`, at all.
absl::StatusOr<Found> FindFolders(base::FileSystem& files,
                                  const std::string& folder,
                                  const std::vector<std::string>& names,
                                  bool with_others) {
  Found found;
  for (const std::string& name : names) {
    const std::optional<Part> part = PartOf(name);
    if (IsHiddenName(name) || (!part.has_value() && !with_others)) continue;
    const std::string path = base::JoinPath(folder, name);
    TROUPE_ASSIGN_OR_RETURN(const Entry entry, ListEntry(files, path));
    if (!entry.is_folder) continue;
    if (!part.has_value()) {
      found.others.push_back(name);
      continue;
    }
    found.of_part[*part].push_back(name);
    TROUPE_ASSIGN_OR_RETURN(const bool has_folders,
                            HasFolders(files, path, entry.names));
    (*part == kTrain ? found.train_has_folders : found.test_has_folders) |=
        has_folders;
  }
  return found;
}

std::string Quoted(const std::vector<std::string>& names) {
  constexpr std::size_t kShownMax = 5;
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() == kShownMax) break;
    shown.push_back(absl::StrCat("\"", name, "\""));
  }
  return absl::StrCat(absl::StrJoin(shown, ", "),
                      names.size() > kShownMax ? ", ..." : "");
}

// Returns the only name of a part; empty: there is none.
absl::StatusOr<std::string> OneOf(const std::string& folder,
                                  const std::vector<std::string>& names,
                                  absl::string_view use) {
  if (names.empty()) return std::string();
  if (names.size() == 1) return names.front();
  return absl::InvalidArgumentError(
      absl::StrCat(folder, " has ", names.size(), " folders of images to ", use,
                   ", ", Quoted(names), "; keep one or join them"));
}

// Returns the sentence about the folders that are not read.
std::string NoteOf(const std::string& folder, const std::string& train,
                   const std::string& test,
                   const std::vector<std::string>& unread) {
  if (unread.empty()) return "";
  return absl::StrCat(
      folder, ": ", train.empty() ? "nothing" : absl::StrCat("\"", train, "\""),
      " is trained on, ",
      test.empty() ? "nothing" : absl::StrCat("\"", test, "\""),
      " is evaluated; not read: ", Quoted(unread));
}

absl::StatusOr<ImageParts> Split(const std::string& folder,
                                 const Found& found) {
  TROUPE_ASSIGN_OR_RETURN(const std::string train,
                          OneOf(folder, found.of_part[kTrain], "train on"));
  const bool has_val = !found.of_part[kVal].empty();
  TROUPE_ASSIGN_OR_RETURN(
      const std::string test,
      OneOf(folder, found.of_part[has_val ? kVal : kTest], "evaluate"));
  std::vector<std::string> unread = found.others;
  if (has_val) {
    unread.insert(unread.begin(), found.of_part[kTest].begin(),
                  found.of_part[kTest].end());
  }
  ImageParts parts;
  parts.is_split = true;
  if (!train.empty()) parts.train = base::JoinPath(folder, train);
  if (!test.empty()) parts.test = base::JoinPath(folder, test);
  parts.note = NoteOf(folder, train, test, unread);
  return parts;
}

}  // namespace

absl::StatusOr<ImageParts> FindImageParts(base::FileSystem& files,
                                          const std::string& folder,
                                          bool needs_train) {
  ImageParts whole;
  whole.train = folder;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          files.List(folder));
  TROUPE_ASSIGN_OR_RETURN(Found found, FindFolders(files, folder, names,
                                                   /*with_others=*/false));
  const bool has_train = !found.of_part[kTrain].empty();
  const bool has_test =
      !found.of_part[kVal].empty() || !found.of_part[kTest].empty();
  const bool is_split =
      has_train ? has_test || found.train_has_folders : found.test_has_folders;
  if (!is_split) return whole;
  TROUPE_ASSIGN_OR_RETURN(
      found, FindFolders(files, folder, names, /*with_others=*/true));
  if (has_train) return Split(folder, found);
  // Other folders make it likely that all are classes.
  if (!found.others.empty()) return whole;
  if (!needs_train) return Split(folder, found);
  std::vector<std::string> tests = found.of_part[kVal];
  tests.insert(tests.end(), found.of_part[kTest].begin(),
               found.of_part[kTest].end());
  return absl::InvalidArgumentError(
      absl::StrCat(folder, " has ", Quoted(tests),
                   ", but no images to train on; put them into a folder "
                   "\"train\" beside, or "
                   "give the folder that has one for each class"));
}

}  // namespace troupe::data
