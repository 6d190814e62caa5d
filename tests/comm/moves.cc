#include "tests/comm/moves.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/reduction/reduction_tree.h"
#include "gtest/gtest.h"
#include "tests/comm/reduction_test_data.h"

namespace troupe::comm {
namespace {

using nn::Tensor;

constexpr std::uint64_t kInputs = 1, kGarbage = 2;  // seeds
// Number of elements after which long inputs repeat, since the plain loops are
// slow under a sanitizer. It is no multiple of a chunk.
constexpr std::int64_t kPeriod = 4099;

Tensor Part(const Tensor& whole, std::int64_t begin, std::int64_t count) {
  return whole.Slice(begin, begin + count);
}

void CopyTo(const Tensor& to, const Tensor& from) {
  ASSERT_EQ(to.bytes(), from.bytes());
  if (from.bytes() > 0) std::memcpy(to.raw(), from.raw(), from.bytes());
}

Tensor Copy(const Tensor& from, nn::Allocator& allocator) {
  const Tensor to = Tensor::Empty(from.shape(), from.dtype(), allocator);
  CopyTo(to, from);
  return to;
}

// Returns `count` elements that repeat `pattern`, not aligned for vector loads.
Tensor Tile(const Tensor& pattern, std::int64_t count,
            nn::Allocator& allocator) {
  const Tensor whole =
      Part(Tensor::Empty({count + 1}, pattern.dtype(), allocator), 1, count);
  for (std::int64_t at = 0; at < count; at += pattern.numel()) {
    const std::int64_t here = std::min(pattern.numel(), count - at);
    CopyTo(Part(whole, at, here), Part(pattern, 0, here));
  }
  return whole;
}

Tensor Concat(const std::vector<Tensor>& parts, nn::DType dtype,
              nn::Allocator& allocator) {
  std::int64_t count = 0;
  for (const Tensor& part : parts) count += part.numel();
  const Tensor whole = Tensor::Empty({count}, dtype, allocator);
  std::int64_t at = 0;
  for (const Tensor& part : parts) {
    CopyTo(Part(whole, at, part.numel()), part);
    at += part.numel();
  }
  return whole;
}

bool GivesWhole(CollectiveKind kind) {
  return kind == CollectiveKind::kScatter ||
         kind == CollectiveKind::kReduceScatter ||
         kind == CollectiveKind::kAllToAll;
}

bool GetsWhole(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kGather || kind == CollectiveKind::kAllToAll;
}

// Returns how many elements rank `from` sends to rank `to` in a move by counts;
// 0 for some pairs.
std::int64_t CountOf(const MoveSpec& spec, int from, int to) {
  return (from + 2 * to) % 3 == 1 ? 0 : spec.count + from - to + spec.size;
}

class Maker {
 public:
  Maker(const MoveSpec& spec, nn::Allocator& allocator)
      : spec_(spec), allocator_(allocator) {}

  Move Make() {
    if (spec_.by_counts) return MakeByCounts();
    const std::int64_t given =
        GivesWhole(spec_.kind) ? spec_.count * spec_.size : spec_.count;
    for (int r = 0; r < spec_.size; ++r) {
      inputs_.push_back(Range(given, kInputs, r));
    }
    Move move{spec_, {}, {}, {}};
    for (int r = 0; r < spec_.size; ++r) {
      move.expected.push_back(Expected(r));
      move.collectives.push_back(Started(r));
      const Collective& started = move.collectives.back();
      // An in-place input shares memory with the result that overwrites it.
      const bool kept = !spec_.in_place && started.input.defined();
      move.given.push_back(kept ? Copy(started.input, allocator_) : Tensor());
    }
    return move;
  }

 private:
  Tensor Range(std::int64_t count, std::uint64_t seed, int rank) {
    const Tensor pattern = TestRange(spec_.dtype, std::min(count, kPeriod),
                                     seed, rank, allocator_);
    return count <= kPeriod ? pattern : Tile(pattern, count, allocator_);
  }

  Tensor Sum() {
    // A group of one rank leaves its range unchanged.
    if (spec_.size == 1) return inputs_[0];
    if (sum_.defined()) return sum_;
    const std::int64_t count = inputs_[0].numel();
    std::vector<Tensor> patterns;
    for (const Tensor& input : inputs_) {
      patterns.push_back(Part(input, 0, std::min(count, kPeriod)));
    }
    sum_ = ExpectedResult(spec_.op, patterns, allocator_);
    if (count > kPeriod) sum_ = Tile(sum_, count, allocator_);
    return sum_;
  }

  Tensor Block(const Tensor& whole, int rank) const {
    return Part(whole, rank * spec_.count, spec_.count);
  }

  Tensor Expected(int rank) {
    switch (spec_.kind) {
      case CollectiveKind::kAllReduce:
        return Copy(Sum(), allocator_);
      case CollectiveKind::kReduce:
        return rank == spec_.root ? Copy(Sum(), allocator_) : Tensor();
      case CollectiveKind::kBroadcast:
        return Copy(inputs_[spec_.root], allocator_);
      case CollectiveKind::kAllGather:
        return Concat(inputs_, spec_.dtype, allocator_);
      case CollectiveKind::kGather:
        return rank == spec_.root ? Concat(inputs_, spec_.dtype, allocator_)
                                  : Tensor();
      case CollectiveKind::kScatter:
        return Copy(Block(inputs_[spec_.root], rank), allocator_);
      case CollectiveKind::kReduceScatter:
        return Copy(Block(Sum(), rank), allocator_);
      case CollectiveKind::kAllToAll: {
        std::vector<Tensor> parts;
        for (const Tensor& input : inputs_) parts.push_back(Block(input, rank));
        return Concat(parts, spec_.dtype, allocator_);
      }
      default:
        return Tensor();
    }
  }

  Collective Started(int rank) {
    Collective started;
    started.kind = spec_.kind;
    started.op = spec_.op;
    started.root = spec_.root;
    started.input = inputs_[rank];
    started.range =
        Range(GetsWhole(spec_.kind) ? spec_.count * spec_.size : spec_.count,
              kGarbage, rank);
    const bool is_root = rank == spec_.root;
    if (spec_.in_place) {
      PutInPlace(rank, &started);
    } else if (spec_.kind == CollectiveKind::kBroadcast && !is_root) {
      started.input = Tensor();
    }
    if (is_root) return started;
    if (spec_.kind == CollectiveKind::kScatter) started.input = Tensor();
    if (spec_.kind == CollectiveKind::kGather) started.range = Tensor();
    // In place, the range is also the input.
    if (spec_.kind == CollectiveKind::kReduce && !spec_.in_place) {
      started.range = Tensor();
    }
    return started;
  }

  void PutInPlace(int rank, Collective* started) {
    switch (spec_.kind) {
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kReduce:
      case CollectiveKind::kBroadcast:
        started->range = std::exchange(started->input, Tensor());
        break;
      case CollectiveKind::kGather:
        if (rank != spec_.root) break;
        [[fallthrough]];
      case CollectiveKind::kAllGather: {
        const Tensor own = Block(started->range, rank);
        CopyTo(own, started->input);
        started->input = own;
        break;
      }
      case CollectiveKind::kScatter:
        if (rank != spec_.root) break;
        [[fallthrough]];
      case CollectiveKind::kReduceScatter:
        // A copy, since the results expected of other ranks still depend on
        // inputs_.
        started->input = Copy(started->input, allocator_);
        started->range = Block(started->input, rank);
        break;
      default:
        break;
    }
  }

  Move MakeByCounts() {
    const int n = spec_.size;
    std::vector<std::vector<std::int64_t>> sent(n), expected(n);
    std::vector<std::vector<Tensor>> parts(n);  // indexed by receiver
    Move move{spec_, {}, {}, {}};
    for (int from = 0; from < n; ++from) {
      std::vector<Tensor> own;
      for (int to = 0; to < n; ++to) {
        own.push_back(Range(CountOf(spec_, from, to), kInputs + to, from));
        sent[from].push_back(own.back().numel());
        expected[to].push_back(own.back().numel());
        parts[to].push_back(own.back());
      }
      move.given.push_back(Concat(own, spec_.dtype, allocator_));
    }
    for (int r = 0; r < n; ++r) {
      move.expected.push_back(Concat(parts[r], spec_.dtype, allocator_));
      move.collectives.push_back(
          AllToAll(Copy(move.given[r], allocator_), sent[r],
                   Range(move.expected[r].numel(), kGarbage, r), expected[r]));
    }
    return move;
  }

  const MoveSpec spec_;
  nn::Allocator& allocator_;
  std::vector<Tensor> inputs_;
  Tensor sum_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const MoveSpec& spec) {
  return out << CollectiveKindName(spec.kind) << " of "
             << nn::DTypeName(spec.dtype) << " x " << spec.count << " over "
             << spec.size << " ranks, " << ReduceOpName(spec.op) << ", root "
             << spec.root << (spec.in_place ? ", in place" : "")
             << (spec.by_counts ? ", by counts" : "");
}

bool Exists(const MoveSpec& spec) {
  if (spec.in_place && spec.kind == CollectiveKind::kAllToAll) return false;
  return CheckReduction(spec.op, spec.dtype).ok();
}

Move MakeMove(const MoveSpec& spec, nn::Allocator& allocator) {
  return Maker(spec, allocator).Make();
}

void ExpectMovedTo(const Move& move, int rank) {
  const Collective& collective = move.collectives[rank];
  if (move.expected[rank].defined()) {
    EXPECT_TRUE(nn::BitEqual(collective.range, move.expected[rank]))
        << move.spec << ", rank " << rank;
  }
  if (move.given[rank].defined()) {
    EXPECT_TRUE(nn::BitEqual(collective.input, move.given[rank]))
        << "input of " << move.spec << ", rank " << rank;
  }
}

void ExpectMoved(const Move& move) {
  for (int r = 0; r < move.spec.size; ++r) ExpectMovedTo(move, r);
}

std::vector<Move> MovesOf(int size, absl::Span<const std::int64_t> counts,
                          nn::Allocator& allocator) {
  std::vector<Move> moves;
  int i = 0;
  for (CollectiveKind kind : kMovingKinds) {
    for (std::int64_t count : counts) {
      for (bool variant : {false, true}) {
        MoveSpec spec{kind, size, count};
        const bool exchange = kind == CollectiveKind::kAllToAll;
        (exchange ? spec.by_counts : spec.in_place) = variant;
        do {
          spec.dtype = kAllDTypes[i % 7];
          spec.op = kAllOps[i % 8];
          ++i;
        } while (!Exists(spec));
        spec.root = i % size;
        moves.push_back(MakeMove(spec, allocator));
      }
    }
  }
  return moves;
}

}  // namespace troupe::comm
