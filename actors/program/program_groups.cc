#include "actors/program/program_groups.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace troupe::actors {

absl::Status ProgramGroups::Check(int rank,
                                  const std::vector<int>& members) const {
  std::set<int> seen;
  for (int member : members) {
    if (member < 0 || member >= ranks_) {
      return absl::InvalidArgumentError(
          absl::StrCat("a group has rank ", member,
                       ", and the program has the ranks 0 to ", ranks_ - 1));
    }
    if (!seen.insert(member).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("a group has rank ", member, " twice"));
    }
  }
  if (seen.count(rank) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", rank, " is not in the group {", absl::StrJoin(members, ", "),
        "} that it makes; only the group's ranks make it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<comm::Communicator>> ProgramGroups::Join(
    int rank, const std::vector<int>& members) {
  TROUPE_RETURN_IF_ERROR(Check(rank, members));
  const std::ptrdiff_t place =
      std::find(members.begin(), members.end(), rank) - members.begin();
  Handles of_others;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  TROUPE_RETURN_IF_ERROR(aborted_);
  const int number = joined_[{rank, members}]++;
  Handles& handles = groups_[{members, number}];
  if (handles.empty()) {
    comm::LocalGroupOptions options;
    options.size = static_cast<int>(members.size());
    for (std::unique_ptr<comm::Communicator>& made : make_group_(options)) {
      handles.push_back(std::move(made));
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (left_[members[i]]) of_others.push_back(std::move(handles[i]));
    }
  }
  return handles[place];
}

ProgramGroups::Handles ProgramGroups::Remove(int rank) {
  Handles removed;
  absl::MutexLock lock(&mutex_);
  left_[rank] = true;
  for (auto& [key, handles] : groups_) {
    const std::vector<int>& members = key.first;
    const auto found = std::find(members.begin(), members.end(), rank);
    if (found == members.end()) continue;
    removed.push_back(std::move(handles[found - members.begin()]));
  }
  return removed;
}

void ProgramGroups::Leave(int rank) {
  // Their destruction calls peers that wait, so it needs no lock held.
  Remove(rank).clear();
}

void ProgramGroups::Abort(const absl::Status& why) {
  Handles all;
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return;
    aborted_ = why;
    for (const auto& [key, handles] : groups_) {
      for (const auto& handle : handles) {
        if (handle != nullptr) all.push_back(handle);
      }
    }
  }
  for (const auto& handle : all) handle->Abort(why);
}

}  // namespace troupe::actors
