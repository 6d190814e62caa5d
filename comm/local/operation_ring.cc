#include "comm/local/operation_ring.h"

#include "comm/collective_kinds.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

using Clock = std::chrono::steady_clock;

char* HostAddress(const nn::Tensor& tensor) {
  return !tensor.defined() || tensor.is_meta() || tensor.numel() == 0
             ? nullptr
             : static_cast<char*>(tensor.raw());
}

// Returns the prefix sums of `counts`, from 0: one entry more than counts.
std::vector<std::int64_t> Sums(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> sums = {0};
  for (std::int64_t count : counts) sums.push_back(sums.back() + count);
  return sums;
}

}  // namespace

OperationRing::PairCounts::PairCounts(const Collective& collective)
    : sent(collective.send_counts),
      expected(collective.recv_counts),
      sent_at(Sums(sent)),
      expected_at(Sums(expected)) {}

OperationRing::OperationRing(int size, int in_flight_max)
    : size_(size),
      in_flight_max_(in_flight_max),
      in_flight_log2_(__builtin_ctz(in_flight_max)),
      operations_(new Operation[in_flight_max]),
      slots_(new Slot[static_cast<std::size_t>(in_flight_max) * size]),
      since_(new StartTime[static_cast<std::size_t>(in_flight_max) * size]),
      counts_(new std::unique_ptr<const PairCounts>[static_cast<std::size_t>(
                                                        in_flight_max) *
                                                    size]) {}

std::uint64_t OperationRing::Fill(int rank, std::uint64_t seq,
                                  const Collective& collective,
                                  const Event* event) {
  Slot& slot = slots(seq)[rank];
  const std::uint64_t signature = Pack(collective);
  slot.range = HostAddress(collective.range);
  if (RuleOf(collective.kind).updates) {
    slot.update = collective.update.get();
  } else {
    slot.input =
        collective.input.defined() ? HostAddress(collective.input) : slot.range;
  }
  if (ByCounts(signature)) {
    counts_[IndexOf(seq, rank)] =
        std::make_unique<const PairCounts>(collective);
  }
  if (event != nullptr) slot.event = *event;
  slot.signature.store(signature, std::memory_order_release);
  slot.chunks_done.store(0, std::memory_order_relaxed);
  return signature;
}

void OperationRing::Open(int rank, std::uint64_t seq,
                         std::uint64_t share_chunks) {
  Slot& slot = slots(seq)[rank];
  slot.claim.store(GenerationOf(seq) << 40 | share_chunks << 20,
                   std::memory_order_relaxed);
  slot.stage.store(2 * (seq + 1), std::memory_order_release);
}

int OperationRing::SharesWithChunks(std::uint64_t seq) const {
  const Slot* const all = slots(seq);
  int shares = 0;
  for (int r = 0; r < size_; ++r) {
    const std::uint64_t word = all[r].claim.load(std::memory_order_relaxed);
    if (((word >> 20) & kNextMask) > 0) ++shares;
  }
  return shares;
}

std::vector<Event> OperationRing::TakeEvents() {
  std::vector<Event> events;
  for (std::uint64_t i = 0; i < in_flight_max_ * size_; ++i) {
    events.push_back(std::exchange(slots_[i].event, Event()));
  }
  return events;
}

void OperationRing::SetSince(int rank, std::uint64_t seq) {
  StartTime& since = since_[IndexOf(seq, rank)];
  // The order makes a reader see a time of this collective, or none.
  since.joined.store(0, std::memory_order_relaxed);
  since.ticks.store(Clock::now().time_since_epoch().count(),
                    std::memory_order_release);
  since.joined.store(seq + 1, std::memory_order_release);
}

Clock::time_point OperationRing::Since(int rank, std::uint64_t seq) const {
  const StartTime& since = since_[IndexOf(seq, rank)];
  return since.joined.load(std::memory_order_acquire) == seq + 1
             ? Clock::time_point(Clock::duration(since.ticks.load()))
             : Clock::now();
}

}  // namespace troupe::comm::internal
