#include "actors/engine/step_runner.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/engine/fiber/strand_fiber.h"
#include "comm/local/local_group.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "tests/actors/engine/engine_fixture.h"
#include "tests/actors/engine/synced_center.h"
#include "tests/actors/engine/test_groups.h"
#include "tests/actors/engine/thread_host.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSteps = 2;

// Returns the parameters of a job of one rank after kSteps steps.
ParameterValues OneRank(const std::function<void(JobSpec&)>& edit = nullptr) {
  const EngineFixture one({/*ranks=*/1, Numbers::kExact, kSteps}, edit);
  ThreadRanks ranks(one);
  ranks.Run(kSteps);
  return ValuesOf(ranks.runner(0).arena());
}

TEST(StepRunnerTest, OneRankLearns) {
  const EngineFixture one({/*ranks=*/1, Numbers::kExact, kSteps});
  ThreadRanks ranks(one);
  const ParameterValues before = ValuesOf(ranks.runner(0).arena());
  ranks.Run(1);
  EXPECT_NE(ValuesOf(ranks.runner(0).arena()), before);
  EXPECT_EQ(FromBits(ranks.runner(0).TakeLoss().value()->count), 16);
  EXPECT_EQ(ranks.runner(0).step(), 0);
  EXPECT_EQ(ranks.runner(0).Unfinished(), "");
}

TEST(StepRunnerTest, LaunchedReductionsGiveTheBitsOfOneRank) {
  const ParameterValues expected = OneRank();
  for (int count : {2, 4}) {
    const EngineFixture many({count, Numbers::kExact, kSteps});
    ThreadRanks ranks(many);
    ranks.Run(kSteps);
    for (int rank = 0; rank < count; ++rank) {
      EXPECT_EQ(ValuesOf(ranks.runner(rank).arena()), expected) << rank;
    }
  }
}

TEST(StepRunnerTest, InlineReductionsGiveTheBitsOfOneRank) {
  const ParameterValues expected = OneRank();
  for (bool fuse_updates : {false, true}) {
    const EngineFixture two(
        {/*ranks=*/2, Numbers::kExact, kSteps, /*fused=*/true},
        [&](JobSpec& spec) { spec.plan.fuse_updates = fuse_updates; });
    const std::string table = two.plan().RankPlanOf(0).train.ToString();
    EXPECT_EQ(table.find("RU0") != std::string::npos, fuse_updates) << table;
    ThreadRanks ranks(two);
    ranks.Run(kSteps);
    for (int rank : {0, 1}) {
      EXPECT_EQ(ValuesOf(ranks.runner(rank).arena()), expected) << rank;
    }
  }
}

TEST(StepRunnerTest, StagesGiveTheBitsOfOneRank) {
  const auto four_micro_batches = [](JobSpec& spec) {
    spec.plan.micro_batch_size = 6;
  };
  ParameterValues expected = OneRank(four_micro_batches);
  const EngineFixture two({/*ranks=*/1, Numbers::kExact, kSteps},
                          [&](JobSpec& spec) {
                            four_micro_batches(spec);
                            spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
                            spec.plan.cuts = {2};
                          });
  ThreadRanks ranks(two);
  ranks.Run(kSteps);
  ParameterValues both = ValuesOf(ranks.runner(0).arena());
  both.merge(ValuesOf(ranks.runner(1).arena()));
  EXPECT_EQ(both, expected);
}

// Each rank has the values of its slices alone between uses; others are NaN
// where a use comes too early or too late.
TEST(StepRunnerTest, GathersBeforeUsesGiveTheBitsOfOneRank) {
  const ParameterValues expected = OneRank();
  for (const int micro_batch : {0, 3}) {
    for (const std::int64_t ahead : {0, 100, 1 << 20}) {
      for (const bool run_inline : {false, true}) {
        SCOPED_TRACE(absl::StrCat(ahead, " ahead, micro-batches of ",
                                  micro_batch, run_inline ? ", inline" : ""));
        const EngineFixture two(
            {/*ranks=*/2, Numbers::kExact, kSteps, /*fused=*/run_inline},
            [&](JobSpec& spec) {
              spec.plan.zero_stage = 3;
              spec.plan.zero_ahead_bytes = ahead;
              spec.plan.micro_batch_size = micro_batch;
            });
        ThreadRanks ranks(two);
        ranks.Run(kSteps);
        ParameterValues values = ValuesOf(ranks.runner(0).arena());
        const nn::ParameterArena& other = ranks.runner(1).arena();
        const ParameterValues theirs = ValuesOf(other);
        for (const nn::ArenaSlot& slot : other.slots()) {
          const nn::ArenaRange owned = other.Owned(slot.bucket);
          const std::string& name = slot.parameter->name;
          for (std::size_t i = 0; i < values[name].size(); ++i) {
            const auto element = slot.begin + static_cast<std::int64_t>(i);
            if (element < owned.begin || element >= owned.end) continue;
            EXPECT_TRUE(std::isnan(values[name][i])) << name;
            values[name][i] = theirs.at(name)[i];
          }
        }
        EXPECT_EQ(values, expected);
      }
    }
  }
}

// A layer all-reduces inside forward and backward, while buckets are reduced.
TEST(StepRunnerTest, LayersCommunicate) {
  const auto centered = [](JobSpec& spec) {
    spec.model = [] {
      const nn::Linear::Options f64 = {/*bias=*/true, nn::DType::kF64};
      auto model = std::make_unique<nn::Sequential>();
      model->Append<nn::Linear>(4, 6, f64);
      model->Append<SyncedCenter>();
      model->Append<nn::Linear>(6, 2, f64);
      return model;
    };
    spec.plan.micro_batch_size = 0;  // one micro-batch per rank
  };
  const ParameterValues expected = OneRank(centered);
  for (bool run_inline : {false, true}) {
    const EngineFixture four(
        {/*ranks=*/4, Numbers::kExact, kSteps, /*fused=*/run_inline}, centered);
    ThreadRanks ranks(four);
    ranks.Run(kSteps);
    const ParameterValues values = ValuesOf(ranks.runner(0).arena());
    for (const auto& [name, wanted] : expected) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_NEAR(values.at(name)[i], wanted[i], 1e-6) << name;
      }
    }
    for (int rank : {1, 2, 3}) {
      EXPECT_EQ(ValuesOf(ranks.runner(rank).arena()), values) << rank;
    }
  }
}

// If a step leaves a tail, its loss is reported when the tail ends.
TEST(StepRunnerTest, StepsThatOverlapGiveTheBitsOfOneRank) {
  const ParameterValues expected = OneRank();
  for (int count : {2, 4}) {
    const EngineFixture many(
        {count, Numbers::kExact, kSteps},
        [](JobSpec& spec) { spec.plan.cross_step = true; });
    ThreadRanks ranks(many);
    ranks.Run(kSteps);
    for (int rank = 0; rank < count; ++rank) {
      StepRunner& runner = ranks.runner(rank);
      EXPECT_EQ(ValuesOf(runner.arena()), expected) << rank;
      for (int step = 0; step < kSteps; ++step) {
        const auto loss = runner.TakeLoss();
        ASSERT_TRUE(loss.ok() && loss->has_value());
        EXPECT_EQ(FromBits((*loss)->count), 16);
      }
      EXPECT_EQ(runner.TakeLoss().value(), std::nullopt);
      EXPECT_EQ(runner.Unfinished(), "");
    }
  }
}

TEST(StepRunnerTest, RefusesATransferThatItsTableDoesNotReceive) {
  const EngineFixture two({/*ranks=*/1, Numbers::kExact, kSteps},
                          [](JobSpec& spec) {
                            spec.plan.micro_batch_size = 12;
                            spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
                            spec.plan.cuts = {2};
                          });
  ThreadRanks ranks(two);
  StepRunner& last = ranks.runner(1);
  Transfer transfer;
  transfer.stage = 1;
  transfer.micro_batch = 2;
  // The transfer is kept until its step begins, and only then checked.
  ASSERT_TRUE(last.Deliver(transfer).ok());
  EXPECT_EQ(last.RunStep(StepKind::kTrain, 0, two.Batches(1, 0)),
            absl::InvalidArgumentError(
                "rank 1, step 1: got an activation of micro-batch 2 for "
                "stage 1, which its table does not receive"));
  transfer.micro_batch = -1;
  transfer.forward = false;
  EXPECT_EQ(last.Deliver(transfer),
            absl::InvalidArgumentError(
                "rank 1, step 1: got a gradient of micro-batch -1 for stage "
                "1, which its table does not receive"));
  transfer.micro_batch = 1;
  transfer.forward = true;
  transfer.tensors.resize(2);
  EXPECT_EQ(last.Deliver(transfer),
            absl::InvalidArgumentError(
                "rank 1, step 1: got an activation of micro-batch 1 for stage "
                "1: 2 tensor(s) where the plan has 1"));
  transfer.tensors.resize(1);
  ASSERT_TRUE(last.Deliver(transfer).ok());
  EXPECT_EQ(last.Deliver(transfer),
            absl::InvalidArgumentError(
                "rank 1, step 1: got an activation of micro-batch 1 for "
                "stage 1 a second time"));
  transfer.stage = 0;
  EXPECT_EQ(last.Deliver(transfer),
            absl::InvalidArgumentError(
                "rank 1, step 1: got an activation of micro-batch 1 for stage "
                "0, which its table does not receive"));
}

void UseFourLayers(JobSpec& spec) {
  spec.model = MakeFourLayers;
  spec.plan.micro_batch_size = 6;
}

TEST(StepRunnerTest, ChunksOfARankGiveTheBitsOfOneChunk) {
  const ParameterValues expected = OneRank(UseFourLayers);
  const EngineFixture two({/*ranks=*/1, Numbers::kExact, kSteps},
                          [](JobSpec& spec) {
                            UseFourLayers(spec);
                            spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
                            spec.plan.virtual_stages = 2;
                            spec.plan.cuts = {2, 4, 6};
                          });
  ThreadRanks ranks(two);
  ranks.Run(kSteps);
  ParameterValues all;
  for (int rank : {0, 1}) {
    ASSERT_EQ(ranks.runner(rank).chunk_count(), 2);
    for (int chunk : {0, 1}) {
      all.merge(ValuesOf(ranks.runner(rank).arena(chunk)));
    }
  }
  EXPECT_EQ(all, expected);
}

// Four layers, a stage each; the first three have one weight.
void MakeTiedLayers(JobSpec& spec) {
  spec.model = [] {
    const nn::Linear::Options f64 = {/*bias=*/true, nn::DType::kF64};
    auto model = std::make_unique<nn::Sequential>();
    auto& first = model->Append<nn::Linear>(4, 4, f64);
    for (int layer = 1; layer < 3; ++layer) {
      model->Append<nn::Linear>(4, 4, f64).TieParameter("weight", first,
                                                        "weight");
    }
    model->Append<nn::Linear>(4, 2, f64);
    return model;
  };
  spec.plan.micro_batch_size = 6;
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.virtual_stages = 2;
  spec.plan.cuts = {1, 2, 3};
}

// Rank 0 of MakeTiedLayers(), which has stages 0 and 2. The stages of the other
// rank are not run: they return each tensor that is sent to them.
class TiedRank : private StepRunner::Host {
 public:
  TiedRank() {
    groups_[0].Add({pipeline::TiedGroup(0), /*layer_axis=*/"", "tie", {0, 1}},
                   std::move(comm::MakeLocalGroup({/*size=*/2})[0]));
    StrandFiber::Options options;
    options.shared_thread = true;
    options.notify = [] {};
    fiber_.emplace(std::move(options), [this] {
      ended_ = runner_->RunStep(StepKind::kTrain, 0, fixture_.Batches(0, 0));
    });
    StepRunner::Setup setup;
    setup.spec = &fixture_.spec();
    setup.plan = &fixture_.plan();
    setup.train_table = fixture_.plan().RankPlanOf(0).train;
    setup.groups = &groups_[0];
    runner_ = StepRunner::Create(setup, this, &*fiber_).value();
  }
  // The fiber goes before what its frames refer to.
  ~TiedRank() { fiber_.reset(); }

  StepRunner& runner() { return *runner_; }
  // Runs the step until it waits for the sum over stages. Returns the action.
  int RunToTheSum() {
    while (sum_ < 0 && fiber_->Resume() != StrandFiber::State::kDone) {
      for (const Transfer& transfer : std::exchange(mail_, {})) {
        const absl::Status delivered = runner_->Deliver(transfer);
        EXPECT_TRUE(delivered.ok()) << delivered;
      }
    }
    EXPECT_TRUE(ended_.ok()) << ended_;
    return sum_;
  }

 private:
  void Launch(int action, pipeline::GroupId group, const comm::Collective&,
              const comm::Event&) override {
    if (pipeline::IsTied(group)) sum_ = action;
  }
  void Send(int stage, bool forward, int micro_batch,
            const nn::TensorList& tensors, const base::Event&) override {
    Transfer transfer;
    transfer.forward = forward && stage == 1;
    transfer.stage = forward ? 2 : 0;
    transfer.micro_batch = micro_batch;
    transfer.tensors = tensors;
    mail_.push_back(std::move(transfer));
  }

  const EngineFixture fixture_{{/*ranks=*/1, Numbers::kExact, kSteps},
                               MakeTiedLayers};
  std::vector<RankGroups> groups_ = MakeTestGroups(fixture_.plan().mesh);
  std::optional<StrandFiber> fiber_;
  std::unique_ptr<StepRunner> runner_;
  std::vector<Transfer> mail_;
  int sum_ = -1;  // action of the sum over stages
  absl::Status ended_;
};

absl::Status Refuse(const absl::Status& why, const nn::Tensor&, nn::Tensor&) {
  return why;
}

// The rank has two of the three copies, and writes the sum into both.
TEST(StepRunnerTest, ASumOverStagesThatFailsIsAnErrorAtOnce) {
  TiedRank rank;
  const int sum = rank.RunToTheSum();
  ASSERT_GE(sum, 0) << rank.runner().Unfinished();
  absl::Status lost = absl::UnavailableError("device 0 is lost");
  rank.runner().kernels().Copy.Bind<Refuse>(&lost);
  EXPECT_EQ(rank.runner().CollectiveDone(/*step=*/0, sum), lost);
}

}  // namespace
}  // namespace troupe::actors
