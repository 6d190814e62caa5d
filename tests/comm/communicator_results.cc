// Tests the results of collectives: they have the bits of the naively computed
// tree, whichever thread drives the ranks and in whatever order.

#include <cstring>

#include "absl/time/time.h"
#include "comm/reduction/reduction_tree.h"
#include "tests/base/seeds.h"
#include "tests/comm/communicator_suite.h"
#include "tests/comm/reduction_test_data.h"

namespace troupe::comm {
namespace {

using nn::DType;
using nn::Tensor;

constexpr int kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};
constexpr std::int64_t kCounts[] = {0, 1, 3, 64, 1000};

struct Case {
  ReduceOp op;
  DType dtype;
  int size;
  std::int64_t count;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << ReduceOpName(c.op) << " of " << nn::DTypeName(c.dtype) << " x "
             << c.count << " over " << c.size << " ranks";
}

std::vector<Tensor> Inputs(const Case& c, nn::Allocator& allocator) {
  std::vector<Tensor> ranges;
  for (int r = 0; r < c.size; ++r) {
    ranges.push_back(TestRange(c.dtype, c.count, c.size, r, allocator));
  }
  return ranges;
}

// Returns the cases in the order of their sizes. Under sanitizers, and of a
// group that spans processes, they are a part in which every size, dtype, op
// and count still occurs: links carry bytes of any dtype, and are many.
std::vector<Case> SmallCases(const Backend& backend) {
  std::vector<Case> all;
  for (int size : kSizes) {
    for (DType dtype : kAllDTypes) {
      for (ReduceOp op : kAllOps) {
        if (!CheckReduction(op, dtype).ok()) continue;
        for (std::int64_t count : kCounts) {
          all.push_back(Case{op, dtype, size, count});
        }
      }
    }
  }
  std::vector<Case> cases;
  for (std::uint64_t number : Cases(all.size())) cases.push_back(all[number]);
  if (backend.processes == nullptr || cases.size() < all.size()) return cases;
  std::vector<Case> third;
  for (std::size_t i = 0; i * 3 + i % 3 < all.size(); ++i) {
    third.push_back(all[i * 3 + i % 3]);
  }
  return third;
}

void ExpectAllEqual(const std::vector<Tensor>& ranges, const Tensor& expected,
                    const Case& c) {
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    EXPECT_TRUE(nn::BitEqual(ranges[r], expected)) << c << ", rank " << r;
  }
}

TEST_P(CommunicatorSuite, ReducesByTheTreeStepByStep) {
  Ranks ranks;
  for (const Case& c : SmallCases(GetParam())) {
    if (static_cast<int>(ranks.size()) != c.size) ranks = Make(c.size);
    const std::vector<Tensor> ranges = Inputs(c, allocator_);
    const Tensor expected = ExpectedResult(c.op, ranges, allocator_);
    std::vector<Event> events;
    for (int r = 0; r < c.size; ++r) {
      absl::StatusOr<Event> event =
          ranks[r]->Start(AllReduce(c.op, ranges[r]), Event());
      ASSERT_TRUE(event.ok()) << event.status();
      events.push_back(*event);
    }
    Step(ranks, /*seed=*/c.count, events);
    ExpectAllEqual(ranges, expected, c);
  }
}

TEST_P(CommunicatorSuite, ReducesByTheTreeInThreads) {
  // Runs all cases of one size in one group, alternately by Start() and
  // RunInline().
  for (int size : kSizes) {
    std::vector<Case> cases;
    std::vector<std::vector<Tensor>> ranges;
    std::vector<Tensor> expected;
    for (const Case& c : SmallCases(GetParam())) {
      if (c.size != size) continue;
      cases.push_back(c);
      ranges.push_back(Inputs(c, allocator_));
      expected.push_back(ExpectedResult(c.op, ranges.back(), allocator_));
    }
    const Ranks ranks = Make(size);
    InThreads(ranks, [&](Communicator& comm, int rank) {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        const Collective collective = AllReduce(cases[i].op, ranges[i][rank]);
        if ((i + rank) % 2 == 0) {
          EXPECT_TRUE(comm.RunInline(collective, kTimeout).ok());
        } else {
          const absl::StatusOr<Event> event = comm.Start(collective, Event());
          EXPECT_TRUE(event.ok() && Await(comm, *event).ok());
        }
      }
    });
    for (std::size_t i = 0; i < cases.size(); ++i) {
      ExpectAllEqual(ranges[i], expected[i], cases[i]);
    }
  }
}

TEST_P(CommunicatorSuite, GivesLargeRangesTheSameBitsHoweverDriven) {
  for (const Case& c : {Case{ReduceOp::kSum, DType::kF32, 2, 100003},
                        Case{ReduceOp::kSum, DType::kF32, 3, 100003},
                        Case{ReduceOp::kAvg, DType::kBF16, 5, 100003},
                        Case{ReduceOp::kMax, DType::kF16, 9, 100003},
                        Case{ReduceOp::kProduct, DType::kF64, 16, 100003}}) {
    const Tensor expected =
        ExpectedResult(c.op, Inputs(c, allocator_), allocator_);
    const Ranks ranks = Make(c.size);
    const std::vector<Tensor> by_threads = Inputs(c, allocator_);
    InThreads(ranks, [&](Communicator& comm, int rank) {
      EXPECT_TRUE(
          comm.RunInline(AllReduce(c.op, by_threads[rank]), kTimeout).ok());
    });
    ExpectAllEqual(by_threads, expected, c);
    for (std::uint64_t seed : {1, 2}) {
      const std::vector<Tensor> by_steps = Inputs(c, allocator_);
      std::vector<Event> events;
      for (int r = 0; r < c.size; ++r) {
        events.push_back(
            *ranks[r]->Start(AllReduce(c.op, by_steps[r]), Event()));
      }
      Step(ranks, seed, events);
      ExpectAllEqual(by_steps, expected, c);
    }
  }
}

TEST_P(CommunicatorSuite, BroadcastsFromEveryRoot) {
  for (int size : {1, 2, 3, 5}) {
    const Ranks ranks = Make(size);
    for (int root = 0; root < size; ++root) {
      for (std::int64_t count : {0, 1, 1000, 100003}) {
        const Case c{ReduceOp::kSum, DType::kU8, size, count};
        const std::vector<Tensor> ranges = Inputs(c, allocator_);
        const Tensor expected =
            TestRange(c.dtype, count, c.size, root, allocator_);
        InThreads(ranks, [&](Communicator& comm, int rank) {
          EXPECT_TRUE(
              comm.RunInline(Broadcast(root, ranges[rank]), kTimeout).ok());
        });
        ExpectAllEqual(ranges, expected, c);
      }
    }
  }
}

TEST_P(CommunicatorSuite, ManyInFlightEndWithTheirOwnResults) {
  constexpr int kInFlight = 100;
  const Ranks ranks = Make(3);
  for (std::uint64_t seed : {1, 2, 3}) {
    std::vector<std::vector<Tensor>> ranges(3);
    std::vector<Event> events;
    std::vector<int> started(3, 0);
    std::uint64_t state = seed;
    // Mixes starts and steps; a rank may be far ahead of the others.
    while (events.size() < 3 * kInFlight) {
      const int r = NextBits(&state) % 3;
      if (started[r] < kInFlight) {
        ranges[r].push_back(Floats(started[r], r, 1 + 50 * started[r]));
        ++started[r];
        events.push_back(*ranks[r]->Start(
            AllReduce(ReduceOp::kSum, ranges[r].back()), Event()));
      }
      ranks[NextBits(&state) % 3]->Progress();
    }
    Step(ranks, state, events);
    for (int r = 0; r < 3; ++r) {
      for (int i = 0; i < kInFlight; ++i) {
        const auto values = ranges[r][i].span<float>();
        EXPECT_EQ(values.front(), 3.0f * i + 3) << "seed " << seed;
        EXPECT_EQ(values.back(), 3.0f * i + 3) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::comm
