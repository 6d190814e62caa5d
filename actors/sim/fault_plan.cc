#include "actors/sim/fault_plan.h"

#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

// Names of FaultKind, in its order.
constexpr const char* kKinds[] = {"cut", "reset", "pause", "die", "stale"};

bool IsOfLink(FaultKind kind) {
  return kind == FaultKind::kCut || kind == FaultKind::kReset;
}
bool Lasts(FaultKind kind) {
  return kind == FaultKind::kCut || kind == FaultKind::kPause;
}

std::string ToString(const Fault& fault) {
  std::string text =
      absl::StrCat(kKinds[static_cast<int>(fault.kind)], " ", fault.node);
  if (IsOfLink(fault.kind)) absl::StrAppend(&text, "-", fault.peer);
  absl::StrAppend(&text, " at ", fault.at);
  if (Lasts(fault.kind)) {
    absl::StrAppend(&text, " for ", absl::FormatDuration(fault.lasts));
  }
  if (fault.heard) absl::StrAppend(&text, " heard");
  return text;
}

bool ParseNodes(absl::string_view text, Fault& fault) {
  if (!IsOfLink(fault.kind)) return absl::SimpleAtoi(text, &fault.node);
  const std::vector<absl::string_view> ends = absl::StrSplit(text, '-');
  return ends.size() == 2 && absl::SimpleAtoi(ends[0], &fault.node) &&
         absl::SimpleAtoi(ends[1], &fault.peer);
}

// Parses the words of one fault, such as "cut 0-1 at 17 for 3s".
bool ParseFault(const std::vector<absl::string_view>& words, Fault& fault) {
  std::size_t kind = 0;
  while (kind < std::size(kKinds) && words[0] != kKinds[kind]) ++kind;
  if (kind == std::size(kKinds) || words.size() < 4) return false;
  fault.kind = static_cast<FaultKind>(kind);
  if (!ParseNodes(words[1], fault) || words[2] != "at" ||
      !absl::SimpleAtoi(words[3], &fault.at)) {
    return false;
  }
  if (Lasts(fault.kind)) {
    return words.size() == 6 && words[4] == "for" &&
           absl::ParseDuration(words[5], &fault.lasts);
  }
  fault.heard =
      words.size() == 5 && words[4] == "heard" && fault.kind == FaultKind::kDie;
  return words.size() == 4 || fault.heard;
}

}  // namespace

std::string FaultPlan::ToString() const {
  std::vector<std::string> parts = {
      absl::StrCat("delay ", absl::FormatDuration(delay_max))};
  for (const Fault& fault : faults) parts.push_back(actors::ToString(fault));
  return absl::StrJoin(parts, "; ");
}

absl::StatusOr<FaultPlan> ParseFaultPlan(absl::string_view text) {
  FaultPlan plan;
  for (const absl::string_view part :
       absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(part, ' ', absl::SkipEmpty());
    Fault fault;
    if (words.size() == 2 && words[0] == "delay" &&
        absl::ParseDuration(words[1], &plan.delay_max)) {
      continue;
    }
    if (!ParseFault(words, fault)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", part,
          "\" is no fault; write one as actors/sim/fault_plan.h does"));
    }
    plan.faults.push_back(std::move(fault));
  }
  return plan;
}

}  // namespace troupe::actors
