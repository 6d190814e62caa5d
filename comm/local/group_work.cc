#include "comm/local/group_work.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "comm/apply_update.h"
#include "comm/collective_kinds.h"
#include "comm/local/agreement.h"
#include "comm/local/local_group.h"
#include "comm/signature.h"

namespace troupe::comm::internal {
namespace {

// Returns "f32 and f64 replicas".
std::string Describe(absl::Span<const nn::Tensor> replicas) {
  if (replicas.empty()) return "no replicas";
  return absl::StrCat(
      absl::StrJoin(replicas, " and ",
                    [](std::string* out, const nn::Tensor& replica) {
                      absl::StrAppend(out, nn::DTypeName(replica.dtype()));
                    }),
      " replicas");
}

EvenFlow FlowOf(std::uint64_t signature, int ranks) {
  return EvenFlow(KindOf(signature), RootOf(signature), CountOf(signature),
                  ranks);
}

}  // namespace

GroupWork::GroupWork(const OperationRing* ring, std::size_t chunk_bytes)
    : ring_(*ring),
      size_(ring->size()),
      chunk_bytes_(chunk_bytes),
      scratch_(new Scratch[ring->size()]) {}

Cut GroupWork::CutOf(std::uint64_t seq, int rank,
                     std::uint64_t signature) const {
  const std::size_t element_bytes = nn::SizeOf(DTypeOf(signature));
  if (ByCounts(signature)) {
    // The share of a rank is all that it sends.
    return Cut(ring_.counts(seq, rank).sent_at.back(), element_bytes,
               /*ranks=*/1, chunk_bytes_);
  }
  // A single rank has nothing to reduce; it may have something to update or to
  // copy.
  if (size_ == 1 && !RuleOf(KindOf(signature)).updates &&
      ring_.slots(seq)[rank].input == ring_.slots(seq)[rank].range) {
    return Cut();
  }
  const EvenFlow flow = FlowOf(signature, size_);
  return Cut(flow.blocks() * flow.count(), element_bytes, size_, chunk_bytes_);
}

absl::Status GroupWork::Compute(int rank, std::uint64_t seq, const Cut& cut,
                                int share, std::uint64_t chunk) {
  const std::uint64_t signature = ring_.signature(seq, rank);
  if (ByCounts(signature)) {
    return CopyByCounts(seq, share, cut.ElementBegin(chunk),
                        cut.ElementEnd(chunk));
  }
  chunk += cut.ShareBegin(share);
  const std::int64_t end = cut.ElementEnd(chunk);
  const EvenFlow flow = FlowOf(signature, size_);
  const bool updates = RuleOf(KindOf(signature)).updates;
  Piece piece;
  piece.reduction = {OpOf(signature), DTypeOf(signature), size_};
  for (std::int64_t begin = cut.ElementBegin(chunk); begin < end;
       begin += piece.block.count) {
    const std::int64_t i = flow.blocks() == 1 ? 0 : begin / flow.count();
    const std::int64_t at = begin - i * flow.count();
    piece.block = flow.At(i);
    piece.block.from_at += at;
    piece.block.to_at += at;
    piece.block.count = std::min(end - begin, flow.count() - at);
    if (updates) {
      TROUPE_RETURN_IF_ERROR(UpdateReplicas(rank, seq, piece));
    } else if (piece.block.from == Block::kAll) {
      Reduce(seq, piece);
    } else {
      Copy(seq, piece);
    }
  }
  return absl::OkStatus();
}

void GroupWork::Gather(std::uint64_t seq, std::size_t offset, bool update,
                       const void** sources) const {
  const OperationRing::Slot* const all = ring_.slots(seq);
  for (int r = 0; r < size_; ++r) {
    sources[r] = (update ? all[r].range : all[r].input) + offset;
  }
}

void GroupWork::Reduce(std::uint64_t seq, const Piece& piece) const {
  const OperationRing::Slot* const all = ring_.slots(seq);
  const Block& block = piece.block;
  const std::size_t element_bytes = nn::SizeOf(piece.reduction.dtype);
  const std::size_t from_at = block.from_at * element_bytes;
  const std::size_t to_at = block.to_at * element_bytes;
  const void* sources[kLocalGroupSizeMax];
  void* destinations[kLocalGroupSizeMax];
  Gather(seq, from_at, /*update=*/false, sources);
  std::size_t ranges = 0;
  if (block.to == Block::kAll) {
    for (int r = 0; r < size_; ++r) destinations[r] = all[r].range + to_at;
    ranges = size_;
  } else {
    destinations[ranges++] = all[block.to].range + to_at;
  }
  ReduceTree(piece.reduction,
             absl::MakeConstSpan(sources, static_cast<std::size_t>(size_)),
             absl::Span<void* const>(destinations, ranges),
             static_cast<std::size_t>(block.count));
}

void GroupWork::Copy(std::uint64_t seq, const Piece& piece) const {
  const OperationRing::Slot* const all = ring_.slots(seq);
  const Block& block = piece.block;
  const std::size_t element_bytes = nn::SizeOf(piece.reduction.dtype);
  const char* const from =
      all[block.from].input + block.from_at * element_bytes;
  const bool to_all = block.to == Block::kAll;
  for (int r = to_all ? 0 : block.to; r < (to_all ? size_ : block.to + 1);
       ++r) {
    char* const to = all[r].range + block.to_at * element_bytes;
    if (to != from) std::memcpy(to, from, block.count * element_bytes);
  }
}

absl::Status GroupWork::CopyByCounts(std::uint64_t seq, int from,
                                     std::int64_t begin,
                                     std::int64_t end) const {
  const OperationRing::PairCounts& mine = ring_.counts(seq, from);
  Piece piece;
  piece.reduction.dtype = DTypeOf(ring_.signature(seq, from));
  for (int to = 0; to < size_; ++to) {
    const std::int64_t first = std::max(begin, mine.sent_at[to]);
    const std::int64_t last = std::min(end, mine.sent_at[to + 1]);
    if (first >= last) continue;
    const OperationRing::PairCounts& theirs = ring_.counts(seq, to);
    // Arm() checks this as well, but perhaps later.
    if (mine.sent[to] != theirs.expected[from]) {
      return Differs(
          seq, UnequalCounts(from, mine.sent[to], to, theirs.expected[from])
                   .message());
    }
    piece.block = {from, to, last - first, first,
                   theirs.expected_at[from] + first - mine.sent_at[to]};
    Copy(seq, piece);
  }
  return absl::OkStatus();
}

absl::Status GroupWork::UpdateReplicas(int rank, std::uint64_t seq,
                                       const Piece& piece) {
  const OperationRing::Slot* const all = ring_.slots(seq);
  const nn::DType dtype = piece.reduction.dtype;
  const std::int64_t begin = piece.block.from_at;
  const std::int64_t count = piece.block.count;
  nn::Tensor& scratch = scratch_[rank].sum;
  if (!scratch.defined() || scratch.dtype() != dtype ||
      scratch.numel() < count) {
    TROUPE_ASSIGN_OR_RETURN(scratch,
                            nn::Tensor::Create({count}, dtype, allocator_));
  }
  const nn::Tensor sum = scratch.FlatView(0, {count});
  const void* sources[kLocalGroupSizeMax];
  Gather(seq, begin * nn::SizeOf(dtype), /*update=*/true, sources);
  void* const to = sum.raw();
  ReduceTree(piece.reduction,
             absl::MakeConstSpan(sources, static_cast<std::size_t>(size_)),
             absl::Span<void* const>(&to, 1), static_cast<std::size_t>(count));
  TROUPE_RETURN_IF_ERROR(CompareReplicas(rank, seq));
  ReplicaUpdate& mine = *all[rank].update;
  TROUPE_RETURN_IF_ERROR(ApplyCaught(mine, begin, sum));
  for (int r = 0; r < size_; ++r) {
    if (r != rank) CopyReplicas(mine, begin, count, *all[r].update);
  }
  return absl::OkStatus();
}

absl::Status GroupWork::CompareReplicas(int rank, std::uint64_t seq) const {
  const OperationRing::Slot* const all = ring_.slots(seq);
  const absl::Span<const nn::Tensor> mine = all[rank].update->replicas();
  for (int r = 0; r < size_; ++r) {
    const absl::Span<const nn::Tensor> theirs = all[r].update->replicas();
    const bool alike =
        std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                   [](const nn::Tensor& a, const nn::Tensor& b) {
                     return a.dtype() == b.dtype();
                   });
    if (alike) continue;
    return Differs(
        seq, absl::StrCat("rank ", rank, " updates ", Describe(mine), ", rank ",
                          r, " updates ", Describe(theirs)));
  }
  return absl::OkStatus();
}

}  // namespace troupe::comm::internal
