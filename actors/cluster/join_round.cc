#include "actors/cluster/join_round.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

std::string Name(const Member& member) {
  return absl::StrCat("process ", member.process, " (", member.host, ", pid ",
                      member.pid, ")");
}

std::map<std::string, std::string> LinesOf(const std::string& text) {
  std::map<std::string, std::string> values;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty()) continue;
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(line, absl::MaxSplits(" = ", 1));
    values.emplace(field.first, field.second);
  }
  return values;
}

std::string Value(const std::map<std::string, std::string>& values,
                  const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? "not set" : found->second;
}

}  // namespace

std::string FirstDifference(const std::string& a_text, const std::string& a,
                            const std::string& b_text, const std::string& b) {
  if (a_text == b_text) return "";
  const std::map<std::string, std::string> of_a = LinesOf(a_text);
  const std::map<std::string, std::string> of_b = LinesOf(b_text);
  std::map<std::string, std::string> names = of_a;
  names.insert(of_b.begin(), of_b.end());
  for (const auto& [name, value] : names) {
    const std::string in_a = Value(of_a, name), in_b = Value(of_b, name);
    if (in_a == in_b) continue;
    return absl::StrCat(name, " is ", in_a, " in ", a, " and ", in_b, " in ",
                        b);
  }
  return absl::StrCat("the order of settings differs between ", a, " and ", b);
}

absl::Status CheckMembers(const std::vector<Member>& members, int processes) {
  const auto wrong = [](const std::string& what) {
    return absl::InternalError(absl::StrCat(
        "process 0 sent a wrong list of the job's processes: ", what,
        "; run the same build of Troupe in all processes"));
  };
  if (static_cast<int>(members.size()) != processes) {
    return wrong(absl::StrCat("it has ", members.size(), " of ", processes,
                              " processes"));
  }
  for (int process = 0; process < processes; ++process) {
    const Member& member = members[process];
    if (member.process != process) {
      return wrong(
          absl::StrCat(Name(member), " is in the place of process ", process));
    }
    if (member.ranks < 1 || member.ranks > kRanksMax) {
      return wrong(absl::StrCat(Name(member), " has ", member.ranks, " ranks"));
    }
  }
  return absl::OkStatus();
}

absl::Status JoinRound::Compare(const Join& join) const {
  const auto other = std::find_if(joins_.begin(), joins_.end(),
                                  [](const auto& one) { return one; });
  if (other == joins_.end()) return absl::OkStatus();
  const std::string a = Name((*other)->member), b = Name(join.member);
  std::string difference =
      FirstDifference(absl::StrCat("the version = ", (*other)->version), a,
                      absl::StrCat("the version = ", join.version), b);
  if (difference.empty()) {
    difference = FirstDifference((*other)->agreement, a, join.agreement, b);
  }
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the processes of a job must agree, but ", difference));
}

absl::Status JoinRound::Add(const Join& join) {
  const int processes = static_cast<int>(joins_.size());
  const Member& member = join.member;
  if (join.processes != processes || member.process < 0 ||
      member.process >= processes) {
    return absl::InvalidArgumentError(absl::StrCat(
        Name(member), " comes as one of ", join.processes,
        " processes, and process 0 waits for ", processes,
        ", numbered from 0; start all with one number of processes"));
  }
  if (member.ranks < 1 || member.ranks > kRanksMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(member), " has ", member.ranks,
                     " ranks; must be 1 to ", kRanksMax));
  }
  std::optional<Join>& place = joins_[member.process];
  if (place) {
    return absl::InvalidArgumentError(absl::StrCat(
        "two processes come with number ", member.process, ": ",
        Name(place->member), " and ", Name(member), "; give each its own"));
  }
  TROUPE_RETURN_IF_ERROR(Compare(join));
  place = join;
  ++joined_;
  return absl::OkStatus();
}

std::string JoinRound::Describe(int process) const {
  const std::optional<Join>& join = joins_[process];
  return join ? Name(join->member) : absl::StrCat("process ", process);
}

std::vector<Member> JoinRound::Members() const {
  std::vector<Member> members;
  for (const std::optional<Join>& join : joins_) {
    TROUPE_CHECK(join.has_value(), "the round is complete");
    members.push_back(join->member);
  }
  return members;
}

std::string JoinRound::DescribeMissing() const {
  std::string missing;
  for (std::size_t process = 0; process < joins_.size(); ++process) {
    if (joins_[process]) continue;
    absl::StrAppend(&missing, missing.empty() ? "process " : ", process ",
                    process);
  }
  return absl::StrCat(missing, " did not join");
}

}  // namespace troupe::actors
