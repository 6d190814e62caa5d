#include "actors/setup/roster.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace troupe::actors {

Roster::Roster(std::vector<Member> members) : members_(std::move(members)) {
  first_rank_.push_back(0);
  for (const Member& member : members_) {
    first_rank_.push_back(first_rank_.back() + member.ranks);
  }
}

int Roster::ProcessOf(int rank) const {
  const auto after =
      std::upper_bound(first_rank_.begin(), first_rank_.end(), rank);
  return static_cast<int>(after - first_rank_.begin()) - 1;
}

std::vector<int> Roster::ProcessesOfRanks() const {
  std::vector<int> processes;
  for (int process = 0; process < this->processes(); ++process) {
    processes.insert(processes.end(), members_[process].ranks, process);
  }
  return processes;
}

std::string Roster::Describe(int process) const {
  const Member& member = members_[process];
  const int first = FirstRankOf(process);
  const int last = FirstRankOf(process + 1) - 1;
  const std::string ranks = first == last
                                ? absl::StrCat("rank ", first)
                                : absl::StrCat("ranks ", first, " to ", last);
  return absl::StrCat("process ", process, " (", member.host, ", pid ",
                      member.pid, ", ", ranks, ")");
}

}  // namespace troupe::actors
