#include "comm/local/group_waits.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm/signature.h"

namespace troupe::comm::internal {

std::string RankText(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "));
}

std::vector<Waiting> WaitsOf(const OperationRing& ring,
                             const Messages& messages, int rank) {
  std::vector<Waiting> waits;
  for (std::uint64_t i = 0; i < ring.in_flight_max(); ++i) {
    const OperationRing::Slot& slot = ring.slots(i)[rank];
    const std::uint64_t stage = slot.stage.load(std::memory_order_acquire);
    if (stage == 0) continue;
    const std::uint64_t seq = stage / 2 - 1;
    const Collective started = Unpack(slot.signature.load());
    Waiting wait;
    wait.what =
        absl::StrCat(started.ToString(), ", collective ", seq, " of the group");
    wait.collective = static_cast<std::int64_t>(seq);
    for (int r = 0; r < ring.size(); ++r) {
      const std::uint64_t theirs = ring.slots(seq)[r].stage.load();
      if (r != rank && theirs < 2 * (seq + 1) + 1) wait.ranks.push_back(r);
    }
    wait.since = ring.Since(rank, seq);
    // The slot may be that of a later collective by now.
    if (ring.finished(seq) || slot.stage.load() / 2 != seq + 1) continue;
    waits.push_back(std::move(wait));
  }
  std::sort(waits.begin(), waits.end(), [](const Waiting& a, const Waiting& b) {
    return a.collective < b.collective;
  });
  for (Waiting& wait : messages.pending(rank).Waits(rank, ring.size())) {
    waits.push_back(std::move(wait));
  }
  return waits;
}

std::string DescribeWait(const OperationRing& ring, int rank,
                         std::uint64_t seq) {
  std::vector<int> absent;
  std::vector<int> unarmed;
  for (int r = 0; r < ring.size(); ++r) {
    const OperationRing::Stage stage = ring.StageOf(seq, r);
    if (stage == OperationRing::Stage::kAbsent) absent.push_back(r);
    if (stage == OperationRing::Stage::kJoined) unarmed.push_back(r);
  }
  const Collective started = Unpack(ring.slots(seq)[rank].signature.load());
  std::string text =
      absl::StrCat(started.ToString(), ", collective ", seq, " of the group:");
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
