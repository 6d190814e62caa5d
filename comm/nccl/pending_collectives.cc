#include "comm/nccl/pending_collectives.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace troupe::comm::internal {

const PendingCollective& PendingCollectives::Add(
    std::uint64_t number, absl::Span<const Collective> collectives,
    absl::Time now) {
  PendingCollective& added = all_.emplace_back();
  added.number = number;
  added.what = absl::StrCat(
      collectives[0].ToString(), ", collective ", number, " of the group",
      collectives.size() == 1
          ? ""
          : absl::StrCat(", and ", collectives.size() - 1, " with it"));
  added.done = Event::Make();
  added.since = now;
  added.started = std::chrono::steady_clock::now();
  return added;
}

void PendingCollectives::Remove(std::uint64_t number) {
  const auto found = absl::c_find_if(all_, [&](const PendingCollective& each) {
    return each.number == number;
  });
  if (found != all_.end()) all_.erase(found);
}

std::deque<PendingCollective> PendingCollectives::TakeAll() {
  return std::exchange(all_, {});
}

const PendingCollective* PendingCollectives::Find(std::uint64_t number) const {
  const auto found = absl::c_find_if(all_, [&](const PendingCollective& each) {
    return each.number == number;
  });
  return found == all_.end() ? nullptr : &*found;
}

std::vector<Waiting> PendingCollectives::Waits(const LocalRanks& ranks,
                                               int rank, bool certain) const {
  std::vector<Waiting> waits;
  for (const PendingCollective& pending : all_) {
    Waiting waiting;
    waiting.collective = static_cast<std::int64_t>(pending.number);
    waiting.what = pending.what;
    waiting.since = pending.started;
    waiting.ranks = ranks.Missing(rank, pending.number);
    waiting.certain = certain;
    waits.push_back(std::move(waiting));
  }
  return waits;
}

}  // namespace troupe::comm::internal
