// Tests what one rank can tell about its own collective: its text, its
// signature and the errors of CheckCollective().

#include <string>

#include "comm/communicator.h"
#include "comm/signature.h"
#include "gtest/gtest.h"

namespace troupe::comm {
namespace {

using nn::DType;
using nn::Tensor;

class CollectiveTest : public testing::Test {
 protected:
  Tensor Of(std::int64_t count, DType dtype = DType::kF32) {
    return Tensor::Zeros({count}, dtype, allocator_);
  }
  // Returns the error of CheckCollective() on rank 1 of 4; empty if there is
  // none.
  static std::string Wrong(const Collective& collective) {
    const absl::Status status = CheckCollective(collective, 1, 4);
    EXPECT_EQ(status.code(), status.ok() ? absl::StatusCode::kOk
                                         : absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  nn::CachingAllocator allocator_;
};

TEST_F(CollectiveTest, ATextNamesWhatRanksMustShare) {
  const ReduceOp sum = ReduceOp::kSum;
  const Tensor none;
  EXPECT_EQ(AllReduce(sum, Of(8)).ToString(), "all_reduce(sum, f32 x 8)");
  EXPECT_EQ(Reduce(sum, 2, Of(8), none).ToString(),
            "reduce(sum, root 2, f32 x 8)");
  EXPECT_EQ(AllGather(Of(2), Of(8)).ToString(), "all_gather(f32 x 2)");
  EXPECT_EQ(Gather(2, Of(2), none).ToString(), "gather(root 2, f32 x 2)");
  EXPECT_EQ(Scatter(2, none, Of(2)).ToString(), "scatter(root 2, f32 x 2)");
  EXPECT_EQ(ReduceScatter(sum, Of(8), Of(2)).ToString(),
            "reduce_scatter(sum, f32 x 2)");
  EXPECT_EQ(AllToAll(Of(8), Of(8)).ToString(), "all_to_all(f32 x 8)");
  EXPECT_EQ(AllToAll(Of(1), {1}, Of(1), {1}).ToString(),
            "all_to_all(f32, by counts)");
  EXPECT_EQ(AllReduce(sum, none).ToString(), "all_reduce(sum, nothing)");
}

TEST_F(CollectiveTest, IsLeftOutIfItChangesNothing) {
  const ReduceOp sum = ReduceOp::kSum;
  const Tensor none;
  for (const Collective& collective :
       {AllReduce(sum, Of(8)), Broadcast(0, Of(8)), Barrier(),
        Reduce(sum, 0, none, Of(8))}) {
    EXPECT_TRUE(IsNoOp(collective, 1)) << collective.ToString();
    EXPECT_FALSE(IsNoOp(collective, 2)) << collective.ToString();
  }
  // Even one rank copies its input, or updates its replicas.
  for (const Collective& collective :
       {ReduceUpdate(sum, Of(8), nullptr), Reduce(sum, 0, Of(8), Of(8)),
        AllGather(Of(8), Of(8)), Gather(0, Of(8), Of(8)),
        Scatter(0, Of(8), Of(8)), ReduceScatter(sum, Of(8), Of(8)),
        AllToAll(Of(8), Of(8))}) {
    EXPECT_FALSE(IsNoOp(collective, 1)) << collective.ToString();
  }
}

TEST_F(CollectiveTest, ASignatureKeepsTheText) {
  // Each field has its largest value.
  const Tensor range =
      Tensor::Meta({internal::kCountMax - 1}, DType::kU8, nn::Device());
  const int root = internal::kRootsMax - 1;
  const ReduceOp op = ReduceOp::kBxor;
  for (const Collective& collective :
       {AllReduce(op, range), ReduceUpdate(op, range, nullptr),
        Broadcast(root, range), Barrier(), Reduce(op, root, range, Tensor()),
        Reduce(op, root, Tensor(), range), AllGather(range, Tensor()),
        Gather(root, range, Tensor()), Scatter(root, Tensor(), range),
        ReduceScatter(op, Tensor(), range), AllToAll(range, range),
        AllToAll(range, {1}, range, {1})}) {
    EXPECT_EQ(internal::Unpack(internal::Pack(collective)).ToString(),
              collective.ToString());
  }
}

TEST_F(CollectiveTest, TakesWhatFits) {
  const Tensor none;
  for (const Collective& collective :
       {Reduce(ReduceOp::kSum, 1, none, Of(3)),
        Reduce(ReduceOp::kSum, 0, none, Of(3)),
        Reduce(ReduceOp::kSum, 0, Of(3), none), AllGather(Of(3), Of(12)),
        Gather(0, Of(3), none), Gather(1, Of(3), Of(12)),
        Scatter(0, none, Of(3)), Scatter(1, Of(12), Of(3)),
        ReduceScatter(ReduceOp::kMax, Of(12), Of(3)), AllToAll(Of(8), Of(8)),
        AllToAll(Of(3), {1, 2, 0, 0}, Of(0), {0, 0, 0, 0})}) {
    EXPECT_EQ(Wrong(collective), "") << collective.ToString();
  }
  // A tensor that this rank does not need is not checked.
  EXPECT_EQ(Wrong(Gather(0, Of(3), Of(1))), "");
  EXPECT_EQ(Wrong(Scatter(0, Of(1), Of(3))), "");
}

TEST_F(CollectiveTest, NamesWhatIsMissing) {
  const Tensor none;
  EXPECT_EQ(Wrong(AllGather(none, Of(12))),
            "all_gather(nothing): rank 1 names no input");
  EXPECT_EQ(Wrong(Scatter(0, none, none)),
            "scatter(root 0, nothing): rank 1 names no range");
  EXPECT_EQ(Wrong(Gather(1, Of(3), none)),
            "gather(root 1, f32 x 3): the range has no memory here");
  EXPECT_EQ(Wrong(ReduceScatter(ReduceOp::kSum, none, Of(3))),
            "reduce_scatter(sum, f32 x 3): the input has no memory here");
  EXPECT_EQ(
      Wrong(AllToAll(Of(4), Tensor::Meta({4}, DType::kF32, nn::Device()))),
      "all_to_all(f32 x 4): the range has no memory here");
}

TEST_F(CollectiveTest, NamesWhatDoesNotFit) {
  EXPECT_EQ(Wrong(AllGather(Of(3), Of(13))),
            "all_gather(f32 x 3): the range has 13 elements, not 4 x 3");
  EXPECT_EQ(Wrong(Scatter(1, Of(9), Of(3))),
            "scatter(root 1, f32 x 3): the input has 9 elements, not 4 x 3");
  EXPECT_EQ(Wrong(AllToAll(Of(6), Of(6))),
            "all_to_all(f32 x 6): no equal parts for 4 ranks");
  EXPECT_EQ(Wrong(AllGather(Of(3), Of(12, DType::kI32))),
            "all_gather(f32 x 3): the range is of i32, not of f32");
  EXPECT_EQ(Wrong(Reduce(ReduceOp::kSum, 4, Of(3), Of(3))),
            "reduce(sum, root 4, f32 x 3): the group has ranks 0 to 3");
  EXPECT_EQ(Wrong(ReduceScatter(ReduceOp::kBor, Of(12), Of(3))),
            "f32 has no bor; take it of integers");
}

TEST_F(CollectiveTest, NamesCountsThatDoNotAddUp) {
  const std::vector<std::int64_t> zeros(4, 0);
  EXPECT_EQ(Wrong(AllToAll(Of(3), {1, 2}, Of(0), zeros)),
            "all_to_all(f32, by counts): send_counts has 2 entries for 4 "
            "ranks");
  EXPECT_EQ(Wrong(AllToAll(Of(3), {1, 1, 0, 0}, Of(0), zeros)),
            "all_to_all(f32, by counts): the input has 3 elements, and "
            "send_counts add up to fewer");
  EXPECT_EQ(Wrong(AllToAll(Of(0), zeros, Of(3), {1, 3, 0, 0})),
            "all_to_all(f32, by counts): the range has 3 elements, and "
            "recv_counts add up to more");
  EXPECT_EQ(Wrong(AllToAll(Of(0), {1, -1, 0, 0}, Of(0), zeros)),
            "all_to_all(f32, by counts): the input has 0 elements, and "
            "send_counts add up to more");
}

TEST_F(CollectiveTest, InputAndRangeMeetAsARanksOwnBlockOnly) {
  const Tensor whole = Of(12);
  const auto block = [&](int rank) {
    return whole.Slice(3 * rank, 3 * rank + 3);
  };
  const std::string overlap =
      "input and range of rank 1 overlap, and not as rank 1's own block";
  EXPECT_EQ(Wrong(AllGather(block(1), whole)), "");
  EXPECT_EQ(Wrong(Gather(1, block(1), whole)), "");
  EXPECT_EQ(Wrong(Scatter(1, whole, block(1))), "");
  EXPECT_EQ(Wrong(ReduceScatter(ReduceOp::kSum, whole, block(1))), "");
  EXPECT_EQ(Wrong(AllGather(block(2), whole)),
            "all_gather(f32 x 3): " + overlap);
  EXPECT_EQ(Wrong(ReduceScatter(ReduceOp::kSum, whole, block(0))),
            "reduce_scatter(sum, f32 x 3): " + overlap);
  EXPECT_EQ(Wrong(AllToAll(whole, whole)), "all_to_all(f32 x 12): " + overlap);
  Collective sum = AllReduce(ReduceOp::kSum, whole.Slice(0, 6));
  sum.input = whole.Slice(0, 6);
  EXPECT_EQ(Wrong(sum), "");
  sum.input = whole.Slice(1, 7);
  EXPECT_EQ(Wrong(sum), "all_reduce(sum, f32 x 6): " + overlap);
}

}  // namespace
}  // namespace troupe::comm
