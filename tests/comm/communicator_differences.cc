// Ranks that start different things: the group fails with an error that names
// both ranks, and what each of them started.

#include "gmock/gmock.h"
#include "tests/comm/communicator_suite.h"

namespace troupe::comm {
namespace {

using nn::DType;
using nn::Tensor;
using testing::HasSubstr;

class Differences {
 public:
  explicit Differences(nn::Allocator& allocator) : allocator_(allocator) {}

  Tensor Of(std::int64_t count, DType dtype = DType::kF32) const {
    return Tensor::Zeros({count}, dtype, allocator_);
  }
  Collective Gathered(std::int64_t count, DType dtype = DType::kF32) const {
    return AllGather(Of(count, dtype), Of(2 * count, dtype));
  }
  Collective Scattered(ReduceOp op, std::int64_t count) const {
    return ReduceScatter(op, Of(2 * count, DType::kI32),
                         Of(count, DType::kI32));
  }
  // Makes an all_to_all of one of two ranks, with the number of elements that
  // it sends to each rank and expects from each.
  Collective ByCounts(std::vector<std::int64_t> sent,
                      std::vector<std::int64_t> expected) const {
    const Tensor input = Of(sent[0] + sent[1]);
    const Tensor range = Of(expected[0] + expected[1]);
    return AllToAll(input, std::move(sent), range, std::move(expected));
  }

 private:
  nn::Allocator& allocator_;
};

// Starts one collective on each rank of a group of two, and returns the error
// that both ranks get.
std::string Told(const Ranks& ranks, const Collective& of_0,
                 const Collective& of_1) {
  const auto first = ranks[0]->Start(of_0, Event());
  const auto second = ranks[1]->Start(of_1, Event());
  EXPECT_TRUE(first.ok()) << first.status();
  if (second.ok()) {
    EXPECT_EQ(comm::Await(*ranks[1], *second, kTimeout).code(),
              absl::StatusCode::kFailedPrecondition);
  }
  const absl::Status status =
      first.ok() ? comm::Await(*ranks[0], *first, kTimeout) : first.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ranks[1]->Start(Barrier(), Event()).status(), status);
  return std::string(status.message());
}

TEST_P(CommunicatorSuite, ADifferenceOfAnyKindNamesBoth) {
  const Differences d(allocator_);
  const auto expect = [&](const Collective& a, const Collective& b) {
    EXPECT_THAT(Told(Make(2), a, b),
                HasSubstr("rank 0 started " + a.ToString() +
                          ", rank 1 started " + b.ToString()));
  };
  const ReduceOp sum = ReduceOp::kSum, bor = ReduceOp::kBor;
  // Differences in kind, count, dtype, op and root.
  expect(d.Gathered(4), Gather(0, d.Of(4), d.Of(8)));
  expect(d.Gathered(4), d.Gathered(5));
  expect(d.Gathered(0), d.Gathered(5));
  expect(d.Gathered(4), d.Gathered(4, DType::kI32));
  expect(d.Scattered(sum, 4), d.Scattered(bor, 4));
  expect(d.Scattered(sum, 4), d.Scattered(sum, 5));
  expect(Reduce(sum, 0, d.Of(4), d.Of(4)), Reduce(sum, 1, d.Of(4), d.Of(4)));
  expect(Reduce(sum, 0, d.Of(4), d.Of(4)),
         Reduce(ReduceOp::kMax, 0, d.Of(4), Tensor()));
  expect(Gather(0, d.Of(4), d.Of(8)), Gather(1, d.Of(4), d.Of(8)));
  expect(Scatter(0, d.Of(8), d.Of(4)), Scatter(0, Tensor(), d.Of(3)));
  expect(Scatter(0, d.Of(8), d.Of(4)), Scatter(1, d.Of(8), d.Of(4)));
  expect(AllToAll(d.Of(8), d.Of(8)), AllToAll(d.Of(6), d.Of(6)));
  expect(AllToAll(d.Of(8), d.Of(8)), d.ByCounts({4, 4}, {4, 4}));
}

TEST_P(CommunicatorSuite, UnequalCountsOfAPairNameBothRanks) {
  const Differences d(allocator_);
  EXPECT_THAT(
      Told(Make(2), d.ByCounts({1, 3}, {1, 2}), d.ByCounts({2, 1}, {4, 1})),
      HasSubstr("rank 0 sends 3 elements to rank 1, which expects 4"));
  // The same where no element is sent.
  EXPECT_THAT(
      Told(Make(2), d.ByCounts({0, 0}, {0, 2}), d.ByCounts({0, 0}, {0, 0})),
      HasSubstr("rank 1 sends 0 elements to rank 0, which expects 2"));
}

TEST_P(CommunicatorSuite, UnequalCountsEndThreadsThatRunInline) {
  const Differences d(allocator_);
  InThreads(Make(2), [&](Communicator& comm, int rank) {
    nn::CachingAllocator allocator;
    const Differences mine(allocator);
    const absl::Status status =
        comm.RunInline(rank == 0 ? mine.ByCounts({5000, 100003}, {5000, 1})
                                 : mine.ByCounts({1, 5000}, {100004, 5000}),
                       kTimeout);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 0 sends 100003 elements to rank 1, which "
                          "expects 100004"));
  });
}

TEST_P(CommunicatorSuite, ADifferenceAmongThoseInFlightFailsAll) {
  const Differences d(allocator_);
  const Ranks ranks = Make(2);
  const Event before = Event::Make();
  const Event first = *ranks[0]->Start(d.Gathered(4), before);
  const Event second = *ranks[1]->Start(d.Gathered(4), Event());
  const Collective other = d.Scattered(ReduceOp::kSum, 4);
  EXPECT_THAT(Told(ranks, other, d.Gathered(4)),
              HasSubstr("rank 0 started " + other.ToString() +
                        ", rank 1 started all_gather(f32 x 4)"));
  EXPECT_TRUE(first.ready() && second.ready());
}

}  // namespace
}  // namespace troupe::comm
