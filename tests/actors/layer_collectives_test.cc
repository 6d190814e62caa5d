// Layers that all-reduce in the middle of forward and backward, in whole jobs
// under the seeded scheduler, and on threads: the same bits in all.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "tests/actors/engine/synced_center.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kSteps = 2;

// Linear, center, ReLU, linear, center, linear; one micro-batch a rank.
JobSpec CenteredJob(int ranks,
                    std::function<absl::Status()> before_reduce = nullptr) {
  JobSpec spec = SmallJob({ranks, Numbers::kExact, kSteps});
  spec.model = [before_reduce] {
    const nn::Linear::Options f64 = {/*bias=*/true, nn::DType::kF64};
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(4, 6, f64);
    model->Append<SyncedCenter>(before_reduce);
    model->Append<nn::ReLU>();
    model->Append<nn::Linear>(6, 6, f64);
    model->Append<SyncedCenter>(before_reduce);
    model->Append<nn::Linear>(6, 2, f64);
    return model;
  };
  spec.plan.micro_batch_size = 0;  // the rank's share
  return spec;
}

// Rank 0's parameters after the last step, and the losses.
struct Outcome {
  absl::Status status;
  std::map<std::string, std::vector<double>> parameters;
  std::vector<double> losses;

  friend bool operator==(const Outcome& a, const Outcome& b) {
    return a.status == b.status && a.parameters == b.parameters &&
           a.losses == b.losses;
  }
};

class Losses : public JobObserver {
 public:
  explicit Losses(Outcome* outcome) : outcome_(outcome) {}
  void OnSteps(absl::Span<const StepReport> reports) override {
    for (const StepReport& report : reports) {
      outcome_->losses.push_back(report.loss);
    }
  }

 private:
  Outcome* const outcome_;
};

Outcome Simulate(const JobSpec& spec, std::uint64_t seed) {
  Outcome outcome;
  SimulationOptions options;
  options.seed = seed;
  options.after_step = [&](int, std::int64_t step,
                           const nn::ParameterArena& arena) {
    if (step + 1 != kSteps) return;
    for (const nn::ArenaSlot& slot : arena.slots()) {
      const auto values = slot.parameter->value.span<double>();
      std::vector<double> now(values.begin(), values.end());
      auto& kept = outcome.parameters[slot.parameter->name];
      // Replicas are equal; the first tells.
      EXPECT_TRUE(kept.empty() || kept == now) << slot.parameter->name;
      kept = std::move(now);
    }
  };
  Losses observer(&outcome);
  Simulation simulation(spec, options);
  outcome.status = simulation.Run(&observer).status();
  return outcome;
}

TEST(LayerCollectivesTest, AThousandSeedsGiveTheSameBits) {
  const JobSpec spec = CenteredJob(kRanks);
  const Outcome expected = Simulate(spec, /*seed=*/0);
  ASSERT_TRUE(expected.status.ok()) << expected.status;
  ASSERT_EQ(expected.losses.size(), static_cast<std::size_t>(kSteps));
  for (std::uint64_t seed = 1; seed < 1000; ++seed) {
    ASSERT_EQ(Simulate(spec, seed), expected) << "seed " << seed;
  }
}

TEST(LayerCollectivesTest, BesideInlineReductionsToo) {
  JobSpec spec = CenteredJob(kRanks);
  const Outcome expected = Simulate(spec, /*seed=*/0);
  spec.plan.inline_bytes = 1 << 30;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    ASSERT_EQ(Simulate(spec, seed), expected) << "seed " << seed;
  }
}

TEST(LayerCollectivesTest, EqualsOneRankWithTheWholeBatch) {
  const Outcome many = Simulate(CenteredJob(kRanks), /*seed=*/0);
  const Outcome one = Simulate(CenteredJob(1), /*seed=*/0);
  ASSERT_TRUE(one.status.ok()) << one.status;
  ASSERT_EQ(many.losses.size(), one.losses.size());
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i], one.losses[i], 1e-6 * one.losses[i]);
  }
  for (const auto& [name, values] : one.parameters) {
    const std::vector<double>& others = many.parameters.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(others[i], values[i], 1e-6) << name;
    }
  }
}

TEST(LayerCollectivesTest, ThreadsGiveTheBitsOfTheSimulation) {
  const Outcome expected = Simulate(CenteredJob(kRanks), /*seed=*/0);
  for (std::int64_t inline_bytes : {0, 1 << 30}) {
    JobSpec spec = CenteredJob(kRanks);
    spec.plan.inline_bytes = inline_bytes;
    Outcome outcome;
    Losses observer(&outcome);
    const absl::StatusOr<JobResult> result = RunJob(spec, &observer);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(outcome.losses, expected.losses) << inline_bytes;
  }
}

// Stages whose replicas communicate in their layers: whatever activation comes
// first, the replicas of a stage run their micro-batches in one order.
TEST(LayerCollectivesTest, StagesKeepTheOrderOfTheirReplicas) {
  JobSpec spec = CenteredJob(2);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  spec.plan.cuts = {3};
  spec.plan.micro_batch_size = 3;
  const Outcome expected = Simulate(spec, /*seed=*/0);
  ASSERT_TRUE(expected.status.ok()) << expected.status;
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    ASSERT_EQ(Simulate(spec, seed), expected) << "seed " << seed;
  }
}

// One rank dies while its peers wait for it in the middle of a forward.
TEST(LayerCollectivesTest, APeerThatDiesEndsTheWait) {
  const auto failing = [] {
    return [calls = std::make_shared<std::atomic<int>>(0)]() -> absl::Status {
      // Four ranks, two layers, forward and backward: in the second step.
      if (calls->fetch_add(1) != 20) return absl::OkStatus();
      return absl::DataLossError("planted");
    };
  };
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Outcome outcome = Simulate(CenteredJob(kRanks, failing()), seed);
    ASSERT_EQ(outcome.status.code(), absl::StatusCode::kDataLoss)
        << "seed " << seed << ": " << outcome.status;
    ASSERT_TRUE(absl::StrContains(outcome.status.message(), "planted"));
  }
  const absl::Status on_threads =
      RunJob(CenteredJob(kRanks, failing())).status();
  EXPECT_EQ(on_threads.code(), absl::StatusCode::kDataLoss) << on_threads;
}

}  // namespace
}  // namespace troupe::actors
