// Tests a model whose micro-batches use different parameters, under schedules
// with whole and with split backwards: no bucket may be reduced before every
// micro-batch that adds to it has run.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/sim/simulation.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kWidth = 4, kMicroBatch = 2, kMicroBatches = 2;
constexpr int kRanks = 2;
constexpr std::int64_t kBatch = kRanks * kMicroBatches * kMicroBatch;
constexpr std::int64_t kSteps = 2;

// Runs linear_, and after it, if the batch's first number is positive, extra_,
// whose buckets are the first to be reduced.
class Conditional : public nn::Module {
 public:
  Conditional()
      : linear_(Add<nn::Linear>("linear", kWidth, kWidth, Options())),
        extra_(Add<nn::Linear>("extra", kWidth, kWidth, Options())) {}

  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    const nn::Tensor y = linear_(ctx, x);
    const bool both = ctx.shape_only() || x.data<double>()[0] > 0;
    return both ? extra_(ctx, y) : y;
  }

 private:
  static nn::Linear::Options Options() {
    return {/*bias=*/true, nn::DType::kF64};
  }

  nn::Linear& linear_;
  nn::Linear& extra_;
};

// Returns samples with which, on each rank, micro-batch `whole` uses all
// parameters, and the other one does not.
data::DatasetPtr Samples(int whole) {
  nn::CachingAllocator allocator;
  const nn::Shape shape = {kBatch * kSteps, kWidth};
  nn::Tensor inputs = nn::Tensor::Empty(shape, nn::DType::kF32, allocator);
  nn::Tensor targets = nn::Tensor::Empty(shape, nn::DType::kF32, allocator);
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    const std::int64_t micro_batch = i / kWidth / kMicroBatch;
    const float size = static_cast<float>(1 + i % 7) / 8;
    inputs.data<float>()[i] =
        micro_batch % kMicroBatches == whole ? size : -size;
    targets.data<float>()[i] = static_cast<float>(i % 5);
  }
  return *data::MakeInMemoryDataset(inputs, targets, /*num_classes=*/0);
}

JobSpec ConditionalJob(int whole, const std::string& table) {
  JobSpec spec;
  spec.dtype = nn::DType::kF64;
  spec.model = [] { return std::make_unique<Conditional>(); };
  spec.loss = nn::ops::MeanSquaredError;
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.1;
    return std::make_unique<nn::Sgd>(sgd);
  };
  spec.kernels = [] { return nn::CreateReferenceKernels(); };
  spec.train = Samples(whole);
  spec.shuffle = false;
  spec.steps = kSteps;
  spec.plan.mesh = pipeline::Mesh(kRanks);
  spec.plan.global_batch_size = kBatch;
  spec.plan.micro_batch_size = kMicroBatch;
  spec.plan.buckets.first_bucket_bytes = 1;  // a bucket per parameter
  spec.plan.buckets.bucket_bytes = 1;
  spec.plan.schedule = [table](const pipeline::Mesh&, int, int) {
    return *pipeline::ParseTable(table);
  };
  return spec;
}

// Returns every rank's parameters after every step.
std::vector<std::vector<double>> Train(const JobSpec& spec,
                                       std::uint64_t seed) {
  std::vector<std::vector<double>> all(kRanks * kSteps);
  SimulationOptions options;
  options.seed = seed;
  options.after_step = [&](int rank, std::int64_t step,
                           const nn::ParameterArena& arena) {
    const auto values = arena.values().span<double>();
    all[rank * kSteps + step].assign(values.begin(), values.end());
  };
  Simulation simulation(spec, options);
  const absl::Status status = simulation.Run().status();
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::string> launches(kRanks);
  for (const TraceEvent& event : simulation.recorder().events()) {
    if (event.kind != TraceKind::kCollective ||
        event.phase != TracePhase::kBegin) {
      continue;
    }
    absl::StrAppend(&launches[event.rank], event.step, ":", event.name, " ");
  }
  EXPECT_EQ(launches[0], launches[1]) << ReplayCommand(seed);
  return all;
}

TEST(ConditionalModelTest, NoBucketLeavesBeforeItsLastGradient) {
  for (int whole : {0, 1}) {
    const auto expected = Train(ConditionalJob(whole, "F0 B0 F1 B1"), 0);
    for (const char* table :
         {"F0 F1 I0 I1 W0 W1", "F0 I0 F1 W0 I1 W1", "F0 F1 B0 I1 W1"}) {
      for (const std::uint64_t seed : Seeds(100)) {
        ASSERT_EQ(Train(ConditionalJob(whole, table), seed), expected)
            << table << ", micro-batch " << whole << " uses all"
            << ReplayCommand(seed);
      }
    }
  }
}

// No forward reads extra_, so none waits for its gathers; all ranks start them
// before the next step's loss.
TEST(ConditionalModelTest, GathersThatNoForwardWaitsForKeepTheirOrder) {
  JobSpec spec = ConditionalJob(/*whole=*/kMicroBatches, "F0 B0");
  spec.plan.micro_batch_size = kMicroBatches * kMicroBatch;
  const auto expected = Train(spec, 0);
  spec.plan.zero_stage = 1;
  spec.plan.cross_step = true;
  for (const std::uint64_t seed : Seeds(100)) {
    ASSERT_EQ(Train(spec, seed), expected) << ReplayCommand(seed);
  }
}

}  // namespace
}  // namespace troupe::actors
