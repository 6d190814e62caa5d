#include "tests/actors/engine/engine_fixture.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/ops/loss.h"

namespace troupe::actors {

EngineFixture::EngineFixture(const SmallJobOptions& job,
                             const std::function<void(JobSpec& spec)>& edit)
    : spec_(SmallJob(job)) {
  if (edit) edit(spec_);
  plan_ = MakeJobPlan(spec_, spec_.plan).value();
  trace_ = std::make_unique<StepTrace>(spec_.trace, /*rank=*/0);
  scalars_ = nn::HostScalars({}, allocator_);
}

std::unique_ptr<Chunk> EngineFixture::MakeChunk(
    int stage, Chunk::Listener* listener) const {
  Chunk::Setup setup;
  setup.spec = &spec_;
  setup.plan = &plan_;
  setup.stage = stage;
  setup.kernels = spec_.kernels().value();
  setup.trace = trace_.get();
  setup.scalars = scalars_;
  return Chunk::Create(setup, listener).value();
}

void EngineFixture::SetScalars(const Chunk& chunk, std::int64_t step,
                               double loss_count) const {
  nn::StepScalars values = chunk.parameters().ScalarsOf(step);
  values.loss_count = loss_count;
  nn::ScalarsIn(scalars_) = values;
}

StepBatches EngineFixture::Batches(int rank, std::int64_t step) const {
  static auto* const allocator = new nn::CachingAllocator();
  const std::int64_t micro = plan_.micro_batch_size;
  const int dp = plan_.mesh.CoordsOf(rank).dp;
  StepBatches batches;
  for (int m = 0; m < plan_.micro_batches; ++m) {
    std::vector<std::int64_t> samples(micro);
    std::iota(samples.begin(), samples.end(),
              (step % 3) * plan_.global_batch_size +
                  (dp * plan_.micro_batches + m) * micro);
    data::Batch batch;
    batch.inputs = nn::Tensor::Empty({micro, 4}, nn::DType::kF32, *allocator);
    batch.targets = nn::Tensor::Empty({micro, 2}, nn::DType::kF32, *allocator);
    const absl::Status filled =
        spec_.train->Fill(samples, /*epoch=*/0, batch.inputs, batch.targets);
    EXPECT_TRUE(filled.ok()) << filled;
    batches.push_back(std::move(batch));
  }
  return batches;
}

ParameterValues ValuesOf(const nn::ParameterArena& arena) {
  ParameterValues all;
  for (const nn::ArenaSlot& slot : arena.slots()) {
    const nn::Tensor& value = slot.parameter->value;
    std::vector<double>& values = all[slot.parameter->name];
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      values.push_back(value.dtype() == nn::DType::kF64
                           ? value.data<double>()[i]
                           : value.data<float>()[i]);
    }
  }
  return all;
}

void BucketLog::Append(const char* what, int bucket) {
  absl::StrAppend(&text_, text_.empty() ? "" : " ", what, " ", bucket);
}

void TrainStep(const EngineFixture& fixture, Chunk& chunk, std::int64_t step,
               const StepBatches& batches) {
  chunk.BeginStep(StepKind::kTrain, step, batches);
  double count = 0;
  for (int m = 0; m < static_cast<int>(batches.size()); ++m) {
    const absl::Status forward = chunk.Forward(m);
    ASSERT_TRUE(forward.ok()) << forward;
    count += chunk.output(m).data<double>()[nn::ops::kLossCount];
    chunk.BeginBackward(m, Chunk::Mode::kWhole);
    for (bool more = true; more;) {
      const absl::StatusOr<bool> piece = chunk.NextPiece();
      ASSERT_TRUE(piece.ok()) << piece.status();
      more = *piece;
    }
  }
  fixture.SetScalars(chunk, step, count);
  for (int k = 0; k < chunk.arena().num_buckets(); ++k) {
    const absl::Status updated =
        chunk.parameters().updates().Update(k, fixture.scalars());
    ASSERT_TRUE(updated.ok()) << updated;
  }
}

}  // namespace troupe::actors
