#include "actors/planning/expected_memory.h"

#include <memory>

#include "actors/job.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/recompute.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// Returns a job of four layers, each of 8 x 8 weights and 8 biases, in f32, on
// samples of 8 numbers, with Adam.
JobSpec LayersInMemory() {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/1);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    for (int i = 0; i < 4; ++i) model->Append<nn::Linear>(8, 8);
    return model;
  };
  spec.optimizer = [] { return std::make_unique<nn::Adam>(nn::AdamOptions()); };
  return spec;
}

constexpr double kLayerBytes = (8 * 8 + 8) * 4;
constexpr double kOutputBytes = 8 * 4;  // a layer's output for one sample

ExpectedMemory Of(const JobSpec& spec) {
  pipeline::PlanOptions options = spec.plan;
  const pipeline::Plan plan =
      pipeline::MakePlan(options, spec.model, {8}, spec.dtype, spec.device)
          .value();
  return ExpectMemory(spec, plan).value();
}

TEST(ExpectedMemory, OfOneRank) {
  const ExpectedMemory memory = Of(LayersInMemory());
  EXPECT_EQ(memory.parameters, 4 * kLayerBytes);
  EXPECT_EQ(memory.gradients, 4 * kLayerBytes);
  EXPECT_EQ(memory.optimizer, 8 * kLayerBytes);
  EXPECT_EQ(memory.activations, 32 * 4 * kOutputBytes);
  EXPECT_EQ(memory.ToString(),
            "8.5 KiB (activations 4 KiB, optimizer 2.3 KiB, parameters 1.1 "
            "KiB, gradients 1.1 KiB)");
}

// A rank keeps one micro-batch at a time, whatever their number.
TEST(ExpectedMemory, OfAMicroBatchAtATime) {
  JobSpec spec = LayersInMemory();
  spec.plan.micro_batch_size = 8;
  EXPECT_EQ(Of(spec).activations, 8 * 4 * kOutputBytes);
}

// 32 samples are five micro-batches of 7 with a rest of 4, all kept at once.
TEST(ExpectedMemory, OfALastMicroBatchThatIsSmaller) {
  JobSpec spec = LayersInMemory();
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.cuts = {2};
  spec.plan.micro_batch_size = 7;
  EXPECT_NEAR(Of(spec).activations, 32 * 2 * kOutputBytes, 1e-6);
}

// GPipe's stages keep all micro-batches; the result is the largest stage's.
TEST(ExpectedMemory, OfTheLargestStage) {
  JobSpec spec = LayersInMemory();
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  spec.plan.cuts = {1};
  spec.plan.micro_batch_size = 4;
  const ExpectedMemory memory = Of(spec);
  EXPECT_EQ(memory.parameters, 3 * kLayerBytes);
  EXPECT_EQ(memory.activations, 16 * 3 * kOutputBytes);
  EXPECT_EQ(memory.ranks, 4);
  EXPECT_NE(memory.ToString().find(" a rank ("), std::string::npos);
}

TEST(ExpectedMemory, OfGradientsInAnotherDtype) {
  JobSpec spec = LayersInMemory();
  spec.plan.grad_dtype = nn::DType::kF64;
  EXPECT_EQ(Of(spec).gradients, 8 * kLayerBytes);
}

TEST(ExpectedMemory, FrozenParametersHaveNoMore) {
  JobSpec spec = LayersInMemory();
  const nn::ModelFactory all = spec.model;
  spec.model = [all] {
    auto model = all();
    model->Parameters()[0]->requires_grad = false;  // a weight
    return model;
  };
  const ExpectedMemory memory = Of(spec);
  EXPECT_EQ(memory.parameters, 4 * kLayerBytes);
  EXPECT_EQ(memory.gradients, 4 * kLayerBytes - 8 * 8 * 4);
}

// Ranks along tp have 4 of 7 rows of a head, with a row of padding in the last
// piece. Cross entropy takes their logits; another loss, all of them.
TEST(ExpectedMemory, OfAPieceOfTheVocabulary) {
  JobSpec spec = LayersInMemory();
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(8, 7).set_parallel(nn::Linear::kVocabulary);
    return model;
  };
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/1, /*tp=*/2);
  spec.loss = nn::ops::CrossEntropyLoss();
  const ExpectedMemory split = Of(spec);
  EXPECT_EQ(split.parameters, 4 * (8 + 1) * 4);
  EXPECT_EQ(split.gradients, 4 * (8 + 1) * 4);
  spec.loss = [](nn::Context& ctx, const nn::Tensor& y, const nn::Tensor& t) {
    return nn::ops::MeanSquaredError(ctx, y, t);
  };
  // For each of 32 samples, the gathered logits.
  EXPECT_EQ(Of(spec).activations - split.activations, 32 * 7 * 4);
}

// Two ranks that share the tokens have half of the nine activations between
// layers that they share: token and position, three norms and the sum before
// the second, two projections, the sum behind.
TEST(ExpectedMemory, OfTokensThatRanksShare) {
  JobSpec spec = LayersInMemory();
  spec.model = [] {
    nn::Gpt2Options options;
    options.layers = 1;
    options.heads = 2;
    options.width = 16;
    options.context = 8;
    options.vocab_size = 6;
    return *nn::MakeGpt2(options);
  };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/1, /*tp=*/2);
  const auto activations = [&] {
    const absl::StatusOr<pipeline::Plan> plan = pipeline::MakePlan(
        spec.plan, spec.model, {8}, nn::DType::kI64, spec.device);
    return ExpectMemory(spec, *plan)->activations;
  };
  const double whole = activations();
  spec.plan.sequence_parallel = true;
  EXPECT_EQ(whole - activations(), 32 * 9 * (8 * 16 * 4) / 2);
}

// Returns a job of four ranks whose parameters, gradients and states are nearly
// all that they need, in two micro-batches. `bucket_bytes`: that of a hidden
// layer, or less, so that its bias is in another bucket than its weight.
JobSpec Replicas(int zero_stage, std::int64_t bucket_bytes) {
  JobSpec spec = TinyCnnJob(/*dp=*/4, /*steps=*/2);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(28 * 28, 8);
    model->Append<nn::Linear>(8, 256);
    for (int i = 0; i < 96; ++i) {
      model->Append<nn::ReLU>();
      model->Append<nn::Linear>(256, 256);
    }
    model->Append<nn::Linear>(256, 10);
    return model;
  };
  spec.optimizer = LayersInMemory().optimizer;
  spec.plan.global_batch_size = 8;
  spec.plan.micro_batch_size = 1;
  spec.plan.buckets.first_bucket_bytes = 11'000;  // the last layer
  spec.plan.buckets.bucket_bytes = bucket_bytes;
  spec.plan.inline_bytes = 0;
  spec.plan.zero_stage = zero_stage;
  spec.plan.zero_ahead_bytes = bucket_bytes;
  return spec;
}

TEST(ExpectedMemory, OfWhatReplicasShareIsThatOfARun) {
  constexpr std::int64_t kLayer = (256 * 256 + 256) * 4;
  for (const std::int64_t bucket_bytes : {kLayer, kLayer - 1}) {
    double before = 0;
    for (const int stage : {0, 1, 2, 3}) {
      const Reports reports = ReportsOf(Replicas(stage, bucket_bytes));
      const double peak = static_cast<double>(reports.steps.back().peak_bytes);
      const double expected = reports.info.memory.total();
      EXPECT_NEAR(peak, expected, 0.05 * expected)
          << "stage " << stage << ", buckets of " << bucket_bytes;
      if (stage > 0) {
        EXPECT_LT(peak, 0.8 * before);
      }
      before = peak;
    }
  }
}

// The estimate is an upper bound, and a close one if activations dominate.
TEST(ExpectedMemory, IsThatOfARunOrMore) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/3);
  const Reports reports = ReportsOf(spec);
  const double peak = static_cast<double>(reports.steps.back().peak_bytes);
  EXPECT_GT(reports.info.memory.total(), 0.5 * peak);
  EXPECT_LT(reports.info.memory.total(), 2 * peak);
}

constexpr std::int64_t kSequences = 64, kTokens = 16, kVocabulary = 64;

data::DatasetPtr Sequences() {
  nn::CachingAllocator memory;
  const nn::Shape shape = {kSequences, kTokens};
  nn::Tensor tokens = nn::Tensor::Zeros(shape, nn::DType::kI64, memory);
  return *data::MakeInMemoryDataset(tokens, tokens, kVocabulary);
}

// Returns a job of a GPT of 12 layers with AdamW, two micro-batches of a sample
// for each rank.
JobSpec GptOn(const pipeline::Mesh& mesh, int zero_stage) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/3);
  spec.model = [] {
    nn::Gpt2Options options;
    options.layers = 12;
    options.heads = 4;
    options.width = 128;
    options.context = kTokens;
    options.vocab_size = kVocabulary;
    return *nn::MakeGpt2(options);
  };
  spec.loss = [](nn::Context& ctx, const nn::Tensor& y, const nn::Tensor& t) {
    return nn::ops::SoftmaxCrossEntropy(ctx, y, t);
  };
  spec.optimizer = nn::AdamWDefaults();
  spec.train = Sequences();
  spec.test = nullptr;
  spec.plan.mesh = mesh;
  spec.plan.global_batch_size = 2 * mesh.dp();
  spec.plan.micro_batch_size = 1;
  spec.plan.zero_stage = zero_stage;
  spec.plan.inline_bytes = 1 << 30;
  return spec;
}

// Parameters, gradients and states are nearly all that a small batch needs, so
// the estimate is within a twentieth of what the ranks' allocators count.
TEST(ExpectedMemory, IsWithinATwentiethOfARunOfAGpt) {
  const struct {
    pipeline::Mesh mesh;
    int zero_stage;
  } cases[] = {{pipeline::Mesh(/*dp=*/4), 0},
               {pipeline::Mesh(/*dp=*/4), 1},
               {pipeline::Mesh(/*dp=*/1, /*pp=*/1, /*tp=*/2), 0},
               {pipeline::Mesh(/*dp=*/2, /*pp=*/1, /*tp=*/2), 1},
               {pipeline::Mesh(/*dp=*/2, /*pp=*/1, /*tp=*/2), 2},
               {pipeline::Mesh(/*dp=*/2, /*pp=*/1, /*tp=*/2), 3}};
  double whole = 0;
  for (const auto& [mesh, zero_stage] : cases) {
    const Reports reports = ReportsOf(GptOn(mesh, zero_stage));
    const double peak = static_cast<double>(reports.steps.back().peak_bytes);
    const double expected = reports.info.memory.total();
    EXPECT_NEAR(expected / peak, 1, 0.05)
        << mesh.ToString() << ", stage " << zero_stage << ": "
        << reports.info.memory.ToString() << "; measured " << peak;
    if (whole == 0) whole = expected;
    EXPECT_LE(expected, whole);
  }
}

}  // namespace
}  // namespace troupe::actors
