// The supervisor with fake ranks: it drops messages of another generation, and
// notices silence after one time-out.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/actors/supervision/supervisor_fixture.h"

namespace troupe::actors {
namespace {

TEST_F(SupervisorTest, OldProgressAndFailuresAreDropped) {
  Begin(Plain(3));
  EXPECT_EQ(Heard(), "rank 0: grant 2, rank 1: grant 2");
  Send(StepsOf(kBefore, 0, 0, 2));
  Send(StepsOf(kBefore, 1, 0, 2));
  Send(Failure{kBefore, 1, "compute", 13, "of the past"});
  EXPECT_EQ(Heard(), "");
  EXPECT_FALSE(ended());
  Send(StepsOf(kNow, 0, 0, 2));
  Send(StepsOf(kNow, 1, 0, 2));
  EXPECT_EQ(Heard(), "rank 0: grant 3, rank 1: grant 3");
  Send(Failure{kNow, 1, "compute", 13, "of today"});
  EXPECT_EQ(Heard(),
            "rank 0: end: rank 1, compute: of today, "
            "rank 1: end: rank 1, compute: of today");
  ASSERT_TRUE(ended());
  EXPECT_EQ(process_->outcome.Wait().status(),
            absl::InternalError("rank 1, compute: of today"));
}

// Another build may number its ranks differently.
TEST_F(SupervisorTest, AMessageOfARankThatDoesNotExistEndsTheJob) {
  struct Case {
    std::function<void(int rank)> send;
    const char* what;
  };
  const Case cases[] = {
      {[&](int rank) { Send(StepsOf(kNow, rank, 0, 1)); }, "progress"},
      {[&](int rank) {
         Send(SnapshotTaken{kNow, rank, 1, {}});
       },
       "a snapshot"},
      {[&](int rank) {
         for (int each : {0, 1}) Send(StepsOf(kNow, each, 0, 1));
         Send(Evaluated{kNow, rank, 1, LossBits{Bits(1), Bits(35), Bits(7)}});
       },
       "an evaluation"},
  };
  for (const Case& c : cases) {
    for (const int rank : {-1, 2}) {
      Begin(TinyCnnJob(2, 1));
      c.send(rank);
      ASSERT_TRUE(ended()) << c.what;
      EXPECT_EQ(verdict(), absl::InternalError(absl::StrCat(
                               "supervisor: rank ", rank, " reports ", c.what,
                               ", but the job has ranks 0 to 1; run the same "
                               "build of Troupe in all processes")));
    }
  }
}

TEST_F(SupervisorTest, ACheckpointIsShardsThenOneName) {
  JobSpec spec = Plain(1);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.cuts = {6};
  spec.checkpoint.dir = FreshFolder("shards");
  Begin(spec);
  Heard();
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 1));
  EXPECT_EQ(Heard(), "open 1, rank 0: copy 1, rank 1: copy 1");
  Send(SnapshotTaken{kNow, 1, 1, {}});
  Send(SnapshotTaken{kBefore, 0, 1, {}});
  Send(CheckpointOpened{kBefore, 1, "old"});
  Send(CheckpointOpened{kNow, 1, "new"});
  EXPECT_EQ(Heard(), "") << "rank 0 has not copied";
  Send(SnapshotTaken{kNow, 0, 1, {}});
  EXPECT_EQ(Heard(), "rank 0: save 1 to new, rank 1: save 1 to new");
  ShardSummary first, second;
  second.shard = 1;
  Send(ShardSaved{kNow, 1, second});
  Send(ShardSaved{kBefore, 1, first});
  Send(ShardSaved{kNow, 1, second});
  EXPECT_EQ(Heard(), "") << "shard 0 is missing";
  Send(ShardSaved{kNow, 1, first});
  EXPECT_EQ(Heard(), "commit 1 of 2 shards");
  Send(CheckpointSaved{kBefore, 1, "old path"});
  EXPECT_FALSE(ended());
  Send(CheckpointSaved{kNow, 1, "path"});
  EXPECT_EQ(Heard(), "rank 0: end, rank 1: end");
  ASSERT_TRUE(ended());
  EXPECT_EQ(process_->outcome.Wait()->checkpoint, "path");
}

TEST_F(SupervisorTest, OldEvaluationsAreDropped) {
  Begin(TinyCnnJob(2, 1));
  Heard();
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 1));
  EXPECT_EQ(Heard(), "rank 0: eval 1, rank 1: eval 1");
  const LossBits half = {Bits(1), Bits(35), Bits(7)};
  Send(Evaluated{kNow, 0, 1, half});
  Send(Evaluated{kBefore, 1, 1, half});
  EXPECT_FALSE(ended());
  Send(Evaluated{kNow, 1, 1, half});
  ASSERT_TRUE(ended());
  EXPECT_EQ(process_->outcome.Wait()->evaluation.count, 70);
}

// The loss counts weights where classes have them; the ranks count targets.
TEST_F(SupervisorTest, EvaluationsCountTargets) {
  Begin(TinyCnnJob(2, 1));
  Heard();
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 1));
  Heard();
  Send(Evaluated{kNow, 0, 1, LossBits{Bits(1), Bits(0.25), Bits(0.25)}, 3});
  Send(Evaluated{kNow, 1, 1, LossBits{Bits(1), Bits(0.25), Bits(0)}, 2});
  ASSERT_TRUE(ended());
  const EvaluationReport report = process_->outcome.Wait()->evaluation;
  EXPECT_EQ(report.count, 5);
  EXPECT_EQ(report.accuracy, 0.5);
  EXPECT_EQ(report.loss, 4);
}

// This holds for sums as for means. It is never the best evaluation.
TEST_F(SupervisorTest, AnEvaluationInWhichNothingCountsHasNoLoss) {
  for (const auto reduction :
       {nn::ops::LossReduction::kMean, nn::ops::LossReduction::kSum}) {
    JobSpec spec = TinyCnnJob(2, 9);
    spec.loss_reduction = reduction;
    spec.eval_every = 1;
    spec.early_stop_patience = 1;  // ends at the first one without improvement
    Begin(spec);
    for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 1));
    const LossBits nothing = {Bits(0), Bits(0), Bits(0)};
    for (int rank : {0, 1}) Send(Evaluated{kNow, rank, 1, nothing, 0});
    ASSERT_TRUE(ended());
    const JobResult result = *process_->outcome.Wait();
    EXPECT_TRUE(std::isnan(result.evaluation.loss)) << result.evaluation.loss;
    EXPECT_EQ(result.evaluation.count, 0);
    EXPECT_EQ(result.best.step, 0);
  }
}

// A stop that arrives after the last step has no effect.
TEST_F(SupervisorTest, AStopAtTheLastStepStillEvaluates) {
  Begin(TinyCnnJob(2, 1));
  Heard();
  Send(StepsOf(kNow, 0, 0, 1));
  Send(halt_atom::value);
  EXPECT_EQ(Heard(), "");
  Send(StepsOf(kNow, 1, 0, 1));
  EXPECT_EQ(Heard(), "rank 0: eval 1, rank 1: eval 1");
  const LossBits half = {Bits(1), Bits(35), Bits(7)};
  for (int rank : {0, 1}) Send(Evaluated{kNow, rank, 1, half});
  ASSERT_TRUE(ended());
  EXPECT_FALSE(process_->outcome.Wait()->stopped);
}

TEST_F(SupervisorTest, AStopBeforeTheLastStepEvaluatesNothing) {
  JobSpec spec = TinyCnnJob(2, 100);
  spec.eval_every = 2;
  Begin(spec);
  EXPECT_EQ(Heard(), "rank 0: grant 2, rank 1: grant 2");
  Send(halt_atom::value);
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 2));
  EXPECT_EQ(Heard(), "rank 0: end, rank 1: end");
  ASSERT_TRUE(ended());
  EXPECT_TRUE(process_->outcome.Wait()->stopped);
}

TEST_F(SupervisorTest, SilenceIsNoticedOneTimeOutAfterTheLastSignOfLife) {
  JobSpec spec = Plain(100);
  spec.timeout = absl::Seconds(60);
  Begin(spec);
  system_.Advance(absl::Seconds(59));
  Send(StepsOf(kNow, 0, 0, 1));
  system_.Advance(absl::Seconds(59));
  EXPECT_FALSE(ended()) << "118 s after the start, 59 s after a step";
  Heard();
  system_.Advance(absl::Seconds(1));
  EXPECT_EQ(Heard(), "rank 0: asked, rank 1: asked");
  system_.Advance(HeldVerdictMax());
  ASSERT_TRUE(ended());
  EXPECT_EQ(verdict(),
            absl::DeadlineExceededError(
                "supervisor: no progress for 1m (rank 0 has done 1, rank 1 has "
                "done 0 of 2 granted steps)\n"
                "no rank waits for another\n"
                "ranks 0, 1 are giving no answer"));
}

TEST_F(SupervisorTest, AWriterThatFallsSilentIsNamed) {
  JobSpec spec = Plain(100);
  spec.timeout = absl::Seconds(60);
  spec.checkpoint.dir = FreshFolder("silent");
  spec.checkpoint.every = 2;
  Begin(spec);
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 2));
  Send(SnapshotTaken{kNow, 0, 2, {}});
  Send(CheckpointOpened{kNow, 2, "folder"});
  system_.Advance(absl::Seconds(59));
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 2, 1));  // training goes on
  system_.Advance(absl::Seconds(1));
  ASSERT_TRUE(ended());
  EXPECT_EQ(process_->outcome.Wait().status(),
            absl::DeadlineExceededError(
                "checkpointer: no progress for 1m (0 of 1 shards of step 2 are "
                "written, not 0)"));
}

TEST_F(SupervisorTest, AReplicaThatDiffersEndsTheJob) {
  compares_ = true;
  JobSpec spec = TinyCnnJob(4, 100);
  spec.test = nullptr;
  spec.checkpoint.dir = FreshFolder("differs");
  spec.checkpoint.every = 2;
  Begin(spec);
  Heard();
  for (int rank : {0, 1, 2, 3}) Send(StepsOf(kNow, rank, 0, 2));
  EXPECT_EQ(Heard(),
            "open 2, rank 0: copy 2, rank 1: copy 2, rank 2: copy 2, rank 3: "
            "copy 2");
  Send(CheckpointOpened{kNow, 2, "folder"});
  const std::size_t buckets = process_->plan->stages[0].buckets.size();
  const std::vector<std::uint64_t> hashes(buckets, 7);
  std::vector<std::uint64_t> others = hashes;
  others.back() = 8;
  for (int rank : {3, 0, 1}) Send(SnapshotTaken{kNow, rank, 2, hashes});
  EXPECT_FALSE(ended());
  Send(SnapshotTaken{kNow, 2, 2, others});
  ASSERT_TRUE(ended());
  EXPECT_EQ(verdict().code(), absl::StatusCode::kDataLoss);
  const std::string message(verdict().message());
  EXPECT_TRUE(absl::StartsWith(
      message, absl::StrCat("supervisor: after step 2 rank 2 has other "
                            "parameters or optimizer states than ranks 0, 1 "
                            "and 3, first in bucket ",
                            buckets - 1, " of stage 0 (")))
      << message;
  EXPECT_FALSE(absl::StrContains(Heard(), ": save")) << "nothing is written";
}

TEST_F(SupervisorTest, SavesByTimeWhereTheGrantsEnd) {
  JobSpec spec = Plain(100);
  spec.timeout = absl::InfiniteDuration();
  spec.checkpoint.dir = FreshFolder("by_time");
  Begin(spec);
  EXPECT_EQ(Heard(), "rank 0: grant 2, rank 1: grant 2");
  system_.Advance(absl::Minutes(29));
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 2));
  EXPECT_EQ(Heard(), "rank 0: grant 4, rank 1: grant 4");
  system_.Advance(absl::Minutes(1));
  Send(StepsOf(kNow, 1, 2, 1));
  Send(StepsOf(kNow, 0, 2, 1));
  EXPECT_EQ(Heard(), "") << "half an hour: no more steps are granted";
  Send(StepsOf(kNow, 0, 3, 1));
  EXPECT_EQ(Heard(), "") << "rank 1 is not there";
  Send(StepsOf(kNow, 1, 3, 1));
  EXPECT_EQ(Heard(), "open 4, rank 0: copy 4");
  FinishCheckpoint(4);
  EXPECT_EQ(Heard(),
            "rank 0: grant 8, rank 1: grant 8, rank 0: save 4 to folder, "
            "commit 4 of 1 shards");
  // The next half hour begins with the copies.
  system_.Advance(absl::Minutes(29));
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 4, 4));
  EXPECT_EQ(Heard(), "rank 0: grant 10, rank 1: grant 10");
}

TEST_F(SupervisorTest, ACheckpointByStepsPutsOffTheOneByTime) {
  JobSpec spec = Plain(100);
  spec.timeout = absl::InfiniteDuration();
  spec.checkpoint.dir = FreshFolder("put_off");
  spec.checkpoint.every = 2;
  Begin(spec);
  system_.Advance(absl::Minutes(20));
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 2));
  FinishCheckpoint(2);
  Heard();
  system_.Advance(absl::Minutes(20));
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 2, 1));
  EXPECT_EQ(Heard(), "") << "40 minutes, of which 20 since the last";
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 3, 1));
  EXPECT_EQ(Heard(), "open 4, rank 0: copy 4") << "by steps";
}

TEST_F(SupervisorTest, ZeroMeansNotByTime) {
  JobSpec spec = Plain(100);
  spec.timeout = absl::InfiniteDuration();
  spec.checkpoint.dir = FreshFolder("never");
  spec.checkpoint.every_time = absl::ZeroDuration();
  Begin(spec);
  Heard();
  system_.Advance(absl::Hours(24));
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 2));
  EXPECT_EQ(Heard(), "rank 0: grant 4, rank 1: grant 4");
}

TEST_F(SupervisorTest, AnInfiniteTimeOutWaits) {
  JobSpec spec = Plain(100);
  spec.timeout = absl::InfiniteDuration();
  Begin(spec);
  EXPECT_EQ(Heard(), "rank 0: grant 2, rank 1: grant 2");
  system_.Advance(absl::Hours(24 * 365));
  EXPECT_FALSE(ended());
  Send(Failure{kNow, 0, "loader", 13, "enough"});
  EXPECT_TRUE(ended());
}

// The copies of the step are made before it is evaluated.
TEST_F(SupervisorTest, AFailingEvaluationLeavesTheCheckpointOfItsStep) {
  for (const char* actor : {"compute", "loader"}) {
    JobSpec spec = TinyCnnJob(2, 1);
    spec.checkpoint.dir = FreshFolder(actor);
    Begin(spec);
    for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 1));
    Send(SnapshotTaken{kNow, 0, 1, {}});
    Heard();
    Send(Failure{kNow, 1, actor, 3, "no such class"});
    Send(Failure{kNow, 0, "compute", 1, "rank 1 has ended"});
    Send(CheckpointOpened{kNow, 1, "folder"});
    EXPECT_EQ(Heard(), "rank 0: save 1 to folder");
    Send(ShardSaved{kNow, 1, ShardSummary()});
    EXPECT_EQ(Heard(), "commit 1 of 1 shards");
    EXPECT_FALSE(ended());
    Send(CheckpointSaved{kNow, 1, "path"});
    ASSERT_TRUE(ended());
    EXPECT_EQ(verdict().message(),
              absl::StrCat("rank 1, ", actor, ": no such class"));
  }
}

// A checkpoint that cannot be written does not hold the job, and does not hide
// the first error.
TEST_F(SupervisorTest, AFailingEvaluationDoesNotWaitForABrokenDisk) {
  JobSpec spec = TinyCnnJob(2, 1);
  spec.checkpoint.dir = FreshFolder("broken");
  Begin(spec);
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 1));
  Send(SnapshotTaken{kNow, 0, 1, {}});
  Send(Failure{kNow, 1, "compute", 3, "no such class"});
  EXPECT_FALSE(ended());
  Send(Failure{kNow, -1, "checkpointer", 8, "disk full"});
  ASSERT_TRUE(ended());
  EXPECT_EQ(verdict().message(), "rank 1, compute: no such class");
}

}  // namespace
}  // namespace troupe::actors
