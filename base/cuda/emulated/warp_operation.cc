#include "base/cuda/emulated/warp_operation.h"

#include <cstdint>

namespace emulated_cuda {
namespace {

// Calls visit(lane) for the set bits, lowest first.
template <typename Visit>
void ForEachLane(unsigned lanes, Visit visit) {
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    visit(__builtin_ctz(rest));
  }
}

// Returns the lane that `lane` reads in a shuffle: itself, beyond the end of
// its segment and, for "up", before its beginning.
int SourceLane(const LaneCall& call, int lane) {
  const int begin = lane & ~(call.width - 1);
  const int end = begin + call.width;
  switch (call.op) {
    case Op::kShfl:
      return begin + (call.argument & (call.width - 1));
    case Op::kShflUp:
      return lane - call.argument < begin ? lane : lane - call.argument;
    case Op::kShflDown:
      return lane + call.argument >= end ? lane : lane + call.argument;
    default:  // kShflXor: earlier segments can be read, later ones cannot
      return (lane ^ call.argument) >= end ? lane : lane ^ call.argument;
  }
}

AbsentRead Shuffle(CudaThread* warp, unsigned lanes) {
  AbsentRead bad;
  ForEachLane(lanes, [&](int lane) {
    const int from = SourceLane(warp[lane].call, lane);
    if ((lanes >> from & 1) == 0) {
      if (bad.reader < 0) bad = {lane, from};
      return;
    }
    warp[lane].result = warp[from].call.value;
  });
  return bad;
}

// Gives each lane the mask of the lanes that have its value.
void MatchAny(CudaThread* warp, unsigned lanes) {
  ForEachLane(lanes, [&](int lane) {
    unsigned same = 0;
    ForEachLane(lanes, [&](int other) {
      if (warp[other].call.value == warp[lane].call.value) same |= 1u << other;
    });
    warp[lane].result = same;
  });
}

// Values are 32 bits wide; `is_signed` selects the order.
std::uint64_t Reduced(Op op, bool is_signed, std::uint64_t a, std::uint64_t b) {
  const bool less =
      is_signed ? static_cast<int>(a) < static_cast<int>(b) : a < b;
  switch (op) {
    case Op::kReduceAdd:
      return static_cast<unsigned>(a + b);
    case Op::kReduceMin:
      return less ? a : b;
    case Op::kReduceMax:
      return less ? b : a;
    case Op::kReduceAnd:
      return a & b;
    case Op::kReduceOr:
      return a | b;
    default:
      return a ^ b;
  }
}

// Returns the result of a vote or a reduction, which is the same for all lanes.
std::uint64_t Collective(const CudaThread* warp, unsigned lanes) {
  const CudaThread& first = warp[__builtin_ctz(lanes)];
  const Op op = first.call.op;
  unsigned ballot = 0;
  std::uint64_t total = first.call.value;
  ForEachLane(lanes, [&](int lane) {
    const LaneCall& call = warp[lane].call;
    if (call.value != 0) ballot |= 1u << lane;
    if (&warp[lane] == &first) return;
    total = Reduced(op, call.argument != 0, total, call.value);
  });
  switch (op) {
    case Op::kBallot:
      return ballot;
    case Op::kAny:
      return ballot != 0;
    case Op::kAll:
      return ballot == lanes;
    default:
      return total;
  }
}

}  // namespace

AbsentRead ComputeWarpOperation(CudaThread* warp, unsigned lanes) {
  switch (warp[__builtin_ctz(lanes)].call.op) {
    case Op::kSyncwarp:
      return {};
    case Op::kShfl:
    case Op::kShflUp:
    case Op::kShflDown:
    case Op::kShflXor:
      return Shuffle(warp, lanes);
    case Op::kMatchAny:
      MatchAny(warp, lanes);
      return {};
    default:
      break;
  }
  const std::uint64_t result = Collective(warp, lanes);
  ForEachLane(lanes, [&](int lane) { warp[lane].result = result; });
  return {};
}

}  // namespace emulated_cuda
