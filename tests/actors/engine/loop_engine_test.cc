#include "actors/engine/loop/loop_engine.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "tests/actors/engine/loop_ranks.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSteps = 6;

void UseMomentum(JobSpec& spec) {
  nn::SgdOptions sgd;
  sgd.lr = 0.05;
  sgd.momentum = 0.9;
  spec.optimizer = sgd;
}

void UseAdamW(JobSpec& spec) { spec.optimizer = nn::AdamWDefaults(); }

// The result of a run: parameters of each rank, and the sum of the losses of
// the last step over the ranks.
struct Result {
  std::vector<ParameterValues> parameters;
  double loss_sum = 0;
};

Result RunJob(const EngineFixture& job) {
  ThreadRanks ranks(job);
  ranks.Run(kSteps);
  Result result;
  for (int rank = 0; rank < job.plan().mesh.size(); ++rank) {
    result.parameters.push_back(ValuesOf(ranks.runner(rank).arena()));
  }
  result.loss_sum = FromBits(ranks.runner(0).TakeLoss().value()->sum);
  return result;
}

ParameterValues ParametersOf(LoopRank& rank) {
  return ValuesOf(rank.engine().parameters().arena(0));
}

Result RunLoop(const EngineFixture& job, const LoopOptions& options) {
  LoopRanks ranks(job, options);
  ranks.Train(kSteps);
  Result result;
  for (int rank = 0; rank < job.plan().mesh.size(); ++rank) {
    result.parameters.push_back(ParametersOf(ranks.rank(rank)));
    result.loss_sum += ranks.rank(rank).loss_sum();
    EXPECT_EQ(ranks.rank(rank).engine().step(), kSteps);
    EXPECT_EQ(ranks.rank(rank).engine().Unfinished(), "");
  }
  return result;
}

void ExpectSame(const EngineFixture& job, const LoopOptions& options) {
  const Result want = RunJob(job);
  const Result have = RunLoop(job, options);
  EXPECT_EQ(have.parameters, want.parameters);
  EXPECT_EQ(have.loss_sum, want.loss_sum);
}

struct Case {
  int ranks;
  int micro_batches;
  bool run_inline;
  bool adam;
};

class LoopBitsTest : public testing::TestWithParam<Case> {};

TEST_P(LoopBitsTest, AreThoseOfTheJob) {
  const Case& c = GetParam();
  const EngineFixture job(
      {c.ranks, Numbers::kFloat, kSteps},
      PowersOfTwo(c.ranks, c.micro_batches, c.adam ? UseAdamW : UseMomentum));
  ASSERT_EQ(job.plan().micro_batches, c.micro_batches);
  LoopOptions options;
  options.run_inline = c.run_inline;
  ExpectSame(job, options);
  options.exact_mean = true;
  ExpectSame(job, options);
}

INSTANTIATE_TEST_SUITE_P(
    All, LoopBitsTest,
    testing::Values(Case{1, 1, false, false}, Case{1, 2, false, true},
                    Case{2, 1, false, false}, Case{2, 1, true, true},
                    Case{2, 2, false, true}, Case{2, 2, true, false}),
    [](const auto& info) {
      const Case& c = info.param;
      return absl::StrCat("Ranks", c.ranks, "Batches", c.micro_batches,
                          c.run_inline ? "Inline" : "Launched",
                          c.adam ? "AdamW" : "Sgd");
    });

// The counts of the small job's batches are no powers of two.
TEST(LoopEngineTest, ExactMeanHasTheBitsOfAJobForAnyCounts) {
  for (const int ranks : {2, 3}) {
    const EngineFixture job({ranks, Numbers::kFloat, kSteps}, UseMomentum);
    LoopOptions options;
    options.exact_mean = true;
    ExpectSame(job, options);
  }
}

TEST(LoopEngineTest, AModelWithoutGroupsLearnsAsAJobOfOneRank) {
  const EngineFixture job({/*ranks=*/1, Numbers::kFloat, kSteps},
                          PowersOfTwo(1, 2, UseAdamW));
  LoopOptions options;
  options.without_groups = true;
  ExpectSame(job, options);
}

// Updates that need the norm of all gradients come after all reductions.
TEST(LoopEngineTest, ClipsAsTheJob) {
  const auto clip = [](JobSpec& spec) {
    nn::SgdOptions sgd;
    sgd.lr = 0.05;
    sgd.common.clip_grad_norm = 0.25;
    spec.optimizer = sgd;
    spec.plan.reductions.update_needs_all_buckets = true;
  };
  const EngineFixture job({/*ranks=*/2, Numbers::kFloat, kSteps},
                          PowersOfTwo(2, 2, clip));
  ExpectSame(job, {});
}

// Records actions and gradients of one rank.
class Sink : public TraceSink {
 public:
  bool Wants(std::int64_t step) const override { return step == 0; }
  void Record(const TraceEvent& event) override {
    if (event.kind == TraceKind::kBucketReady) return;
    const char* const phases[] = {"+", "-", "!"};
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    phases[static_cast<int>(event.phase)], event.name);
  }
  std::string text;
};

TEST(LoopEngineTest, ReductionsBeginWhileTheBackwardRuns) {
  const EngineFixture job({/*ranks=*/1, Numbers::kFloat, kSteps},
                          PowersOfTwo(1, 1, UseMomentum));
  Sink sink;
  LoopOptions options;
  options.trace = &sink;
  LoopRanks ranks(job, options);
  ranks.Train(2);
  EXPECT_EQ(sink.text,
            "+B0 !4.weight !4.bias +AR0 -AR0 !2.weight !2.bias !0.weight "
            "!0.bias +AR1 -AR1 +AR2 -AR2 -B0 +UP0 -UP0 +UP1 -UP1 +UP2 -UP2");
}

TEST(LoopEngineTest, UpdatesBeginWhileTheBackwardRuns) {
  const EngineFixture job({/*ranks=*/1, Numbers::kFloat, kSteps},
                          PowersOfTwo(1, 1, UseMomentum));
  Sink sink;
  LoopOptions options;
  options.trace = &sink;
  LoopRanks ranks(job, options);
  ASSERT_TRUE(ranks.rank(0).engine().StepInBackward().ok());
  ranks.Train(2);
  const auto end = sink.text.find("-B0");
  ASSERT_NE(end, std::string::npos) << sink.text;
  for (const char* update : {"+UP0 ", "+UP1 ", "+UP2 "}) {
    EXPECT_LT(sink.text.find(update), end) << sink.text;
  }
  EXPECT_LT(sink.text.find("+UP0 "), sink.text.find("!0.weight")) << sink.text;
}

// Returns the gradients of a rank, flat.
std::vector<float> GradsOf(LoopRank& rank) {
  const nn::ParameterArena& arena = rank.engine().parameters().arena(0);
  const float* const grads = arena.grads().data<float>();
  return {grads, grads + arena.grads().numel()};
}

std::vector<float> Sum(const std::vector<float>& a,
                       const std::vector<float>& b) {
  std::vector<float> sum(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  return sum;
}

// Runs one backward of a batch; fails the test on errors.
void Backward(LoopRank& rank, const data::Batch& batch, bool synced = true) {
  LoopBackward backward;
  backward.tape = &rank.tape();
  backward.loss = rank.Loss(batch);
  backward.scale = rank.ScaleOf(backward.loss);
  backward.synced = synced;
  const absl::Status status = rank.engine().Backward(backward);
  EXPECT_TRUE(status.ok()) << status;
}

// The reference kernels compute gradients of weights two rows at a time.
TEST(LoopEngineTest, ARankWithoutPeersUpdatesByRows) {
  const auto updates = [](int ranks_number, bool exact_mean) {
    const EngineFixture job(
        {ranks_number, Numbers::kFloat, kSteps},
        PowersOfTwo(ranks_number, 1, [](JobSpec& spec) {
          UseMomentum(spec);
          spec.plan.buckets.bucket_bytes = 1;  // one parameter in each
          spec.kernels = [] { return nn::CreateReferenceKernels(); };
        }));
    LoopOptions options;
    options.exact_mean = exact_mean;
    const Result want = RunLoop(job, options);
    LoopRanks ranks(job, options);
    int updated = 0;
    ranks.Run([&](LoopRank& rank) {
      LoopEngine& engine = rank.engine();
      ASSERT_TRUE(engine.StepInBackward().ok());
      for (std::int64_t step = 0; step < kSteps; ++step) {
        ASSERT_TRUE(engine.ZeroGrad().ok());
        Backward(rank, job.Batches(rank.rank(), step)[0]);
        const ChunkParameters& parameters = engine.parameters();
        for (int k = 0; k < parameters.num_buckets(); ++k) {
          if (rank.rank() == 0)
            updated += parameters.updates().IsUpdated(k) ? 1 : 0;
        }
        ASSERT_TRUE(engine.Step().ok());
      }
      EXPECT_EQ(ParametersOf(rank), want.parameters[rank.rank()]);
    });
    return updated;
  };
  EXPECT_EQ(updates(/*ranks_number=*/1, /*exact_mean=*/false), 2 * kSteps)
      << "two weights; the last one and the biases have too few rows";
  EXPECT_EQ(updates(/*ranks_number=*/1, /*exact_mean=*/true), 0);
  EXPECT_EQ(updates(/*ranks_number=*/2, /*exact_mean=*/false), 0);
}

// Without an optimizer, a program reads the gradients, as average_gradients()
// of PyTorch's tutorial does.
TEST(LoopEngineTest, GradientsAreAverages) {
  const EngineFixture job({/*ranks=*/2, Numbers::kFloat, kSteps},
                          PowersOfTwo(2, 1, nullptr));
  LoopOptions options;
  options.optimizer = false;
  LoopRanks ranks(job, options);
  std::vector<float> own[2], mean[2], twice[2];
  ranks.Run([&](LoopRank& rank) {
    const data::Batch batch = job.Batches(rank.rank(), /*step=*/0)[0];
    Backward(rank, batch, /*synced=*/false);
    own[rank.rank()] = GradsOf(rank);
    EXPECT_TRUE(rank.engine().ZeroGrad().ok());
    Backward(rank, batch);
    EXPECT_TRUE(rank.engine().AwaitGradients().ok());
    mean[rank.rank()] = GradsOf(rank);
    // A second one adds, and does not average what is averaged already.
    Backward(rank, batch);
    EXPECT_TRUE(rank.engine().AwaitGradients().ok());
    twice[rank.rank()] = GradsOf(rank);
  });
  EXPECT_NE(own[0], own[1]);
  EXPECT_EQ(mean[0], mean[1]);
  EXPECT_EQ(Sum(mean[0], mean[0]), Sum(own[0], own[1]));
  EXPECT_EQ(twice[0], twice[1]);
  for (std::size_t i = 0; i < mean[0].size(); ++i) {
    EXPECT_FLOAT_EQ(twice[0][i], 2 * mean[0][i]);
  }
}

TEST(LoopEngineTest, CallsInTheWrongOrderSayWhatToDo) {
  const EngineFixture job({/*ranks=*/1, Numbers::kFloat, kSteps},
                          PowersOfTwo(1, 1, nullptr));
  LoopOptions options;
  options.optimizer = false;
  LoopRanks ranks(job, options);
  LoopRank& rank = ranks.rank(0);
  LoopEngine& engine = rank.engine();
  const data::Batch batch = job.Batches(0, 0)[0];
  const auto make = [&job] { return MakeOptimizer(job.spec()); };
  EXPECT_EQ(engine.Step().message(),
            "Step() without an optimizer; make one for this model first");
  Backward(rank, batch);
  EXPECT_EQ(engine.AttachOptimizer(make).message(),
            "an optimizer is attached before the first backward of a step: "
            "make it before, or discard the gradients with ZeroGrad()");
  ASSERT_TRUE(engine.ZeroGrad().ok());
  ASSERT_TRUE(engine.AttachOptimizer(make).ok());
  EXPECT_EQ(
      engine.AttachOptimizer(make).message(),
      "AttachOptimizer(): the parameters have an optimizer already; call it "
      "once");
  EXPECT_EQ(engine.Step().message(),
            "Step() without gradients; call Backward() first");
  Backward(rank, batch, /*synced=*/false);
  EXPECT_EQ(engine.Step().message(),
            "Step() after a backward under NoSync(): its gradients are not "
            "reduced over the ranks; run the last backward without it");
  Backward(rank, batch);
  EXPECT_TRUE(engine.Step().ok());
}

TEST(LoopEngineTest, StepInBackwardRefusesWhatItCannotUndo) {
  const EngineFixture job({/*ranks=*/1, Numbers::kFloat, kSteps},
                          PowersOfTwo(1, 1, UseMomentum));
  LoopRanks ranks(job, {});
  LoopRank& rank = ranks.rank(0);
  LoopEngine& engine = rank.engine();
  const data::Batch batch = job.Batches(0, 0)[0];
  Backward(rank, batch);
  EXPECT_EQ(engine.StepInBackward().message(),
            "StepInBackward() comes before the first backward of a step; call "
            "it before, or discard the gradients with ZeroGrad()");
  ASSERT_TRUE(engine.ZeroGrad().ok());
  ASSERT_TRUE(engine.StepInBackward().ok());
  LoopBackward backward{&rank.tape(), rank.Loss(batch)};
  backward.synced = false;
  EXPECT_EQ(engine.Backward(backward).message(),
            "a backward under NoSync() in a loop with StepInBackward(): "
            "gradients are used up as soon as they are reduced, and cannot add "
            "up; leave out one of them");
  Backward(rank, batch);
  EXPECT_EQ(engine.Backward({&rank.tape(), rank.Loss(batch)}).message(),
            "a second backward in a step with StepInBackward(): the first one "
            "has updated the parameters already; call Step() between them");
  EXPECT_EQ(engine.ZeroGrad().message(),
            "ZeroGrad() after a backward that has updated the parameters "
            "(StepInBackward()): there is no gradient left to discard; call "
            "Step() first, which ends the step");
  EXPECT_TRUE(engine.Step().ok());
  EXPECT_TRUE(engine.ZeroGrad().ok());
}

TEST(LoopEngineTest, ExactMeanRefusesASecondReduction) {
  const EngineFixture job({/*ranks=*/1, Numbers::kFloat, kSteps},
                          PowersOfTwo(1, 1, nullptr));
  LoopOptions options;
  options.exact_mean = true;
  LoopRanks ranks(job, options);
  LoopRank& rank = ranks.rank(0);
  const data::Batch batch = job.Batches(0, 0)[0];
  Backward(rank, batch);
  EXPECT_EQ(rank.engine().Backward({&rank.tape(), rank.Loss(batch)}).message(),
            "exact_mean adds up over the ranks once a step, and a backward of "
            "this step has done so; run all backwards but the last one under "
            "NoSync()");
  EXPECT_TRUE(rank.engine().Step().ok());
}

TEST(LoopEngineTest, RefusesTheParametersOfAnotherModel) {
  const EngineFixture job({/*ranks=*/1, Numbers::kFloat, kSteps},
                          PowersOfTwo(1, 1, nullptr));
  LoopRanks one(job, {}), other(job, {});
  const nn::Tensor loss = other.rank(0).Loss(job.Batches(0, 0)[0]);
  EXPECT_EQ(
      one.rank(0).engine().Backward({&other.rank(0).tape(), loss}).message(),
      "the loss depends on 0.weight, which is a parameter of another model; "
      "detach its output, or put both models into one module");
}

}  // namespace
}  // namespace troupe::actors
