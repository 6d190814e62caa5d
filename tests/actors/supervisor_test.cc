// The supervisor among fakes: it knows ranks by their messages alone, drops
// those of another generation, and notices silence after one time-out.

#include "actors/supervisor.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/job_setup.h"
#include "actors/reporter.h"
#include "gtest/gtest.h"
#include "tests/actors/simulated_system.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using Log = std::vector<std::string>;

RankActor::behavior_type FakeRank(RankActor::pointer self, int rank, Log* log) {
  const auto note = [=](const std::string& what) {
    log->push_back(absl::StrCat("rank ", rank, ": ", what));
  };
  return {
      [=](const Grant& grant) { note(absl::StrCat("grant ", grant.until)); },
      [=](const StepsDone&) { note("steps done"); },
      [=](const Evaluate& order) { note(absl::StrCat("eval ", order.step)); },
      [=](const TakeSnapshot& order) {
        note(absl::StrCat("copy ", order.step));
      },
      [=](const SaveShard& order) {
        note(absl::StrCat("save ", order.step, " to ", order.folder));
      },
      [=](const EndRank& end) {
        note(end.code == 0 ? "end" : absl::StrCat("end: ", end.message));
        self->quit();
      },
  };
}

CheckpointerActor::behavior_type FakeCheckpointer(CheckpointerActor::pointer,
                                                  Log* log) {
  return {
      [=](const OpenCheckpoint& order) {
        log->push_back(absl::StrCat("open ", order.step));
      },
      [=](const WriteShard&) { log->push_back("write"); },
      [=](const CommitCheckpoint& order) {
        log->push_back(absl::StrCat("commit ", order.step, " of ",
                                    order.shards.size(), " shards"));
      },
  };
}

class SupervisorTest : public testing::Test {
 protected:
  // Two ranks, or as many as `spec` has.
  void Begin(const JobSpec& spec) {
    process_ = SetUpJob(spec, /*observer=*/nullptr)->process;
    auto crew = std::make_shared<Crew>();
    supervisor_ =
        SpawnStrand(system_.get(), SupervisorBehavior, process_, crew);
    crew->reporter =
        SpawnStrand(system_.get(), ReporterBehavior, process_, supervisor_);
    crew->checkpointers = {system_.get().spawn(FakeCheckpointer, &log_)};
    for (int rank = 0; rank < process_->plan->mesh.size(); ++rank) {
      crew->ranks.push_back(system_.get().spawn(FakeRank, rank, &log_));
    }
    Send(begin_atom::value);
  }
  // Actors that a failed check left behind end here.
  void TearDown() override {
    if (!ended()) Send(Failure{1, -1, "test", 10, "over"});
  }
  template <typename Message>
  void Send(const Message& message) {
    caf::anon_send(supervisor_, message);
    system_.RunAll();
  }
  void FinishCheckpoint(std::int64_t step);
  // What the fakes heard since the last call.
  std::string Heard() { return absl::StrJoin(std::exchange(log_, {}), ", "); }
  static Progress StepsOf(std::int32_t generation, int rank, std::int64_t first,
                          int count) {
    Progress progress{generation, rank, first, {}};
    progress.losses.assign(count, LossBits{Bits(1), Bits(1), Bits(0)});
    return progress;
  }
  bool ended() const { return process_->outcome.HasBeenSet(); }

  SimulatedSystem system_;
  ProcessContextPtr process_;
  SupervisorActor supervisor_;
  Log log_;
};

constexpr std::int32_t kNow = 1, kBefore = 0;

JobSpec Plain(std::int64_t steps) {
  JobSpec spec = TinyCnnJob(2, steps);
  spec.test = nullptr;
  return spec;
}

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

TEST_F(SupervisorTest, ACheckpointIsShardsThenOneName) {
  JobSpec spec = Plain(1);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.cuts = {6};
  spec.checkpoint.dir = FreshFolder("shards");
  Begin(spec);
  Heard();
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 1));
  EXPECT_EQ(Heard(), "open 1, rank 0: copy 1, rank 1: copy 1");
  Send(SnapshotTaken{kNow, 1, 1});
  Send(SnapshotTaken{kBefore, 0, 1});
  Send(CheckpointOpened{kBefore, 1, "old"});
  Send(CheckpointOpened{kNow, 1, "new"});
  EXPECT_EQ(Heard(), "") << "rank 0 has not copied";
  Send(SnapshotTaken{kNow, 0, 1});
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

// A stop that comes when the last step is done changes nothing any more.
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
  system_.Advance(absl::Seconds(1));
  ASSERT_TRUE(ended());
  EXPECT_EQ(process_->outcome.Wait().status(),
            absl::DeadlineExceededError(
                "supervisor: no progress for 1m (rank 0 has done 1, rank 1 has "
                "done 0 of 2 granted steps)"));
}

TEST_F(SupervisorTest, AWriterThatFallsSilentIsNamed) {
  JobSpec spec = Plain(100);
  spec.timeout = absl::Seconds(60);
  spec.checkpoint.dir = FreshFolder("silent");
  spec.checkpoint.every = 2;
  Begin(spec);
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 2));
  Send(SnapshotTaken{kNow, 0, 2});
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

// One of a shard, from the ranks' copies to its name.
void SupervisorTest::FinishCheckpoint(std::int64_t step) {
  Send(SnapshotTaken{kNow, 0, step});
  Send(CheckpointOpened{kNow, step, "folder"});
  Send(ShardSaved{kNow, step, ShardSummary()});
  Send(CheckpointSaved{kNow, step, "path"});
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

}  // namespace
}  // namespace troupe::actors
