#include "comm/local/agreement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "comm/flow.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

absl::Status Mismatch(const OperationRing& ring, std::uint64_t seq, int a,
                      int b) {
  const OperationRing::Slot* const all = ring.slots(seq);
  if (a > b) std::swap(a, b);
  return Differs(seq, absl::StrCat("rank ", a, " started ",
                                   Unpack(all[a].signature.load()).ToString(),
                                   ", rank ", b, " started ",
                                   Unpack(all[b].signature.load()).ToString()));
}

// Returns whether the slots may be those of a later operation by now.
bool IsOver(const OperationRing& ring, std::uint64_t seq) {
  return ring.operation(seq).finished.load(std::memory_order_acquire) > seq;
}

}  // namespace

absl::Status CheckAgreement(const OperationRing& ring, int rank,
                            std::uint64_t seq) {
  const OperationRing::Slot* const all = ring.slots(seq);
  const std::uint64_t signature = ring.signature(seq, rank);
  for (int r = 0; r < ring.size(); ++r) {
    if (all[r].signature.load(std::memory_order_acquire) == signature) continue;
    return IsOver(ring, seq) ? absl::OkStatus() : Mismatch(ring, seq, r, rank);
  }
  return absl::OkStatus();
}

absl::Status CompareWithJoined(const OperationRing& ring, int rank,
                               std::uint64_t seq) {
  const OperationRing::Slot* const all = ring.slots(seq);
  absl::Status differs;
  for (int r = 0; r < ring.size(); ++r) {
    if (ring.StageOf(seq, r) != OperationRing::Stage::kAbsent &&
        all[r].signature.load(std::memory_order_acquire) !=
            ring.signature(seq, rank) &&
        !IsOver(ring, seq)) {
      differs = Mismatch(ring, seq, r, rank);
    }
  }
  return differs;
}

absl::Status CompareCounts(const OperationRing& ring, std::uint64_t seq) {
  for (int from = 0; from < ring.size(); ++from) {
    for (int to = 0; to < ring.size(); ++to) {
      const std::int64_t sent = ring.counts(seq, from).sent[to];
      const std::int64_t expected = ring.counts(seq, to).expected[from];
      if (sent == expected) continue;
      return Differs(seq, UnequalCounts(from, sent, to, expected).message());
    }
  }
  return absl::OkStatus();
}

absl::Status Differs(std::uint64_t seq, absl::string_view how) {
  return absl::FailedPreconditionError(
      absl::StrCat("collective ", seq, " of the group differs: ", how));
}

}  // namespace troupe::comm::internal
