#include "actors/chunks/chunk.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/lambda.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/modules/skip.h"
#include "nn/ops/loss.h"
#include "tests/actors/engine/engine_fixture.h"

namespace troupe::actors {
namespace {

// Returns a job of two micro-batches of 12 on one rank.
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

// The reference kernels compute gradients two rows at a time.
TEST(ChunkTest, WhatABackwardUpdatesHasNoMemoryForItsGradient) {
  const EngineFixture engine({/*ranks=*/1, Numbers::kFloat}, [](JobSpec& spec) {
    spec.plan.micro_batch_size = 0;
    spec.plan.buckets.bucket_bytes = 1;  // one parameter in each
    spec.kernels = [] { return nn::CreateReferenceKernels(); };
  });
  BucketLog log, other_log;
  const auto behind = engine.MakeChunk(/*stage=*/0, &other_log);
  TrainStep(engine, *behind, 0, engine.Batches(0, 0));

  const auto chunk = engine.MakeChunk(/*stage=*/0, &log);
  chunk->BeginStep(StepKind::kTrain, 0, engine.Batches(0, 0));
  ASSERT_TRUE(chunk->Forward(0).ok());
  engine.SetScalars(*chunk, 0,
                    chunk->output(0).data<double>()[nn::ops::kLossCount]);
  chunk->UpdateInBackward();
  RunBackward(*chunk, 0, Chunk::Mode::kWhole);
  int updated = 0;
  for (const nn::ArenaSlot& slot : chunk->arena().slots()) {
    if (!chunk->parameters().updates().IsUpdated(slot.bucket)) continue;
    EXPECT_FALSE(slot.parameter->grad.defined()) << slot.parameter->name;
    ++updated;
  }
  EXPECT_GE(updated, 1) << engine.plan().ToString();
  for (int k = 0; k < chunk->arena().num_buckets(); ++k) {
    ASSERT_TRUE(chunk->parameters().updates().Update(k, engine.scalars()).ok());
  }
  EXPECT_EQ(ValuesOf(chunk->arena()), ValuesOf(behind->arena()));
  EXPECT_EQ(log.text().size(), other_log.text().size())
      << "all buckets are ready and released: " << log.text();
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
    ASSERT_TRUE(tail->ReceiveActivations(m, head->TakeOutputs(m)).ok());
    ASSERT_TRUE(tail->Forward(m).ok());
    count += tail->output(m).data<double>()[nn::ops::kLossCount];
    RunBackward(*tail, m, Chunk::Mode::kWhole);
    ASSERT_TRUE(head->ReceiveGradients(m, tail->TakeInputGradients(m)).ok());
    RunBackward(*head, m, Chunk::Mode::kWhole);
  }
  two.SetScalars(*head, 0, count);
  ParameterValues both;
  for (Chunk* chunk : {head.get(), tail.get()}) {
    for (int k = 0; k < chunk->arena().num_buckets(); ++k) {
      ASSERT_TRUE(chunk->parameters().updates().Update(k, two.scalars()).ok());
    }
    both.merge(ValuesOf(chunk->arena()));
  }
  EXPECT_EQ(both, ValuesOf(whole->arena()));
}

// The second of three chunks passes on a skip connection to the third without
// keeping it; the gradient returns unchanged, or is absent.
TEST(ChunkTest, PassesOnWhatItDoesNotPop) {
  for (const bool is_used : {true, false}) {
    const EngineFixture three(
        {/*ranks=*/1, Numbers::kExact}, [&](JobSpec& spec) {
          spec.model = [is_used] {
            const nn::Linear::Options f64 = {/*bias=*/true, nn::DType::kF64};
            auto model = std::make_unique<nn::Sequential>();
            model->Append<nn::Stash>("skip");
            model->Append<nn::Linear>(4, 4, f64);
            if (is_used) {
              model->Append<nn::PopAdd>("skip");
            } else {
              model->Append<nn::Lambda>(
                  [](nn::Context& ctx, const nn::Tensor& x) {
                    ctx.Pop("skip");
                    return x;
                  });
            }
            model->Append<nn::Linear>(4, 2, f64);
            return model;
          };
          spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/3);
          spec.plan.cuts = {1, 2};
          spec.plan.micro_batch_size = 12;
        });
    BucketLog log;
    const auto middle = three.MakeChunk(/*stage=*/1, &log);
    middle->BeginStep(StepKind::kTrain, 0, three.Batches(1, 0));
    nn::CachingAllocator memory;
    const nn::Tensor x = nn::Tensor::Zeros({12, 4}, nn::DType::kF64, memory);
    const nn::Tensor skip = nn::Tensor::Zeros({12, 4}, nn::DType::kF64, memory);
    EXPECT_EQ(middle->ReceiveActivations(0, {x}),
              absl::InvalidArgumentError("1 tensor(s) where the plan has 2"));
    ASSERT_TRUE(middle->ReceiveActivations(0, {x, skip}).ok());
    ASSERT_TRUE(middle->Forward(0).ok());
    const nn::TensorList sent = middle->TakeOutputs(0);
    ASSERT_EQ(sent.size(), 2u);
    EXPECT_EQ(sent[1].raw(), skip.raw());
    EXPECT_TRUE(middle->output(0).is_meta());
    const nn::Tensor gradient = is_used ? skip : nn::Tensor();
    EXPECT_FALSE(middle->ReceiveGradients(0, {x}).ok());
    ASSERT_TRUE(middle->ReceiveGradients(0, {x, gradient}).ok());
    RunBackward(*middle, 0, Chunk::Mode::kWhole);
    const nn::TensorList back = middle->TakeInputGradients(0);
    ASSERT_EQ(back.size(), 2u);
    EXPECT_TRUE(back[0].defined());
    ASSERT_EQ(back[1].defined(), is_used);
    if (is_used) {
      EXPECT_EQ(back[1].raw(), skip.raw());
    }
  }
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
  ASSERT_TRUE(chunk->parameters()
                  .CopyInto(engine.scalars(), /*in_place=*/false, shard)
                  .ok());
  ASSERT_EQ(shard.model.size(), chunk->arena().slots().size());
  const std::string& name = shard.model[0].name;
  const nn::Tensor& copy = shard.model[0].elements;
  const std::vector<double> then = ValuesOf(chunk->arena())[name];
  TrainStep(engine, *chunk, 0, engine.Batches(0, 0));
  EXPECT_NE(ValuesOf(chunk->arena())[name], then);
  EXPECT_EQ(std::vector<double>(copy.span<double>().begin(),
                                copy.span<double>().end()),
            then);
}

}  // namespace
}  // namespace troupe::actors
