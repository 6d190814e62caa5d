#include "comm/flow.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::comm {
namespace {

using nn::Tensor;

Tensor Meta(std::int64_t count) {
  return Tensor::Meta({count}, nn::DType::kF32, nn::Device());
}

std::string RankName(int rank) {
  return rank == Block::kAll ? "all" : absl::StrCat(rank);
}

// Formats blocks. "all>1 8@8-0": 8 elements of the reduction of all ranks, from
// element 8, go to element 0 of rank 1.
std::string ToString(const absl::StatusOr<std::vector<Block>>& blocks) {
  if (!blocks.ok()) return std::string(blocks.status().message());
  std::string text;
  for (const Block& b : *blocks) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", RankName(b.from), ">",
                    RankName(b.to), " ", b.count, "@", b.from_at, "-", b.to_at);
  }
  return text;
}

// Returns the flow of three ranks that start the same collective, of which only
// those of the ranks `known` are known.
std::string FlowOfThree(const Collective& collective,
                        std::vector<int> known = {0, 1, 2}) {
  std::vector<const Collective*> ranks(3, nullptr);
  for (int rank : known) ranks[rank] = &collective;
  return ToString(FlowOf(ranks));
}

TEST(Flow, OneBlockReducesOrBroadcasts) {
  EXPECT_EQ(FlowOfThree(AllReduce(ReduceOp::kSum, Meta(4))), "all>all 4@0-0");
  EXPECT_EQ(FlowOfThree(Reduce(ReduceOp::kSum, 1, Meta(4), Meta(4))),
            "all>1 4@0-0");
  EXPECT_EQ(FlowOfThree(Broadcast(2, Meta(4))), "2>all 4@0-0");
  EXPECT_EQ(FlowOfThree(Barrier()), "");
}

TEST(Flow, ABlockForEachRankGathersAndScatters) {
  EXPECT_EQ(FlowOfThree(AllGather(Meta(4), Meta(12))),
            "0>all 4@0-0, 1>all 4@0-4, 2>all 4@0-8");
  EXPECT_EQ(FlowOfThree(Gather(1, Meta(4), Meta(12))),
            "0>1 4@0-0, 1>1 4@0-4, 2>1 4@0-8");
  EXPECT_EQ(FlowOfThree(Scatter(1, Meta(12), Meta(4))),
            "1>0 4@0-0, 1>1 4@4-0, 1>2 4@8-0");
  EXPECT_EQ(FlowOfThree(ReduceScatter(ReduceOp::kSum, Meta(12), Meta(4))),
            "all>0 4@0-0, all>1 4@4-0, all>2 4@8-0");
}

TEST(Flow, ABlockForEachPairExchanges) {
  EXPECT_EQ(FlowOfThree(AllToAll(Meta(6), Meta(6))),
            "0>0 2@0-0, 0>1 2@2-0, 0>2 2@4-0, "
            "1>0 2@0-2, 1>1 2@2-2, 1>2 2@4-2, "
            "2>0 2@0-4, 2>1 2@2-4, 2>2 2@4-4");
}

TEST(Flow, KnowsThoseBlocksInWhichAKnownRankTakesPart) {
  EXPECT_EQ(FlowOfThree(Gather(1, Meta(4), Tensor()), {2}), "2>1 4@0-8");
  EXPECT_EQ(FlowOfThree(Scatter(1, Tensor(), Meta(4)), {0, 2}),
            "1>0 4@0-0, 1>2 4@8-0");
  EXPECT_EQ(FlowOfThree(AllGather(Meta(4), Meta(12)), {0}),
            "0>all 4@0-0, 1>all 4@0-4, 2>all 4@0-8");
  EXPECT_EQ(FlowOfThree(AllToAll(Meta(3), Meta(3)), {1}),
            "0>1 1@1-0, 1>0 1@0-1, 1>1 1@1-1, 1>2 1@2-1, 2>1 1@1-2");
}

TEST(Flow, LeavesOutBlocksWithoutElements) {
  EXPECT_EQ(FlowOfThree(AllReduce(ReduceOp::kSum, Meta(0))), "");
  EXPECT_EQ(FlowOfThree(AllToAll(Meta(0), Meta(0))), "");
}

TEST(Flow, TheTreeOverOneRankIsItsInput) {
  const Collective sum = ReduceScatter(ReduceOp::kSum, Meta(4), Meta(4));
  EXPECT_EQ(ToString(FlowOf({&sum})), "0>0 4@0-0");
}

TEST(Flow, GoesByCountsWhereTheyAreGiven) {
  const Collective first = AllToAll(Meta(5), {2, 3}, Meta(2), {2, 0});
  const Collective second = AllToAll(Meta(1), {0, 1}, Meta(4), {3, 1});
  EXPECT_EQ(ToString(FlowOf({&first, &second})),
            "0>0 2@0-0, 0>1 3@2-0, 1>1 1@0-3");
  EXPECT_EQ(ToString(FlowOf({&first, nullptr})), "0>0 2@0-0, 0>1 3@2-0");
  EXPECT_EQ(ToString(FlowOf({nullptr, &second})), "0>1 3@0-0, 1>1 1@0-3");
}

TEST(Flow, NamesAPairThatDoesNotFit) {
  const Collective first = AllToAll(Meta(5), {2, 3}, Meta(2), {2, 0});
  const Collective second = AllToAll(Meta(1), {0, 1}, Meta(5), {4, 1});
  const auto blocks = FlowOf({&first, &second});
  EXPECT_EQ(blocks.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ToString(blocks),
            "all_to_all: rank 0 sends 3 elements to rank 1, which expects 4; "
            "make both counts equal");
}

}  // namespace
}  // namespace troupe::comm
