#include "actors/engine/reducer.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/engine/actions/tied_sums.h"
#include "gtest/gtest.h"
#include "nn/ops/loss.h"
#include "tests/actors/engine/engine_fixture.h"
#include "tests/actors/engine/test_groups.h"
#include "tests/actors/engine/thread_host.h"

namespace troupe::actors {
namespace {

using pipeline::GroupId;

// Records launches as text: "3 dp all_reduce(sum, f32 x 4)".
class LaunchLog : public Reducer::Launcher {
 public:
  void Launch(int action, pipeline::GroupId group,
              const comm::Collective& collective, const comm::Event&) override {
    absl::StrAppend(&text, text.empty() ? "" : "; ", action,
                    group == GroupId::kDpPp ? " world " : " dp ",
                    collective.ToString());
  }
  std::string text;
};

class ReducerTest : public testing::Test {
 protected:
  nn::Tensor Filled(float value) {
    nn::Tensor tensor = nn::Tensor::Empty({4}, nn::DType::kF32, allocator_);
    for (float& x : tensor.span<float>()) x = value;
    return tensor;
  }
  // Returns the groups of `ranks` replicas.
  static std::vector<RankGroups> Groups(int ranks) {
    return MakeTestGroups(pipeline::Mesh(/*dp=*/ranks, /*pp=*/1));
  }

  nn::CachingAllocator allocator_;
  LaunchLog launched_;
  ThreadWait wait_;
};

TEST_F(ReducerTest, OneRankHasItsSumAlready) {
  const std::vector<RankGroups> groups = Groups(1);
  Reducer reducer({&groups[0], /*run_inline=*/false}, &launched_, &wait_);
  EXPECT_EQ(reducer.Start(0, GroupId::kDp,
                          comm::AllReduce(comm::ReduceOp::kSum, Filled(1)),
                          comm::Event()),
            absl::StatusOr<bool>(true));
  EXPECT_EQ(launched_.text, "");
  EXPECT_EQ(reducer.in_flight(), 0);
}

// One rank copies what it reduces from elsewhere, and updates.
TEST_F(ReducerTest, OneRankHasWorkThatIsNotInPlace) {
  const std::vector<RankGroups> groups = Groups(1);
  Reducer reducer({&groups[0], /*run_inline=*/false}, &launched_, &wait_);
  comm::Collective sum = comm::AllReduce(comm::ReduceOp::kSum, Filled(1));
  sum.input = Filled(2);
  EXPECT_EQ(reducer.Start(0, GroupId::kDp, sum, comm::Event()),
            absl::StatusOr<bool>(false));
  EXPECT_EQ(reducer.Start(1, GroupId::kDp,
                          comm::ReduceUpdate(comm::ReduceOp::kSum, Filled(1),
                                             /*update=*/nullptr),
                          comm::Event()),
            absl::StatusOr<bool>(false));
  EXPECT_EQ(launched_.text,
            "0 dp all_reduce(sum, f32 x 4); 1 dp reduce_update(sum, f32 x 4)");
}

TEST_F(ReducerTest, LaunchesIntoTheGroupAndCounts) {
  const std::vector<RankGroups> groups = Groups(2);
  Reducer reducer({&groups[0], /*run_inline=*/false}, &launched_, &wait_);
  const comm::Collective sum = comm::AllReduce(comm::ReduceOp::kSum, Filled(1));
  EXPECT_EQ(reducer.Start(3, GroupId::kDp, sum, comm::Event()),
            absl::StatusOr<bool>(false));
  EXPECT_EQ(reducer.Start(1, GroupId::kDpPp, sum, comm::Event()),
            absl::StatusOr<bool>(false));
  EXPECT_EQ(launched_.text,
            "3 dp all_reduce(sum, f32 x 4); 1 world all_reduce(sum, f32 x 4)");
  EXPECT_EQ(reducer.in_flight(), 2);
  reducer.Finish();
  EXPECT_EQ(reducer.in_flight(), 1);
}

TEST_F(ReducerTest, InlineReducesBesideItsPeer) {
  const std::vector<RankGroups> groups = Groups(2);
  const nn::Tensor values[] = {Filled(1), Filled(2)};
  std::vector<std::thread> ranks;
  for (int rank : {0, 1}) {
    ranks.emplace_back([&, rank] {
      LaunchLog launched;
      Reducer reducer({&groups[rank], /*run_inline=*/true}, &launched, &wait_);
      for (int round = 0; round < 100; ++round) {
        const GroupId group = round % 2 == 0 ? GroupId::kDp : GroupId::kDpPp;
        ASSERT_EQ(
            reducer.Start(round, group,
                          comm::AllReduce(comm::ReduceOp::kMax, values[rank]),
                          comm::Event()),
            absl::StatusOr<bool>(true));
      }
      EXPECT_EQ(launched.text, "");
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (int rank : {0, 1}) EXPECT_EQ(values[rank].data<float>()[3], 2);
}

TEST_F(ReducerTest, AnAbortEndsAnInlineOne) {
  const std::vector<RankGroups> groups = Groups(2);
  Reducer reducer({&groups[0], /*run_inline=*/true}, &launched_, &wait_);
  std::thread peer([&] {
    groups[1].Of(GroupId::kDp).Abort(absl::UnavailableError("rank 1 is gone"));
  });
  EXPECT_EQ(reducer
                .Start(0, GroupId::kDp,
                       comm::AllReduce(comm::ReduceOp::kSum, Filled(1)),
                       comm::Event())
                .status(),
            absl::UnavailableError("rank 1 is gone"));
  peer.join();
}

TEST_F(ReducerTest, AGroupThatTheRankIsNotInIsABug) {
  const std::vector<RankGroups> groups = Groups(2);
  EXPECT_DEATH(groups[0].Of(pipeline::TiedGroup(0)),
               "a rank is in the groups that its table names");
  EXPECT_DEATH(groups[0].Of(GroupId::kPp), "the groups that its table names");
}

// Runs forward and backward of every micro-batch; returns the number of targets
// that count in the losses.
double Accumulate(Chunk& chunk, const StepBatches& batches) {
  chunk.BeginStep(StepKind::kTrain, 0, batches);
  double count = 0;
  for (int m = 0; m < static_cast<int>(batches.size()); ++m) {
    EXPECT_TRUE(chunk.Forward(m).ok());
    count += chunk.output(m).data<double>()[nn::ops::kLossCount];
    chunk.BeginBackward(m, Chunk::Mode::kWhole);
    while (chunk.NextPiece().value()) {
    }
  }
  return count;
}

// A fused reduction and update, each element on one of two threads, gives the
// bits of one rank that updates all.
TEST_F(ReducerTest, UpdatesInOnePassWithTheBitsOfOneRank) {
  const EngineFixture one({/*ranks=*/1, Numbers::kExact});
  BucketLog log;
  const auto alone = one.MakeChunk(/*stage=*/0, &log);
  TrainStep(one, *alone, 0, one.Batches(0, 0));

  const EngineFixture two({/*ranks=*/2, Numbers::kExact});
  const std::vector<RankGroups> groups = Groups(2);
  double counts[2] = {};
  std::unique_ptr<Chunk> chunks[2];
  BucketLog logs[2];
  for (int rank : {0, 1}) {
    chunks[rank] = two.MakeChunk(/*stage=*/0, &logs[rank]);
    counts[rank] = Accumulate(*chunks[rank], two.Batches(rank, 0));
  }
  two.SetScalars(*chunks[0], 0, counts[0] + counts[1]);
  std::vector<std::thread> ranks;
  for (int rank : {0, 1}) {
    ranks.emplace_back([&, rank] {
      Reducer reducer({&groups[rank], /*run_inline=*/true}, nullptr, &wait_);
      Chunk& chunk = *chunks[rank];
      for (int k = 0; k < chunk.arena().num_buckets(); ++k) {
        ChunkParameters& parameters = chunk.parameters();
        ASSERT_EQ(
            reducer.Start(k, GroupId::kDp, parameters.updates().ReduceUpdate(k),
                          comm::Event()),
            absl::StatusOr<bool>(true));
        parameters.ReleaseGrads(k);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (int rank : {0, 1}) {
    EXPECT_EQ(ValuesOf(chunks[rank]->arena()), ValuesOf(alone->arena()));
  }
}

// Returns a plan with three stages that share a bucket, two of them on rank 0.
pipeline::Plan TiedPlan() {
  pipeline::Plan plan;
  plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  for (const pipeline::StagePlace& place :
       {pipeline::StagePlace{0, 0}, {1, 0}, {1, 1}, {0, 1}}) {
    pipeline::StagePlan& stage = plan.stages.emplace_back();
    stage.place = place;
    const bool shares = plan.stages.size() != 2;
    stage.parameters = {shares ? "shared" : "own", "more"};
    stage.parameters[1] += std::to_string(plan.stages.size());
    stage.buckets = {{1}, {0}};
  }
  return plan;
}

TEST(TiedSumsTest, ARankSumsWhatItHasBeforeItMeetsOthers) {
  using pipeline::ActionKind;
  TiedSums sums(TiedPlan(), /*rank=*/0);
  const pipeline::Action last = {ActionKind::kReduceTied, 1, {}, /*chunk=*/1};
  const pipeline::Action first = {ActionKind::kReduceTied, 1, {}, /*chunk=*/0};
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(sums.Begin(last, /*id=*/7), nullptr);
    TiedSums::Sum* const sum = sums.Begin(first, /*id=*/9);
    ASSERT_NE(sum, nullptr);
    EXPECT_EQ(sum, &sums.Of(last));
    EXPECT_TRUE(sum->has_peers);
    ASSERT_EQ(sum->copies.size(), 2u);
    EXPECT_EQ(sum->copies[0].chunk, 0) << "in the order of stages";
    EXPECT_EQ(sum->copies[1].chunk, 1);
    EXPECT_EQ(sums.End(*sum), (std::vector<int>{7, 9}));
  }
}

TEST(TiedSumsTest, OneCopyMeetsOthersAtOnce) {
  TiedSums sums(TiedPlan(), /*rank=*/1);
  TiedSums::Sum* const sum = sums.Begin(
      {pipeline::ActionKind::kReduceTied, 1, {}, /*chunk=*/1}, /*id=*/3);
  ASSERT_NE(sum, nullptr);
  EXPECT_TRUE(sum->has_peers);
  EXPECT_EQ(sum->copies.size(), 1u);
  EXPECT_DEATH(sums.Of({pipeline::ActionKind::kReduceTied, 1, {}, 0}),
               "of a bucket that stages share");
}

}  // namespace
}  // namespace troupe::actors
