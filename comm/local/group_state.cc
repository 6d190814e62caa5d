#include "comm/local/group_state.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/exception_text.h"
#include "comm/reduction_tree.h"

namespace troupe::comm::internal {
namespace {

constexpr std::uint64_t kOneEvent = std::uint64_t{1} << 32;
constexpr std::uint64_t kNextMask = (std::uint64_t{1} << 20) - 1;

static_assert(kLocalGroupSizeMax <= kReductionSourcesMax,
              "a group is one tree");
static_assert(kLocalGroupSizeMax <= kRootsMax, "a signature holds any root");

std::string Ranks(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "));
}

// "f32 and f64 replicas"
std::string Describe(absl::Span<const nn::Tensor> replicas) {
  if (replicas.empty()) return "no replicas";
  return absl::StrCat(
      absl::StrJoin(replicas, " and ",
                    [](std::string* out, const nn::Tensor& replica) {
                      absl::StrAppend(out, nn::DTypeName(replica.dtype()));
                    }),
      " replicas");
}

// Code of a user: what it throws must not pass the group by.
absl::Status ApplyCaught(ReplicaUpdate& update, std::int64_t begin,
                         const nn::Tensor& sum) {
  try {
    return update.Apply(begin, sum);
  } catch (...) {
    return absl::InternalError(base::ExceptionText(std::current_exception()));
  }
}

}  // namespace

GroupState::GroupState(const LocalGroupOptions& options)
    : size_(options.size),
      chunk_bytes_(options.chunk_bytes),
      in_flight_max_(options.in_flight_max),
      in_flight_log2_(__builtin_ctz(options.in_flight_max)),
      operations_(new Operation[options.in_flight_max]),
      slots_(new Slot[static_cast<std::size_t>(options.in_flight_max) *
                      options.size]),
      ranks_(new Rank[options.size]) {}

void GroupState::Join(int rank, std::uint64_t seq, const Collective& collective,
                      const Event& event, bool with_event) {
  Slot& slot = slots(seq)[rank];
  const std::uint64_t signature = Pack(collective);
  const Cut cut(signature, size_, chunk_bytes_);
  const std::uint64_t block_chunks =
      cut.BlockBegin(rank + 1) - cut.BlockBegin(rank);
  slot.range = KindOf(signature) == CollectiveKind::kBarrier ||
                       collective.range.numel() == 0
                   ? nullptr
                   : static_cast<char*>(collective.range.raw());
  slot.update = collective.update.get();
  if (with_event) slot.event = event;
  slot.signature.store(signature, std::memory_order_relaxed);
  slot.chunks_done.store(0, std::memory_order_relaxed);
  slot.claim.store(generation(seq) << 40 | block_chunks << 20,
                   std::memory_order_relaxed);
  slot.stage.store(2 * (seq + 1), std::memory_order_release);
}

void GroupState::Arm(int rank, std::uint64_t seq, bool with_event,
                     Effects* effects) {
  Operation& operation = this->operation(seq);
  slots(seq)[rank].stage.store(2 * (seq + 1) + 1, std::memory_order_release);
  const std::uint64_t signature =
      slots(seq)[rank].signature.load(std::memory_order_relaxed);
  const std::uint64_t mine = with_event ? kOneEvent + 1 : 1;
  const std::uint64_t armed = operation.armed.fetch_add(mine) + mine;
  if (static_cast<std::uint32_t>(armed) < static_cast<std::uint32_t>(size_)) {
    // A rank that goes away looks at `armed` after it has said so.
    if (departed_first_.load() <= seq) effects->failure = Departed(seq);
    return;
  }
  // Whoever armed before saw no peer yet, perhaps: the last one sees all.
  if (!Agree(rank, seq, effects)) return;
  if (Cut(signature, size_, chunk_bytes_).chunks() == 0) {
    Finish(seq, effects);
  } else if (armed >= kOneEvent) {
    runnable_version_.fetch_add(1);
    effects->wake = true;
  }
}

bool GroupState::Claim(Slot* slot, std::uint64_t seq, std::uint64_t* chunk,
                       std::uint64_t* block_chunks) const {
  std::uint64_t word = slot->claim.load(std::memory_order_relaxed);
  while (word >> 40 == generation(seq)) {
    *chunk = word & kNextMask;
    *block_chunks = (word >> 20) & kNextMask;
    if (*chunk == *block_chunks) return false;
    if (slot->claim.compare_exchange_weak(word, word + 1,
                                          std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

bool GroupState::WorkOn(int rank, std::uint64_t seq, Effects* effects) {
  if (!effects->failure.ok()) return false;
  Slot* const all = slots(seq);
  for (int i = 0; i < size_; ++i) {
    const int block = rank + i < size_ ? rank + i : rank + i - size_;
    std::uint64_t chunk;
    std::uint64_t block_chunks;
    if (!Claim(&all[block], seq, &chunk, &block_chunks)) continue;
    // The claim holds the operation: it cannot finish without this chunk.
    const std::uint64_t signature =
        all[rank].signature.load(std::memory_order_relaxed);
    const Cut cut(signature, size_, chunk_bytes_);
    if (!Agree(rank, seq, effects)) return false;
    char* ranges[kLocalGroupSizeMax];
    Gather(seq, ranges);
    effects->failure =
        Compute(rank, seq, cut, cut.BlockBegin(block) + chunk, ranges);
    if (!effects->failure.ok()) return false;
    const bool block_done =
        block_chunks == 1 ||
        all[block].chunks_done.fetch_add(1, std::memory_order_acq_rel) + 1 ==
            block_chunks;
    if (block_done &&
        operation(seq).blocks_done.fetch_add(1, std::memory_order_acq_rel) +
                1 ==
            cut.blocks_with_chunks()) {
      Finish(seq, effects);
    }
    return true;
  }
  return false;
}

bool GroupState::Agree(int rank, std::uint64_t seq, Effects* effects) const {
  const Slot* const all = slots(seq);
  const std::uint64_t signature =
      all[rank].signature.load(std::memory_order_relaxed);
  for (int r = 0; r < size_; ++r) {
    if (all[r].signature.load(std::memory_order_relaxed) != signature) {
      effects->failure = Mismatch(seq, std::min(r, rank), std::max(r, rank));
      return false;
    }
  }
  return true;
}

void GroupState::Gather(std::uint64_t seq, char** ranges) const {
  for (int r = 0; r < size_; ++r) ranges[r] = slots(seq)[r].range;
}

struct GroupState::Piece {
  Reduction reduction;
  std::int64_t begin = 0;
  std::int64_t count = 0;

  std::size_t BytesOf(nn::DType dtype) const {
    return static_cast<std::size_t>(count) * nn::SizeOf(dtype);
  }
};

absl::Status GroupState::Compute(int rank, std::uint64_t seq, const Cut& cut,
                                 std::uint64_t chunk, char* const* ranges) {
  const std::uint64_t signature =
      slots(seq)[rank].signature.load(std::memory_order_relaxed);
  const CollectiveKind kind = KindOf(signature);
  Piece piece;
  piece.reduction = {OpOf(signature), DTypeOf(signature), size_};
  piece.begin = cut.ElementBegin(chunk);
  piece.count = cut.ElementEnd(chunk) - piece.begin;
  const std::size_t offset =
      static_cast<std::size_t>(piece.begin) * nn::SizeOf(piece.reduction.dtype);
  void* pieces[kLocalGroupSizeMax];
  for (int r = 0; r < size_; ++r) pieces[r] = ranges[r] + offset;
  if (kind == CollectiveKind::kBroadcast) {
    const int root = RootOf(signature);
    const std::size_t bytes = piece.BytesOf(piece.reduction.dtype);
    for (int r = 0; r < size_; ++r) {
      if (r != root) std::memcpy(pieces[r], pieces[root], bytes);
    }
    return absl::OkStatus();
  }
  const auto n = static_cast<std::size_t>(size_);
  const absl::Span<const void* const> sources(pieces, n);
  if (kind == CollectiveKind::kReduceUpdate) {
    return UpdateReplicas(rank, seq, piece, sources);
  }
  ReduceTree(piece.reduction, sources, absl::Span<void* const>(pieces, n),
             static_cast<std::size_t>(piece.count));
  return absl::OkStatus();
}

absl::Status GroupState::UpdateReplicas(int rank, std::uint64_t seq,
                                        const Piece& piece,
                                        absl::Span<const void* const> sources) {
  const nn::DType dtype = piece.reduction.dtype;
  nn::Tensor& scratch = ranks_[rank].sum;
  if (!scratch.defined() || scratch.dtype() != dtype ||
      scratch.numel() < piece.count) {
    TROUPE_ASSIGN_OR_RETURN(
        scratch, nn::Tensor::Create({piece.count}, dtype, allocator_));
  }
  const nn::Tensor sum = scratch.FlatView(0, {piece.count});
  void* const to = sum.raw();
  ReduceTree(piece.reduction, sources, absl::Span<void* const>(&to, 1),
             static_cast<std::size_t>(piece.count));
  TROUPE_RETURN_IF_ERROR(CompareReplicas(rank, seq));
  const Slot* const all = slots(seq);
  ReplicaUpdate& mine = *all[rank].update;
  TROUPE_RETURN_IF_ERROR(ApplyCaught(mine, piece.begin, sum));
  const absl::Span<const nn::Tensor> updated = mine.replicas();
  for (int r = 0; r < size_; ++r) {
    if (r == rank) continue;
    const absl::Span<const nn::Tensor> theirs = all[r].update->replicas();
    for (std::size_t i = 0; i < updated.size(); ++i) {
      const std::size_t bytes = piece.BytesOf(updated[i].dtype());
      const std::size_t offset = static_cast<std::size_t>(piece.begin) *
                                 nn::SizeOf(updated[i].dtype());
      std::memcpy(static_cast<char*>(theirs[i].raw()) + offset,
                  static_cast<const char*>(updated[i].raw()) + offset, bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status GroupState::CompareReplicas(int rank, std::uint64_t seq) const {
  const Slot* const all = slots(seq);
  const absl::Span<const nn::Tensor> mine = all[rank].update->replicas();
  for (int r = 0; r < size_; ++r) {
    const absl::Span<const nn::Tensor> theirs = all[r].update->replicas();
    const bool alike =
        std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                   [](const nn::Tensor& a, const nn::Tensor& b) {
                     return a.dtype() == b.dtype();
                   });
    if (alike) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "collective ", seq, " of the group differs: rank ", rank, " updates ",
        Describe(mine), ", rank ", r, " updates ", Describe(theirs)));
  }
  return absl::OkStatus();
}

void GroupState::Finish(std::uint64_t seq, Effects* effects) {
  Operation& operation = this->operation(seq);
  if (operation.armed.load(std::memory_order_relaxed) >= kOneEvent) {
    Slot* const all = slots(seq);
    for (int r = 0; r < size_; ++r) {
      effects->finished.push_back(std::exchange(all[r].event, Event()));
    }
  }
  operation.blocks_done.store(0, std::memory_order_relaxed);
  operation.armed.store(0, std::memory_order_relaxed);
  operation.finished.store(seq + 1, std::memory_order_release);
}

void GroupState::Apply(Effects* effects) {
  if (!effects->failure.ok()) Abort(effects->failure);
  if (effects->wake) Wake(/*idle_only=*/true);
  // A callback may come back here with effects of its own.
  const auto finished = std::exchange(effects->finished, {});
  effects->wake = false;
  effects->failure = absl::OkStatus();
  for (const Event& event : finished) event.Complete(absl::OkStatus());
}

void GroupState::ArmLater(int rank, std::uint64_t seq,
                          const absl::Status& after) {
  Effects effects;
  others_inside_.fetch_add(1);
  if (!aborted()) {
    if (after.ok()) {
      Arm(rank, seq, /*with_event=*/true, &effects);
    } else {
      const std::uint64_t signature =
          slots(seq)[rank].signature.load(std::memory_order_relaxed);
      effects.failure = absl::Status(
          after.code(),
          absl::StrCat("rank ", rank, " could not begin ",
                       Unpack(signature).ToString(), ": ", after.message()));
    }
  }
  others_inside_.fetch_sub(1);
  Apply(&effects);
}

void GroupState::Abort(absl::Status status) {
  if (status.ok()) status = absl::CancelledError("the group was aborted");
  {
    absl::MutexLock lock(&mutex_);
    if (aborted()) return;
    status_ = status;
    phase_.store(Phase::kAborting);
  }
  for (int r = 0; r < size_; ++r) {
    while (ranks_[r].inside.load()) sched_yield();
  }
  while (others_inside_.load() > 0) sched_yield();
  std::vector<Event> pending;
  for (std::uint64_t i = 0; i < in_flight_max_ * size_; ++i) {
    pending.push_back(std::exchange(slots_[i].event, Event()));
  }
  phase_.store(Phase::kAborted);
  for (const Event& event : pending) event.Complete(status);
  Wake(/*idle_only=*/false);
}

absl::Status GroupState::AwaitAbort() const {
  while (phase_.load() != Phase::kAborted) sched_yield();
  return abort_status();
}

absl::Status GroupState::abort_status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void GroupState::SetWakeup(int rank, std::function<void()> wakeup) {
  ranks_[rank].wakeup.Set(std::move(wakeup));
}

void GroupState::Wake(bool idle_only) {
  for (int r = 0; r < size_; ++r) {
    if (!ranks_[r].idle.exchange(false) && idle_only) continue;
    ranks_[r].wakeup.Call();
  }
}

void GroupState::Depart(int rank, std::uint64_t joined) {
  ranks_[rank].departed_at.store(joined);
  std::uint64_t first = departed_first_.load();
  while (joined < first &&
         !departed_first_.compare_exchange_weak(first, joined)) {
  }
  // The others look at departed_first_ after they have armed.
  if (operation(joined).armed.load() != 0) Abort(Departed(joined));
}

absl::Status GroupState::Departed(std::uint64_t seq) const {
  std::vector<int> gone;
  for (int r = 0; r < size_; ++r) {
    if (ranks_[r].departed_at.load() <= seq) gone.push_back(r);
  }
  return absl::UnavailableError(absl::StrCat(
      Ranks(gone), " left the group before collective ", seq, " of it"));
}

void GroupState::CompareWithPeers(int rank, std::uint64_t seq,
                                  Effects* effects) const {
  const Slot* const all = slots(seq);
  for (int r = 0; r < size_; ++r) {
    if (all[r].stage.load(std::memory_order_acquire) / 2 == seq + 1 &&
        all[r].signature.load(std::memory_order_relaxed) !=
            all[rank].signature.load(std::memory_order_relaxed)) {
      effects->failure = Mismatch(seq, std::min(r, rank), std::max(r, rank));
    }
  }
}

absl::Status GroupState::Mismatch(std::uint64_t seq, int a, int b) const {
  const Slot* const all = slots(seq);
  return absl::FailedPreconditionError(absl::StrCat(
      "collective ", seq, " of the group differs: rank ", a, " started ",
      Unpack(all[a].signature.load()).ToString(), ", rank ", b, " started ",
      Unpack(all[b].signature.load()).ToString()));
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
    absl::StrAppend(&text, " not started by ", Ranks(absent));
  }
  if (!unarmed.empty()) {
    absl::StrAppend(&text, absent.empty() ? " " : "; ", Ranks(unarmed),
                    " started it after something that is not done");
  }
  if (absent.empty() && unarmed.empty()) {
    absl::StrAppend(&text, " all ranks have started it, and work on it");
  }
  return text;
}

}  // namespace troupe::comm::internal
