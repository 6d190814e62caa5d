#include "comm/nccl/local_ranks.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/signature.h"

namespace troupe::comm::internal {

LocalRanks::LocalRanks(int size, std::vector<int> local, int in_flight_max)
    : count_(static_cast<int>(local.size())),
      in_flight_max_(in_flight_max),
      ranks_(size) {
  for (int rank : local) ranks_[rank].local = true;
}

absl::StatusOr<std::uint64_t> LocalRanks::Admit(int rank,
                                                std::uint64_t signature) {
  absl::MutexLock lock(&mutex_);
  const std::uint64_t number = ranks_[rank].next;
  if (number >= first_ + in_flight_max_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "rank ", rank, " is ", number - first_,
        " collectives ahead of its peers, as many as in_flight_max allows; "
        "wait for them first"));
  }
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer) {
    if (!ranks_[peer].gone || ranks_[peer].next > number) continue;
    return absl::UnavailableError(
        absl::StrCat("rank ", peer, " left the group, and rank ", rank,
                     " needs it for collective ", number, " of the group, ",
                     Unpack(signature).ToString()));
  }
  if (number == first_ + started_.size()) {
    started_.push_back({signature, rank, 0});
  }
  Started& started = started_[number - first_];
  if (started.signature != signature) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the ranks differ in collective ", number, " of the group: rank ",
        started.first, " started ", Unpack(started.signature).ToString(),
        ", rank ", rank, " started ", Unpack(signature).ToString()));
  }
  ++ranks_[rank].next;
  if (++started.count == count_) {
    // Complete, and so the oldest: its ranks have started all earlier ones
    // before.
    started_.pop_front();
    ++first_;
  }
  return number;
}

std::vector<int> LocalRanks::Missing(int rank, std::uint64_t collective) const {
  absl::MutexLock lock(&mutex_);
  std::vector<int> missing;
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer) {
    const Rank& other = ranks_[peer];
    const bool here = other.local && other.next > collective;
    if (static_cast<int>(peer) == rank || here) continue;
    missing.push_back(static_cast<int>(peer));
  }
  return missing;
}

std::string LocalRanks::LateText(int rank, std::uint64_t collective,
                                 absl::Duration waited) const {
  const std::string text = absl::StrCat("waited ", absl::FormatDuration(waited),
                                        " for the other ranks");
  const std::vector<int> missing = Missing(rank, collective);
  if (missing.empty()) return text;
  return absl::StrCat(text, "; ", missing.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(missing, ", "),
                      missing.size() == 1 ? " has" : " have",
                      " not started it, as far as this process knows");
}

bool LocalRanks::Leave(int rank) {
  absl::MutexLock lock(&mutex_);
  ranks_[rank].gone = true;
  for (const Rank& peer : ranks_) {
    if (peer.next > ranks_[rank].next) return true;
  }
  return false;
}

}  // namespace troupe::comm::internal
