#include "actors/planning/measure_costs.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "actors/planning/step_prediction.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/modules/flatten.h"
#include "nn/modules/lambda.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/modules/tokens.h"
#include "nn/ops/reshape.h"
#include "nn/optim/adam.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// Returns a job with layers of very different sizes on TinyCnnJob()'s images,
// in two stages.
JobSpec Layers() {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/2);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    auto& body = model->AppendNamed<nn::Sequential>("body");
    body.Append<nn::Linear>(784, 512);
    body.Append<nn::ReLU>();
    body.Append<nn::Linear>(512, 16);
    model->AppendNamed<nn::Linear>("head", 16, 10);
    return model;
  };
  spec.optimizer = [] { return std::make_unique<nn::Adam>(nn::AdamOptions()); };
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.micro_batch_size = spec.plan.global_batch_size / 4;
  spec.plan.cuts = {"body.2"};
  return spec;
}

TEST(MeasureCosts, EveryPartOfTheModel) {
  const JobSpec spec = Layers();
  const auto costs = MeasureCosts(spec);
  ASSERT_TRUE(costs.ok()) << costs.status();
  std::vector<std::string> paths;
  for (const pipeline::UnitCosts& unit : costs->units) {
    paths.push_back(unit.path);
    EXPECT_GT(unit.costs.forward, 0) << unit.path;
    EXPECT_GT(unit.costs.backward, 0) << unit.path;
    EXPECT_GT(unit.costs.inputs + unit.costs.weights, 0) << unit.path;
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"0", "body.0", "body.1", "body.2",
                                             "head"}));
  EXPECT_GT(costs->transfer, 0);
  // Parameters, gradients and Adam's two states.
  const pipeline::UnitCosts& large = costs->units[1];
  EXPECT_EQ(large.held_bytes, 4.0 * (784 * 512 + 512) * 4);
  EXPECT_EQ(costs->units[2].held_bytes, 0);
  const double batch = spec.plan.micro_batch_size;
  EXPECT_EQ(large.output_bytes, batch * 512 * 4);
  // The layer's activation is its output, which the allocator rounds up.
  EXPECT_GE(large.costs.activation, batch * 512 * 4);
  EXPECT_LT(large.costs.activation, 4 * batch * 512 * 4);
  // The large layer has 25 times the FLOPs of either small one.
  for (const int small : {3, 4}) {
    EXPECT_GT(large.costs.weights, costs->units[small].costs.weights);
    EXPECT_GT(large.costs.update, costs->units[small].costs.update);
  }
}

TEST(MeasureCosts, OptimizersThatLookAtAllGradients) {
  JobSpec spec = Layers();
  spec.optimizer = [] {
    nn::AdamOptions options;
    options.common.clip_grad_norm = 1;
    return std::make_unique<nn::Adam>(options);
  };
  const auto costs = MeasureCosts(spec);
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_GT(costs->units[1].costs.update, 0);
}

TEST(MeasureCosts, Errors) {
  JobSpec spec = Layers();
  spec.model = [] { return std::make_unique<nn::Linear>(784, 10); };
  EXPECT_EQ(MeasureCosts(spec).status().message(),
            "the model has 0 layers in Sequentials, too few for 1 stages; "
            "take fewer");
}

// The prediction follows from the plan's tables and these costs.
TEST(PredictStep, AddsUp) {
  const JobSpec spec = Layers();
  pipeline::ModelCosts costs;
  for (const char* path : {"0", "body.0", "body.1", "body.2", "head"}) {
    pipeline::UnitCosts& unit = costs.units.emplace_back();
    unit.path = path;
    unit.costs = {1, 1, 1, /*activation=*/100, /*backward=*/2, /*update=*/3};
  }
  const auto step = PredictStep(spec, &costs);
  ASSERT_TRUE(step.ok()) << step.status();
  // GPipe with stages of 3 and 2 units: forwards of 3, then 2; backwards of 4,
  // then 6; and updates of 9 at the end of rank 0. Rank 1 runs its first
  // backward from 5 to 9, while it would wait for the second activation, so it
  // holds three micro-batches at most, and the third backward's gradient
  // arrives at 23, before rank 0 ends the second, which began at 19.
  EXPECT_EQ(step->steady.seconds, 19 + 3 * 6 + 9);
  EXPECT_GE(step->seconds, step->steady.seconds);
  EXPECT_EQ(step->work, 4 * 5 * 3 + 5 * 3);
  ASSERT_EQ(step->memory.size(), 2u);
  EXPECT_EQ(step->memory[0].activations, 4 * 300);
  EXPECT_EQ(step->memory[1].activations, 3 * 200);
  EXPECT_EQ(step->memory[0].optimizer, 2.0 * (784 * 512 + 512) * 4);
}

// Returns a job of two layers that are cut along tp, on `mesh`.
JobSpec PairOnMesh(const pipeline::Mesh& mesh) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/2);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(784, 16).set_parallel(nn::Linear::kColumn);
    model->Append<nn::ReLU>();
    model->Append<nn::Linear>(16, 10).set_parallel(nn::Linear::kRow);
    return model;
  };
  spec.plan.mesh = mesh;
  spec.plan.micro_batch_size = 4;
  spec.cluster.emplace();  // the cores of this machine are no limit
  return spec;
}

// The row layer adds up its outputs in forward, the column layer the gradient
// of its input in backward, which the first layer of a model does not need.
TEST(MeasureCosts, SumsOfLayersOverTp) {
  JobSpec spec = PairOnMesh(pipeline::Mesh(/*dp=*/1, /*pp=*/1, /*tp=*/2));
  spec.cluster.reset();
  const auto costs = MeasureCosts(spec);
  ASSERT_TRUE(costs.ok()) << costs.status();
  ASSERT_EQ(costs->units.size(), 4);
  EXPECT_EQ(costs->units[3].forward_sums.count, 1);
  EXPECT_EQ(costs->units[3].forward_sums.bytes, 4.0 * 10 * 4);
  EXPECT_EQ(costs->units[3].backward_sums.count, 0);
  EXPECT_EQ(costs->units[1].forward_sums.count, 0);
  EXPECT_EQ(costs->units[1].costs.forward_sums, 0);
  spec.plan.mesh = pipeline::Mesh();
  EXPECT_EQ(MeasureCosts(spec)->units[3].forward_sums.count, 0);
}

// Returns a job of two layers whose ranks along tp share 28 tokens.
JobSpec PairOfTokens() {
  JobSpec spec = PairOnMesh(pipeline::Mesh(/*dp=*/1, /*pp=*/1, /*tp=*/2));
  spec.cluster.reset();
  spec.plan.sequence_parallel = true;
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Lambda>([](nn::Context& ctx, const nn::Tensor& x) {
      return nn::ops::Reshape(ctx, x, {x.dim(0), 28, 28});
    });
    model->Append<nn::TakeTokens>();
    model->Append<nn::Linear>(28, 16).set_parallel(nn::Linear::kColumn);
    model->Append<nn::Linear>(16, 28).set_parallel(nn::Linear::kRow);
    model->Append<nn::GatherTokens>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(784, 10);
    model->set_shares_tokens();
    return model;
  };
  return spec;
}

// A gather or a reduce-scatter of 4 samples of 28 tokens sends half as much as
// a sum. The column layer gathers x again in backward, and scatters dx.
void ExpectGathersOfTokens(const JobSpec& spec) {
  const auto costs = MeasureCosts(spec);
  ASSERT_TRUE(costs.ok()) << costs.status();
  constexpr double kHalf = 4 * 28 * 28 * 4 / 2;
  EXPECT_EQ(costs->units[2].forward_sums.bytes, kHalf);
  EXPECT_EQ(costs->units[2].backward_sums.count, 2);
  EXPECT_EQ(costs->units[2].backward_sums.bytes, 2 * kHalf);
  EXPECT_EQ(costs->units[3].forward_sums.bytes, kHalf);
  EXPECT_EQ(costs->units[4].forward_sums.bytes, kHalf);
  EXPECT_EQ(costs->units[4].backward_sums.count, 0);
}

TEST(MeasureCosts, GathersOfTokensOverTp) {
  ExpectGathersOfTokens(PairOfTokens());
}

// The host may not access the memory of such a device.
TEST(MeasureCosts, GathersOnADeviceWithQueues) {
  JobSpec spec = PairOfTokens();
  spec.device = {nn::DeviceType::kQueued, 0};
  spec.kernels =
      [memory = std::make_shared<nn::GuardedMemory>(std::size_t{64} << 20)] {
        return nn::CreateQueuedKernels(nn::CreateCpuKernels({}), memory,
                                       /*seed=*/1);
      };
  ExpectGathersOfTokens(spec);
}

// Costs of PairOnMesh(), each unit of which computes for 3 seconds.
pipeline::ModelCosts CostsOfPair() {
  pipeline::ModelCosts costs;
  for (const char* path : {"0", "1", "2", "3"}) {
    pipeline::UnitCosts& unit = costs.units.emplace_back();
    unit.path = path;
    unit.costs = {1, 1, 1};
  }
  costs.units[1].backward_sums = {/*count=*/1, /*bytes=*/300};
  costs.units[3].forward_sums = {/*count=*/2, /*bytes=*/200};
  return costs;
}

// Two sums of 100 bytes and one of 300 in each of 8 micro-batches; a rank sends
// as many bytes of a sum over two.
TEST(PredictStep, CountsSumsOverTp) {
  const JobSpec spec = PairOnMesh(pipeline::Mesh(/*dp=*/1, /*pp=*/1, /*tp=*/2));
  ASSERT_EQ(spec.plan.MicroBatches(), 8);
  const pipeline::ModelCosts costs = CostsOfPair();
  const ReductionCosts links = {/*latency=*/0.5, /*bytes_per_second=*/100};
  const auto step = PredictStep(spec, &costs, &links);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_NEAR(step->seconds, 8 * (4 * 3 + 2 * 1.5 + 3.5), 1e-9);
  EXPECT_EQ(step->bytes_sent, 8 * 500);
  EXPECT_EQ(PredictStep(spec, &costs)->seconds, 8 * 4 * 3);
}

// Owners of slices reduce in half of the time, and gather in the other half,
// which does not overlap with the backward.
void ExpectGathersOfOwners(const pipeline::Mesh& mesh) {
  JobSpec spec = PairOnMesh(mesh);
  const pipeline::ModelCosts costs = CostsOfPair();
  const ReductionCosts links = {/*latency=*/0, /*bytes_per_second=*/1e4};
  const auto copies = PredictStep(spec, &costs, &links);
  spec.plan.zero_stage = 1;
  const auto owners = PredictStep(spec, &costs, &links);
  ASSERT_TRUE(copies.ok() && owners.ok()) << owners.status();
  EXPECT_TRUE(copies->costs.stages[0].gathers.empty());
  const std::vector<double>& gathers = owners->costs.stages[0].gathers;
  const std::vector<double>& whole = copies->costs.stages[0].reductions;
  ASSERT_EQ(gathers.size(), whole.size());
  double sum = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(owners->costs.stages[0].reductions[i], whole[i] / 2, 1e-9);
    EXPECT_NEAR(gathers[i], whole[i] / 2, 1e-9);
    sum += gathers[i];
  }
  EXPECT_EQ(owners->bytes_sent, copies->bytes_sent);
  // All of the gathers' time is behind the last backward.
  EXPECT_GT(sum, 1);
  EXPECT_GE(owners->seconds, owners->steady.step.seconds + sum - 1e-9);
}

TEST(PredictStep, CountsGathersOfOwners) {
  ExpectGathersOfOwners(pipeline::Mesh(/*dp=*/2));
  ExpectGathersOfOwners(pipeline::Mesh(/*dp=*/2, /*pp=*/1, /*tp=*/2));
}

// Owners of slices of gradients reduce those of each micro-batch.
TEST(PredictStep, CountsReductionsOfMicroBatches) {
  JobSpec spec = PairOnMesh(pipeline::Mesh(/*dp=*/2));
  spec.plan.zero_stage = 2;
  const int micro_batches = spec.plan.MicroBatches();
  ASSERT_GT(micro_batches, 1);
  const pipeline::ModelCosts costs = CostsOfPair();
  // A reduction takes longer than a backward, so that all rounds show.
  const ReductionCosts links = {/*latency=*/100, /*bytes_per_second=*/1e4};
  const auto each = PredictStep(spec, &costs, &links);
  spec.plan.zero_accumulates_whole = true;
  const auto once = PredictStep(spec, &costs, &links);
  ASSERT_TRUE(each.ok() && once.ok()) << each.status();
  EXPECT_EQ(each->bytes_sent, once->bytes_sent * (micro_batches + 1) / 2);
  double round = 0;
  for (const double one : each->costs.stages[0].reductions) round += one;
  EXPECT_GT(each->seconds, once->seconds + (micro_batches - 1) * round * 0.8);
}

// A micro-batch's gradients are reduced by themselves, and each forward and
// backward gathers all values that are not still there.
TEST(PredictStep, CountsGathersBeforeUses) {
  JobSpec spec = PairOnMesh(pipeline::Mesh(/*dp=*/2));
  spec.plan.micro_batch_size = spec.plan.global_batch_size / 4;
  spec.plan.buckets = {/*first_bucket_bytes=*/1, /*bucket_bytes=*/1};
  spec.plan.zero_ahead_bytes = 0;
  const pipeline::ModelCosts costs = CostsOfPair();
  const ReductionCosts links = {/*latency=*/0, /*bytes_per_second=*/1e4};
  spec.plan.zero_stage = 1;
  const auto states = PredictStep(spec, &costs, &links);
  spec.plan.zero_stage = 2;
  const auto gradients = PredictStep(spec, &costs, &links);
  spec.plan.zero_stage = 3;
  const auto values = PredictStep(spec, &costs, &links);
  ASSERT_TRUE(states.ok() && gradients.ok() && values.ok()) << values.status();
  ASSERT_EQ(values->plan.micro_batches, 2);
  // Halves of an all-reduce: two of gradients and one of values; then values
  // more often, which cost the most where they wait for none ahead.
  EXPECT_EQ(gradients->bytes_sent, states->bytes_sent * 3 / 2);
  EXPECT_GT(values->bytes_sent, gradients->bytes_sent);
  EXPECT_LE(values->bytes_sent, states->bytes_sent * (2 + 4) / 2);
  EXPECT_GT(values->seconds, states->seconds);
}

// Without measurements the unit is FLOPs, and the result has the same parts.
TEST(PredictStep, WithoutMeasuring) {
  const auto step = PredictStep(Layers(), nullptr);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_GT(step->seconds, 0);
  EXPECT_LT(step->steady.bubble, 1);
}

}  // namespace
}  // namespace troupe::actors
