#include "nn/kernels/choice_cache.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/fnv_hash.h"

namespace troupe::nn {
namespace {

constexpr absl::string_view kFirstLine = "troupe choices 1";

// Whether all are printing ASCII characters; `space` says whether a space
// counts as one.
bool IsPrinting(absl::string_view text, bool space) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c > ' ' && c <= '~') || (space && c == ' ');
  });
}

bool IsWord(absl::string_view text, std::size_t bytes_max) {
  return !text.empty() && text.size() <= bytes_max && IsPrinting(text, false);
}

// Returns "end 1 8c3a29c1b6d0f7e4" for `entries` entries in `lines`, which are
// all lines before.
std::string LastLine(std::size_t entries, absl::string_view lines) {
  base::FnvHash hash;
  hash.AddBytes(lines.data(), lines.size());
  return absl::StrCat("end ", entries, " ",
                      absl::Hex(hash.value(), absl::kZeroPad16), "\n");
}

absl::Status Damaged(std::size_t line, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, " of the choices: ", why));
}

using Entries = std::vector<std::pair<absl::string_view, absl::string_view>>;

// Returns the entries of `text`, as views into it.
absl::StatusOr<Entries> ParseEntries(absl::string_view context,
                                     absl::string_view text) {
  if (text.size() > ChoiceCache::kTextBytesMax) {
    return Damaged(1, absl::StrCat("more than ", ChoiceCache::kTextBytesMax,
                                   " bytes of text"));
  }
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines[0] != kFirstLine) {
    return Damaged(1, absl::StrCat("it is not \"", kFirstLine, "\""));
  }
  // The last element is the text after the last end of line: empty.
  if (lines.size() < 4 || !lines.back().empty()) {
    return Damaged(lines.size(), "the text ends too early");
  }
  if (lines.size() - 4 > ChoiceCache::kEntriesMax) {
    return Damaged(
        lines.size(),
        absl::StrCat("more than ", ChoiceCache::kEntriesMax, " choices"));
  }
  const std::size_t last = lines.size() - 2;
  const std::size_t end_bytes = lines[last].size() + 1;
  const absl::string_view before = text.substr(0, text.size() - end_bytes);
  if (LastLine(last - 2, before) != text.substr(before.size())) {
    return Damaged(last + 1, "count and hash are not those of the lines above");
  }
  absl::string_view of = lines[1];
  if (!absl::ConsumePrefix(&of, "of ")) {
    return Damaged(2, "it does not say for what device and libraries");
  }
  if (of != context) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the choices are for ", of.substr(0, ChoiceCache::kContextBytesMax),
        ", and this is ", context));
  }
  Entries entries;
  for (std::size_t i = 2; i < last; ++i) {
    const std::size_t space = lines[i].find(' ');
    if (space == absl::string_view::npos ||
        !ChoiceCache::IsKey(lines[i].substr(0, space)) ||
        !ChoiceCache::IsChoice(lines[i].substr(space + 1))) {
      return Damaged(i + 1, "it is not a key and a choice");
    }
    entries.emplace_back(lines[i].substr(0, space), lines[i].substr(space + 1));
    if (i > 2 && entries[i - 3].first >= entries[i - 2].first) {
      return Damaged(i + 1, "its key is not larger than the one above");
    }
  }
  return entries;
}

absl::Status WithPath(const std::string& path, const absl::Status& status) {
  return base::WithMessage(status, absl::StrCat(path, ": ", status.message()));
}

}  // namespace

bool ChoiceCache::IsContext(absl::string_view text) {
  return !text.empty() && text.size() <= kContextBytesMax &&
         IsPrinting(text, true);
}

bool ChoiceCache::IsKey(absl::string_view text) {
  return IsWord(text, kKeyBytesMax);
}

bool ChoiceCache::IsChoice(absl::string_view text) {
  return IsWord(text, kChoiceBytesMax);
}

ChoiceCache::ChoiceCache(std::string context) : context_(std::move(context)) {
  TROUPE_CHECK(IsContext(context_), "a context is a short line of text");
}

const std::string* ChoiceCache::Find(absl::string_view key) const {
  const auto found = choices_.find(key);
  return found == choices_.end() ? nullptr : &found->second;
}

void ChoiceCache::Put(absl::string_view key, absl::string_view choice) {
  TROUPE_CHECK(IsKey(key) && IsChoice(choice), "keys and choices are words");
  const auto found = choices_.find(key);
  if (found == choices_.end() && choices_.size() >= kEntriesMax) return;
  if (found != choices_.end() && found->second == choice) return;
  choices_[key] = std::string(choice);
  changed_ = true;
}

std::string ChoiceCache::ToText() const {
  std::vector<std::pair<absl::string_view, absl::string_view>> sorted(
      choices_.begin(), choices_.end());
  std::sort(sorted.begin(), sorted.end());
  std::string text = absl::StrCat(kFirstLine, "\nof ", context_, "\n");
  for (const auto& [key, choice] : sorted) {
    absl::StrAppend(&text, key, " ", choice, "\n");
  }
  return absl::StrCat(text, LastLine(sorted.size(), text));
}

absl::Status ChoiceCache::AddText(absl::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(const Entries entries, ParseEntries(context_, text));
  for (const auto& [key, choice] : entries) {
    if (choices_.size() >= kEntriesMax) break;
    choices_.emplace(key, choice);
  }
  return absl::OkStatus();
}

absl::Status LoadChoices(base::FileSystem& files, const std::string& path,
                         ChoiceCache& choices) {
  if (!files.Exists(path)) return absl::OkStatus();
  const absl::StatusOr<std::string> text = base::ReadWholeFile(
      files, path, static_cast<std::int64_t>(ChoiceCache::kTextBytesMax));
  if (!text.ok()) return text.status();
  const absl::Status added = choices.AddText(*text);
  return added.ok() ? added : WithPath(path, added);
}

absl::Status SaveChoices(base::FileSystem& files, const std::string& path,
                         ChoiceCache& choices) {
  // Locked until the new file is in place, if the disk has locks: of two
  // processes that save at once, the second sees what the first wrote.
  const absl::StatusOr<std::unique_ptr<base::FileLock>> lock =
      files.Lock(absl::StrCat(path, ".lock"), "choices of algorithms");
  if (!lock.ok() && !absl::IsUnimplemented(lock.status())) {
    return lock.status();
  }
  // A file that cannot be read is replaced.
  (void)LoadChoices(files, path, choices);
  const std::string fresh = absl::StrCat(path, ".new");
  TROUPE_RETURN_IF_ERROR(base::WriteWholeFile(files, fresh, choices.ToText()));
  if (files.Exists(path)) {
    TROUPE_RETURN_IF_ERROR(files.Exchange(fresh, path));
    TROUPE_RETURN_IF_ERROR(files.RemoveAll(fresh));
  } else {
    TROUPE_RETURN_IF_ERROR(files.Rename(fresh, path));
  }
  choices.set_saved();
  return absl::OkStatus();
}

}  // namespace troupe::nn
