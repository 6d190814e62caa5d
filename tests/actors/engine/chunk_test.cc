#include "actors/chunk.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "nn/ops/loss.h"
#include "tests/actors/engine/engine_fixture.h"

namespace troupe::actors {
namespace {

// Two micro-batches of 12 on one rank.
EngineFixture TwoMicroBatches(int stages = 1) {
  return EngineFixture({/*ranks=*/1, Numbers::kExact}, [&](JobSpec& spec) {
    spec.plan.micro_batch_size = 12;
    spec.plan.mesh = pipeline::Mesh(/*dp=*/1, stages);
    if (stages == 2) spec.plan.cuts = {2};
  });
}

void RunBackward(Chunk& chunk, int m, Chunk::Mode mode) {
  chunk.BeginBackward(m, mode);
  while (chunk.NextPiece().value()) {
  }
}

TEST(ChunkTest, BucketsAreReadyWithTheLastMicroBatchOnly) {
  const EngineFixture engine = TwoMicroBatches();
  BucketLog log;
  const auto chunk = engine.MakeChunk(/*stage=*/0, &log);
  chunk->BeginStep(StepKind::kTrain, 0, engine.Batches(0, 0));
  ASSERT_TRUE(chunk->Forward(0).ok());
  ASSERT_TRUE(chunk->Forward(1).ok());
  RunBackward(*chunk, 0, Chunk::Mode::kWhole);
  EXPECT_EQ(log.text(), "");
  RunBackward(*chunk, 1, Chunk::Mode::kWhole);
  // Bucket 0 is a bias alone; 2 holds the weight beside the bias in 1. A bucket
  // is ready with its weight gradients and released after the input gradient.
  EXPECT_EQ(log.text(),
            "ready 0 released 0 ready 2 ready 1 released 2 released 1 "
            "ready 3 released 3");
}

TEST(ChunkTest, ASplitBackwardReleasesBeforeItIsReady) {
  const EngineFixture engine = TwoMicroBatches();
  BucketLog log;
  const auto chunk = engine.MakeChunk(/*stage=*/0, &log);
  chunk->BeginStep(StepKind::kTrain, 0, engine.Batches(0, 0));
  for (int m : {0, 1}) ASSERT_TRUE(chunk->Forward(m).ok());
  for (int m : {0, 1}) RunBackward(*chunk, m, Chunk::Mode::kInputs);
  const std::string released = "released 0 released 2 released 1 released 3";
  EXPECT_EQ(log.text(), released);
  for (int m : {0, 1}) RunBackward(*chunk, m, Chunk::Mode::kWeights);
  EXPECT_EQ(log.text(), released + " ready 0 ready 2 ready 1 ready 3");
}

TEST(ChunkTest, EveryStepBeginsAnew) {
  const EngineFixture engine = TwoMicroBatches();
  BucketLog log;
  const auto chunk = engine.MakeChunk(/*stage=*/0, &log);
  TrainStep(engine, *chunk, 0, engine.Batches(0, 0));
  const std::string first = log.text();
  TrainStep(engine, *chunk, 1, engine.Batches(0, 1));
  EXPECT_EQ(log.text(), first + " " + first);
}

TEST(ChunkTest, TwoChunksEqualOneToTheBit) {
  const EngineFixture one = TwoMicroBatches();
  BucketLog log;
  const auto whole = one.MakeChunk(/*stage=*/0, &log);
  TrainStep(one, *whole, 0, one.Batches(0, 0));

  const EngineFixture two = TwoMicroBatches(/*stages=*/2);
  BucketLog head_log, tail_log;
  const auto head = two.MakeChunk(/*stage=*/0, &head_log);
  const auto tail = two.MakeChunk(/*stage=*/1, &tail_log);
  EXPECT_TRUE(head->is_first() && !head->is_last());
  EXPECT_TRUE(!tail->is_first() && tail->is_last());
  head->BeginStep(StepKind::kTrain, 0, two.Batches(0, 0));
  tail->BeginStep(StepKind::kTrain, 0, two.Batches(0, 0));
  double count = 0;
  for (int m : {0, 1}) {
    ASSERT_TRUE(head->Forward(m).ok());
    tail->ReceiveActivation(m, head->output(m));
    ASSERT_TRUE(tail->Forward(m).ok());
    count += tail->output(m).data<double>()[nn::ops::kLossCount];
    RunBackward(*tail, m, Chunk::Mode::kWhole);
    head->ReceiveGradient(m, tail->TakeInputGradient(m));
    RunBackward(*head, m, Chunk::Mode::kWhole);
  }
  two.SetScalars(*head, 0, count);
  ParameterValues both;
  for (Chunk* chunk : {head.get(), tail.get()}) {
    for (int k = 0; k < chunk->arena().num_buckets(); ++k) {
      ASSERT_TRUE(chunk->Update(k).ok());
    }
    both.merge(ValuesOf(chunk->arena()));
  }
  EXPECT_EQ(both, ValuesOf(whole->arena()));
}

TEST(ChunkTest, AnErrorNamesStepMicroBatchAndModule) {
  const EngineFixture engine = TwoMicroBatches();
  BucketLog log;
  const auto chunk = engine.MakeChunk(/*stage=*/0, &log);
  StepBatches batches = engine.Batches(0, 0);
  batches[1].inputs = batches[1].inputs.View({6, 8});
  chunk->BeginStep(StepKind::kTrain, 6, batches);
  ASSERT_TRUE(chunk->Forward(0).ok());
  const absl::Status status = chunk->Forward(1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StartsWith(status.message(),
                               "step 7, micro-batch 1: in module 0: "))
      << status;
}

TEST(ChunkTest, EvaluationLeavesNoTapeAndNoGradient) {
  const EngineFixture engine = TwoMicroBatches();
  BucketLog log;
  const auto chunk = engine.MakeChunk(/*stage=*/0, &log);
  const ParameterValues before = ValuesOf(chunk->arena());
  chunk->BeginStep(StepKind::kEvaluate, 0, engine.Batches(0, 0));
  ASSERT_TRUE(chunk->Forward(0).ok());
  EXPECT_EQ(chunk->output(0).numel(), nn::ops::kNumLossStats);
  EXPECT_EQ(log.text(), "");
  EXPECT_EQ(ValuesOf(chunk->arena()), before);
}

TEST(ChunkTest, CopiesNameEveryParameter) {
  const EngineFixture engine = TwoMicroBatches();
  BucketLog log;
  const auto chunk = engine.MakeChunk(/*stage=*/0, &log);
  CheckpointShard shard;
  ASSERT_TRUE(chunk->CopyInto(shard).ok());
  ASSERT_EQ(shard.model.size(), chunk->arena().slots().size());
  const auto& [name, copy] = shard.model[0];
  const std::vector<double> then = ValuesOf(chunk->arena())[name];
  TrainStep(engine, *chunk, 0, engine.Batches(0, 0));
  EXPECT_NE(ValuesOf(chunk->arena())[name], then);
  EXPECT_EQ(std::vector<double>(copy.span<double>().begin(),
                                copy.span<double>().end()),
            then);
}

}  // namespace
}  // namespace troupe::actors
