// Reports what ranks wait for, and since when: for errors, and for the
// detection of ranks that wait for each other.

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/local/group_state.h"

namespace troupe::comm::internal {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::string RankText(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "));
}

void GroupState::SetSince(int rank, std::uint64_t seq) {
  Since& since = this->since(seq, rank);
  // The order makes a reader see a time of this collective, or none.
  since.joined.store(0, std::memory_order_relaxed);
  since.ticks.store(Clock::now().time_since_epoch().count(),
                    std::memory_order_release);
  since.joined.store(seq + 1, std::memory_order_release);
}

std::vector<Waiting> GroupState::Waits(int rank) const {
  return phase_.load() == Phase::kAborted ? waits_at_abort_[rank]
                                          : WaitsNow(rank);
}

std::vector<Waiting> GroupState::WaitsNow(int rank) const {
  std::vector<Waiting> waits;
  for (std::uint64_t i = 0; i < in_flight_max_; ++i) {
    const Slot& slot = slots(i)[rank];
    const std::uint64_t stage = slot.stage.load(std::memory_order_acquire);
    if (stage == 0) continue;
    const std::uint64_t seq = stage / 2 - 1;
    const Collective started = Unpack(slot.signature.load());
    Waiting wait;
    wait.what =
        absl::StrCat(started.ToString(), ", collective ", seq, " of the group");
    wait.collective = static_cast<std::int64_t>(seq);
    for (int r = 0; r < size_; ++r) {
      const std::uint64_t theirs = slots(seq)[r].stage.load();
      if (r != rank && theirs < 2 * (seq + 1) + 1) wait.ranks.push_back(r);
    }
    const Since& since = this->since(seq, rank);
    wait.since = Clock::now();
    if (since.joined.load(std::memory_order_acquire) == seq + 1) {
      wait.since = Clock::time_point(Clock::duration(since.ticks.load()));
    }
    // The slot may be that of a later collective by now.
    if (finished(seq) || slot.stage.load() / 2 != seq + 1) continue;
    waits.push_back(std::move(wait));
  }
  std::sort(waits.begin(), waits.end(), [](const Waiting& a, const Waiting& b) {
    return a.collective < b.collective;
  });
  for (Waiting& wait : messages_.pending(rank).Waits(rank, size_)) {
    waits.push_back(std::move(wait));
  }
  return waits;
}

std::string GroupState::DescribeWait(int rank, std::uint64_t seq) const {
  const Slot* const all = slots(seq);
  std::vector<int> absent;
  std::vector<int> unarmed;
  for (int r = 0; r < size_; ++r) {
    const std::uint64_t stage = all[r].stage.load(std::memory_order_acquire);
    if (stage / 2 != seq + 1) {
      absent.push_back(r);
    } else if (stage % 2 == 0) {
      unarmed.push_back(r);
    }
  }
  std::string text = absl::StrCat(Unpack(all[rank].signature.load()).ToString(),
                                  ", collective ", seq, " of the group:");
  if (!absent.empty()) {
    absl::StrAppend(&text, " not started by ", RankText(absent));
  }
  if (!unarmed.empty()) {
    absl::StrAppend(&text, absent.empty() ? " " : "; ", RankText(unarmed),
                    " started it after something that is not done");
  }
  if (absent.empty() && unarmed.empty()) {
    absl::StrAppend(&text, " all ranks have started it, and work on it");
  }
  return text;
}

}  // namespace troupe::comm::internal
