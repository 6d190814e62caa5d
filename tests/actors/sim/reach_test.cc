// Tests which parts of production a simulation reaches, under many seeds: each
// test runs a job that needs one more part of the program, and asserts that the
// part was reached, and that every seed gives the bits of production's threads.
// docs/simulation.md has the table.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/base/faulty_file_system.h"
#include "tests/comm/wrapped_communicator.h"

namespace troupe::actors {
namespace {

// Returns a job in floats with momentum, and another order of samples in each
// pass.
JobSpec PlainJob(int ranks, std::int64_t steps = 3) {
  SmallJobOptions options;
  options.ranks = ranks;
  options.steps = steps;
  options.momentum = 0.9;
  JobSpec spec = SmallJob(options);
  spec.shuffle = true;
  return spec;
}

SimulationOptions Seed(std::uint64_t seed) {
  SimulationOptions options;
  options.seed = seed;
  return options;
}

void ExpectTheBitsOfThreads(const JobSpec& spec, std::uint64_t seeds) {
  const SimulatedRun want = Simulate(spec, Seed(0));
  const Reports threads = ReportsOf(spec);
  ASSERT_EQ(want.reports.losses(), threads.losses());
  ASSERT_EQ(want.reports.evaluations.size(), threads.evaluations.size());
  for (std::size_t i = 0; i < threads.evaluations.size(); ++i) {
    ASSERT_EQ(want.reports.evaluations[i].loss, threads.evaluations[i].loss);
  }
  for (std::uint64_t seed : Seeds(seeds)) {
    const SimulatedRun run = Simulate(spec, Seed(seed));
    ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
    ASSERT_EQ(run.reports.losses(), threads.losses()) << ReplayCommand(seed);
    ASSERT_EQ(run.reports.evaluations.size(), threads.evaluations.size())
        << ReplayCommand(seed);
  }
}

pipeline::Plan PlanOf(const JobSpec& spec) {
  Simulation simulation(spec, {});
  EXPECT_TRUE(simulation.Run().ok());
  return simulation.plan();
}

bool Updates(const pipeline::Plan& plan) {
  return plan.RankPlanOf(0).train.Find(
             pipeline::ActionKind::kReduceUpdateBucket, 0) >= 0;
}

TEST(ReachTest, MomentumAndShuffling) {
  ExpectTheBitsOfThreads(PlainJob(/*ranks=*/3), 500);
}

TEST(ReachTest, InlineReductionsThatUpdate) {
  JobSpec spec = PlainJob(/*ranks=*/3);
  spec.plan.inline_bytes = 1 << 30;
  ASSERT_TRUE(PlanOf(spec).RankPlanOf(0).reduce_inline);
  ASSERT_TRUE(Updates(PlanOf(spec)));
  ExpectTheBitsOfThreads(spec, 500);
}

TEST(ReachTest, InlineReductionsBesideUpdates) {
  JobSpec spec = PlainJob(/*ranks=*/3);
  spec.plan.inline_bytes = 1 << 30;
  spec.plan.fuse_updates = false;
  ASSERT_TRUE(PlanOf(spec).RankPlanOf(0).reduce_inline);
  ASSERT_FALSE(Updates(PlanOf(spec)));
  ExpectTheBitsOfThreads(spec, 500);
}

// Counts the reductions of a rank that are under way at once.
class Counting : public comm::WrappedCommunicator {
 public:
  Counting(std::unique_ptr<comm::Communicator> inner, int* most)
      : WrappedCommunicator(std::move(inner)), most_(most) {}
  absl::StatusOr<comm::Event> Start(const comm::Collective& collective,
                                    comm::Event after) override {
    auto done = WrappedCommunicator::Start(collective, std::move(after));
    if (done.ok()) {
      *most_ = std::max(*most_, ++*under_way_);
      done->OnReady([now = under_way_](const absl::Status&) { --*now; });
    }
    return done;
  }

 private:
  const std::shared_ptr<int> under_way_ = std::make_shared<int>(0);
  int* const most_;
};

TEST(ReachTest, SeveralReductionsOfSeveralChunksAtOnce) {
  SmallJobOptions small;
  small.ranks = 2;
  small.width = 48;
  JobSpec spec = SmallJob(small);
  // 48 x 48 floats: five chunks of 2 KiB.
  spec.plan.buckets.bucket_bytes = 10'000;
  int most = 0;
  SimulationOptions options;
  options.make_group = [&](const comm::LocalGroupOptions& group_options) {
    comm::Group group = comm::MakeLocalGroup(group_options);
    for (auto& rank : group) {
      rank = std::make_unique<Counting>(std::move(rank), &most);
    }
    return group;
  };
  const SimulatedRun want = Simulate(spec, Seed(0));
  for (std::uint64_t seed : Seeds(300)) {
    options.seed = seed;
    const SimulatedRun run = Simulate(spec, options);
    ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
  }
  EXPECT_GE(most, 3);
  ExpectTheBitsOfThreads(spec, 100);
}

TEST(ReachTest, Evaluations) {
  JobSpec spec = PlainJob(/*ranks=*/3);
  spec.test = spec.train;
  spec.eval_every = 1;
  ExpectTheBitsOfThreads(spec, 500);
}

TEST(ReachTest, StagesWithOneCredit) {
  JobSpec spec = PlainJob(/*ranks=*/1);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/3);
  spec.plan.cuts = {2, 4};
  spec.plan.micro_batch_size = 2;
  spec.test = spec.train;
  spec.eval_every = 2;
  spec.prefetch_steps = 1;
  ExpectTheBitsOfThreads(spec, 300);
}

// A job that evaluates and saves, on a disk that does not wait for its syncs.
struct SavingJob {
  base::FaultyFileSystem files;
  JobSpec spec;

  explicit SavingJob(const std::string& dir, std::int64_t steps = 6)
      : spec(PlainJob(/*ranks=*/2, steps)) {
    spec.test = spec.train;
    spec.eval_every = 2;
    spec.checkpoint.dir = dir;
    spec.checkpoint.every = 1;
    spec.checkpoint.keep = 2;
    spec.checkpoint.files = &files;
  }
};

TEST(ReachTest, CheckpointsBesideTraining) {
  const SimulatedRun want =
      Simulate(SavingJob(FreshFolder("want")).spec, Seed(0));
  ASSERT_EQ(want.check, absl::OkStatus());
  for (std::uint64_t seed : Seeds(300)) {
    SavingJob job(FreshFolder("saved"));
    const SimulatedRun run = Simulate(job.spec, Seed(seed));
    ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
    ASSERT_EQ(run.reports.checkpoints.size(), 6u) << ReplayCommand(seed);
    const auto kept = job.files.List(job.spec.checkpoint.dir);
    ASSERT_TRUE(kept.ok());
    ASSERT_EQ(std::count_if(kept->begin(), kept->end(),
                            [](const std::string& name) {
                              return absl::StartsWith(name, "step-");
                            }),
              2)
        << ReplayCommand(seed);
  }
}

// Returns a number below `bound` that the seed chooses.
std::int64_t Draw(std::uint64_t seed, std::int64_t bound) {
  nn::RandomStream draws(nn::RandomKey(seed, nn::Purpose::kTest), {});
  return static_cast<std::int64_t>(draws.Below(bound));
}

TEST(ReachTest, StopsAndGoesOnFromAnywhere) {
  const SimulatedRun want =
      Simulate(SavingJob(FreshFolder("want")).spec, Seed(0));
  ASSERT_EQ(want.check, absl::OkStatus());
  int runs = 0, in_between = 0;
  for (std::uint64_t seed : Seeds(300)) {
    SavingJob job(FreshFolder("stopped"));
    SimulationOptions options = Seed(seed);
    options.stop_after_messages = Draw(seed, want.messages);
    const SimulatedRun stopped = Simulate(job.spec, options);
    ++runs;
    ASSERT_TRUE(stopped.result.ok()) << stopped.result.status();
    const std::int64_t steps = stopped.result->steps;
    if (steps > 0) {
      ASSERT_EQ(Difference(stopped, want), "") << ReplayCommand(seed);
    }
    if (steps == job.spec.steps) continue;
    if (steps > 0) ++in_between;
    job.spec.checkpoint.resume = true;
    const SimulatedRun resumed = Simulate(job.spec, Seed(seed + 1));
    ASSERT_EQ(Difference(resumed, want), "") << ReplayCommand(seed);
    ASSERT_EQ(resumed.result->steps, job.spec.steps) << ReplayCommand(seed);
    ASSERT_EQ(resumed.result->evaluation.loss, want.result->evaluation.loss)
        << ReplayCommand(seed);
  }
  EXPECT_GT(in_between, runs / 6);
}

TEST(ReachTest, CheckpointsByTime) {
  const SimulatedRun want =
      Simulate(SavingJob(FreshFolder("want")).spec, Seed(0));
  int runs = 0, saved_on_the_way = 0;
  for (std::uint64_t seed : Seeds(200)) {
    SavingJob job(FreshFolder("by_time"));
    job.spec.checkpoint.every = 0;
    job.spec.checkpoint.every_time = absl::Milliseconds(300);
    SimulationOptions options = Seed(seed);
    options.message_time_max = absl::Milliseconds(3);
    const SimulatedRun run = Simulate(job.spec, options);
    ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
    ++runs;
    if (run.reports.checkpoints.size() > 1) ++saved_on_the_way;
  }
  EXPECT_GT(saved_on_the_way, runs / 10);
}

// The job's timeout is near the time of its slowest answers: some come first,
// some too late. Either way it ends, with the right bits or with an error that
// names the late answer; and resumed from its checkpoint it has the right bits.
TEST(ReachTest, TimeOutsRaceAnswers) {
  const SimulatedRun want =
      Simulate(SavingJob(FreshFolder("want")).spec, Seed(0));
  int in_time = 0, too_late = 0;
  for (std::uint64_t seed : Seeds(300)) {
    SavingJob job(FreshFolder("raced"));
    job.spec.timeout = absl::Seconds(1);
    SimulationOptions options = Seed(seed);
    // Limits of 4 to 8 ms reach from no late answer to only late ones.
    options.message_time_max = absl::Microseconds(4000 + 40 * (seed % 100));
    const SimulatedRun run = Simulate(job.spec, options);
    if (run.result.ok()) {
      ++in_time;
      ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
      continue;
    }
    ++too_late;
    ASSERT_EQ(run.result.status().code(), absl::StatusCode::kDeadlineExceeded)
        << run.result.status() << ReplayCommand(seed);
    ASSERT_EQ(run.parameters.status(), absl::OkStatus()) << ReplayCommand(seed);
    job.spec.timeout = absl::Hours(1);
    job.spec.checkpoint.resume = true;
    const SimulatedRun resumed = Simulate(job.spec, Seed(seed));
    ASSERT_TRUE(resumed.result.ok())
        << resumed.result.status() << ReplayCommand(seed);
    ASSERT_EQ(resumed.result->evaluation.loss, want.result->evaluation.loss)
        << ReplayCommand(seed);
  }
  const int runs = in_time + too_late;
  EXPECT_GT(in_time, runs / 15);
  EXPECT_GT(too_late, runs / 15);
}

}  // namespace
}  // namespace troupe::actors
