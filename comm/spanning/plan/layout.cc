#include "comm/spanning/plan/layout.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/reduction/reduction_tree.h"

namespace troupe::comm::internal {

GroupLayout::GroupLayout(const std::vector<int>& process_of, int process) {
  const std::set<int> processes(process_of.begin(), process_of.end());
  processes_.assign(processes.begin(), processes.end());
  ranks_.resize(processes_.size());
  nodes_of_.resize(processes_.size());
  self_ = member_at(process);
  for (std::size_t r = 0; r < process_of.size(); ++r) {
    const int member = member_at(process_of[r]);
    member_of_.push_back(member);
    place_of_.push_back(static_cast<int>(ranks_[member].size()));
    ranks_[member].push_back(static_cast<int>(r));
  }
  AddNodes(0, size());
}

int GroupLayout::member_at(int process) const {
  const auto found =
      std::lower_bound(processes_.begin(), processes_.end(), process);
  if (found == processes_.end() || *found != process) return -1;
  return static_cast<int>(found - processes_.begin());
}

void GroupLayout::AddNodes(int begin, int end) {
  const int member = member_of_[begin];
  const bool together =
      std::all_of(member_of_.begin() + begin, member_of_.begin() + end,
                  [member](int other) { return other == member; });
  if (together) {
    nodes_of_[member].push_back(static_cast<int>(nodes_.size()));
    nodes_.push_back({begin, end, member});
    return;
  }
  const int middle = begin + TreeSplit(end - begin);
  AddNodes(begin, middle);
  AddNodes(middle, end);
}

std::string Ranks(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "));
}

}  // namespace troupe::comm::internal
