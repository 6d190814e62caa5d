#include "actors/program/program_groups.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/fnv_hash.h"
#include "comm/fabric.h"

namespace troupe::actors {
namespace {

// Returns a number that the group has in all its processes. Two groups of one
// process with the same one are refused (comm::Fabric::MakeGroup()); with a
// hundred groups that happens once in 1,600 programs.
std::uint32_t KeyOf(const std::vector<int>& members, int number) {
  base::FnvHash hash;
  hash.Add(static_cast<std::uint64_t>(number));
  for (int member : members) hash.Add(static_cast<std::uint64_t>(member));
  // The low bits of the hash alone are those of the words' low bits.
  return static_cast<std::uint32_t>(hash.value() >> 32) % comm::kGroupKeysMax;
}

}  // namespace

absl::Status ProgramGroups::Check(int rank,
                                  const std::vector<int>& members) const {
  std::set<int> seen;
  for (int member : members) {
    if (member < 0 || member >= ranks_) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", member, " of a group must be from 0 to ",
                       ranks_ - 1, ", as the ranks of the program are"));
    }
    if (!seen.insert(member).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a group has rank ", member, " twice; name each of its ranks once"));
    }
  }
  if (seen.count(rank) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", rank, " is not in the group {", absl::StrJoin(members, ", "),
        "} that it makes; call NewGroup() on the ranks of the group alone"));
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
  Made& made = groups_[{members, number}];
  if (made.handles.empty()) {
    comm::FabricGroupOptions options;
    options.name = absl::StrCat("{", absl::StrJoin(members, ", "), "}");
    if (number > 0) absl::StrAppend(&options.name, " (", number + 1, ")");
    options.ranks = members;
    options.key = KeyOf(members, number);
    absl::StatusOr<comm::Group> group = make_group_(options);
    if (!group.ok()) {
      groups_.erase({members, number});
      return group.status();
    }
    for (std::unique_ptr<comm::Communicator>& handle : *group) {
      made.here.push_back(handle != nullptr);
      made.handles.push_back(std::move(handle));
    }
    for (std::size_t i = 0; i < members.size() && !keeps_; ++i) {
      if (left_[members[i]]) of_others.push_back(std::move(made.handles[i]));
    }
  }
  return made.handles[place];
}

ProgramGroups::Handles ProgramGroups::Remove(int rank) {
  Handles removed;
  absl::MutexLock lock(&mutex_);
  left_[rank] = true;
  if (keeps_) return removed;
  for (auto& [key, made] : groups_) {
    const std::vector<int>& members = key.first;
    const auto found = std::find(members.begin(), members.end(), rank);
    if (found == members.end()) continue;
    removed.push_back(std::move(made.handles[found - members.begin()]));
  }
  return removed;
}

void ProgramGroups::Leave(int rank) {
  // Their destruction calls peers that wait, so it needs no lock held.
  Remove(rank).clear();
}

std::vector<ProgramGroups::Listed> ProgramGroups::All() const {
  std::vector<Listed> all;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, made] : groups_) {
    for (const auto& handle : made.handles) {
      if (handle != nullptr) all.push_back({key.first, made.here, handle});
    }
  }
  return all;
}

std::vector<int> ProgramGroups::WaitsInVain(const Listed& listed,
                                            const comm::Waiting& waiting,
                                            const std::vector<bool>& returned) {
  std::vector<int> gone;
  for (int place : waiting.ranks) {
    // A rank of another process may have returned after it has taken part.
    if (!waiting.certain && !listed.here[place]) continue;
    const int rank = listed.members[place];
    if (!returned[rank]) return {};
    gone.push_back(rank);
  }
  return gone;
}

void ProgramGroups::AbortStale(const std::vector<bool>& returned) {
  std::set<std::string> stale;
  for (const Listed& listed : All()) {
    comm::Communicator& comm = *listed.comm;
    for (const comm::Waiting& waiting : comm.Waits()) {
      const std::vector<int> gone = WaitsInVain(listed, waiting, returned);
      if (gone.empty()) continue;
      const std::string wait =
          absl::StrCat(comm.rank(), " in ", absl::StrJoin(listed.members, ","),
                       ": ", waiting.collective, " ", waiting.what, " ",
                       waiting.since.time_since_epoch().count());
      stale.insert(wait);
      if (stale_.count(wait) == 0) continue;
      comm.Abort(absl::UnavailableError(
          absl::StrCat("rank ", absl::StrJoin(gone, ", "),
                       gone.size() == 1 ? " has" : " have",
                       " returned and will not take part in ", waiting.what)));
    }
  }
  stale_ = std::move(stale);
}

void ProgramGroups::Abort(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return;
    aborted_ = why;
  }
  for (const Listed& listed : All()) listed.comm->Abort(why);
}

}  // namespace troupe::actors
