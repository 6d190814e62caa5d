// The text of a table: "F0 B0 AR0 UP0", or "0F0 1F0" if it has several chunks;
// "AR0 AR0.1" if reductions have two rounds.

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {
namespace {

// Limit on the letters of a wrong word in an error.
constexpr std::size_t kWordShownMax = 40;

// Removes the digits at the start of `text` and sets `number` to them; without
// digits, keeps it. Returns false if the number is not below `limit`.
bool TakeNumber(absl::string_view& text, int limit, int& number) {
  std::size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  if (digits == 0) return true;
  const bool read = absl::SimpleAtoi(text.substr(0, digits), &number);
  text.remove_prefix(digits);
  return read && number < limit;
}

// Reads ".1", a round or turn below `limit`, from the rest of a word. 0 is not
// written.
bool ParseRound(absl::string_view word, int limit, int& round) {
  if (word.empty()) return true;
  return absl::ConsumePrefix(&word, ".") && !word.empty() && word[0] != '0' &&
         TakeNumber(word, limit, round) && round > 0 && word.empty();
}

// Reads an action: an optional chunk, a kind, an index if the kind has one, and
// a round other than the first.
bool ParseWord(absl::string_view word, Action& action) {
  const bool with_chunk = absl::ascii_isdigit(word[0]);
  if (!TakeNumber(word, kChunksMax, action.chunk)) return false;
  std::size_t letters = 0;
  while (letters < word.size() && absl::ascii_isupper(word[letters])) ++letters;
  const absl::string_view name = word.substr(0, letters);
  word.remove_prefix(letters);
  for (const ActionRule& rule : ActionRules()) {
    if (rule.word != name) continue;
    action.kind = rule.kind;
    if (rule.scope == ActionScope::kStep) return !with_chunk && word.empty();
    if (word.empty() || word[0] == '.' ||
        !TakeNumber(word, kActionIndexMax + 1, action.index)) {
      return false;
    }
    return ParseRound(word, RoundLimit(rule), action.round);
  }
  return false;
}

}  // namespace

std::string Action::ToString(int chunks) const {
  const ActionRule& rule = RuleOf(kind);
  if (rule.scope == ActionScope::kStep) return std::string(rule.word);
  std::string text = absl::StrCat(rule.word, index);
  if (round != 0) absl::StrAppend(&text, ".", round);
  return chunks > 1 || chunk != 0 ? absl::StrCat(chunk, text) : text;
}

std::string StepTable::ToString() const {
  const int count = chunks();
  return absl::StrJoin(actions, " ", [=](std::string* out, const Action& a) {
    absl::StrAppend(out, a.ToString(count));
  });
}

absl::StatusOr<StepTable> ParseTable(absl::string_view text,
                                     const ReductionOptions& options) {
  StepTable table;
  for (absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n\t"), absl::SkipEmpty())) {
    Action action;
    if (!ParseWord(word, action)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", absl::CHexEscape(word.substr(0, kWordShownMax)),
                       "\" is no action; write F0, B0, AR0, ..."));
    }
    table.actions.push_back(std::move(action));
  }
  return WithNeeds(std::move(table), options);
}

absl::StatusOr<std::vector<StepTable>> ParseGrid(absl::string_view text) {
  std::vector<StepTable> tables;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const std::string name = absl::StrCat("rank ", tables.size(), ":");
    if (!absl::ConsumePrefix(&line, name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": must begin with \"", name, "\""));
    }
    absl::StatusOr<StepTable> table = ParseTable(line);
    if (!table.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", table.status().message()));
    }
    tables.push_back(*std::move(table));
  }
  return tables;
}

std::string ToGrid(const std::vector<StepTable>& tables) {
  std::string grid;
  for (std::size_t rank = 0; rank < tables.size(); ++rank) {
    absl::StrAppend(&grid, "rank ", rank, ": ", tables[rank].ToString(), "\n");
  }
  return grid;
}

}  // namespace troupe::pipeline
