// A rank's report of its waits names the step, the bucket and the ranks by
// their numbers in the job, not in its groups.

#include "actors/strands/wait_report.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/setup/job_setup.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using comm::Barrier;
using comm::Event;
using pipeline::GroupId;

// Returns a job of two stages and two replicas: ranks 0 and 1 have stage 0.
ProcessContextPtr FourRanks() {
  JobSpec spec = TinyCnnJob(2, 100);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  spec.plan.cuts = {6};
  spec.plan.buckets = {/*first_bucket_bytes=*/512, /*bucket_bytes=*/512};
  spec.plan.inline_bytes = 0;
  spec.plan.fuse_updates = false;
  return SetUpJob(spec, /*observer=*/nullptr)->process;
}

RankWaits ReportOf(const RankContext& context) {
  return WaitReport(context).Make(std::chrono::steady_clock::now());
}

TEST(WaitReportTest, ACollectiveIsABucketOfAStep) {
  const ProcessContextPtr process = FourRanks();
  const RankContext& mine = *process->ranks[2];
  const RankContext& peer = *process->ranks[3];
  const int buckets = static_cast<int>(mine.plan->StageOf(2).buckets.size());
  ASSERT_GE(buckets, 2);
  EXPECT_TRUE(ReportOf(mine).waits.empty());
  // Both ranks have completed the first step, and bucket 0 of the second.
  std::vector<Event> done;
  for (int i = 0; i < buckets + 1; ++i) {
    done.push_back(*mine.groups.Of(GroupId::kDp).Start(Barrier(), Event()));
    done.push_back(*peer.groups.Of(GroupId::kDp).Start(Barrier(), Event()));
  }
  while (!done.back().ready()) peer.groups.Of(GroupId::kDp).Progress();
  const Event next = *mine.groups.Of(GroupId::kDp).Start(Barrier(), Event());
  const Event loss = *mine.groups.Of(GroupId::kDpPp).Start(Barrier(), Event());
  const RankWaits report = ReportOf(mine);
  EXPECT_EQ(report.rank, 2);
  EXPECT_FALSE(report.busy);
  ASSERT_EQ(report.waits.size(), 2u);
  EXPECT_EQ(report.waits[0].what,
            absl::StrCat("barrier(), collective ", buckets + 1));
  EXPECT_EQ(report.waits[0].group, "replicas of stage 1");
  EXPECT_EQ(report.waits[0].collective, buckets + 1);
  EXPECT_EQ(report.waits[0].step, 1);
  EXPECT_EQ(report.waits[0].part, "bucket 1");
  EXPECT_EQ(report.waits[0].ranks, std::vector<int>{3});
  EXPECT_FALSE(report.waits[0].begun);
  EXPECT_EQ(report.waits[1].group, "all ranks");
  EXPECT_EQ(report.waits[1].step, 0);
  EXPECT_EQ(report.waits[1].part, "loss");
  EXPECT_EQ(report.waits[1].ranks, (std::vector<int>{0, 1, 3}));
  EXPECT_GE(report.waits[0].nanos, report.waits[1].nanos);
  // The report keeps the waits from before the group was aborted.
  peer.groups.Of(GroupId::kDp).Abort(absl::CancelledError("over"));
  EXPECT_EQ(ReportOf(mine).waits.size(), 2u);
  EXPECT_EQ(ReportOf(peer).waits.size(), 0u);
}

TEST(WaitReportTest, ATensorComesFromTheRankOfAStage) {
  const ProcessContextPtr process = FourRanks();
  const RankContext& mine = *process->ranks[3];
  StepPosition& position = *mine.position;
  position.BeginStep(StepKind::kTrain, 6);
  EXPECT_EQ(ReportOf(mine).doing, "computing step 7");
  EXPECT_TRUE(ReportOf(mine).busy);
  position.Await({/*forward=*/true, /*micro_batch=*/4, /*stage=*/1});
  const RankWaits report = ReportOf(mine);
  ASSERT_EQ(report.waits.size(), 1u);
  EXPECT_EQ(report.waits[0].what, "the activation of stage 0 for stage 1");
  EXPECT_EQ(report.waits[0].part, "micro-batch 4");
  EXPECT_EQ(report.waits[0].step, 6);
  EXPECT_EQ(report.waits[0].collective, -1);
  EXPECT_EQ(report.waits[0].ranks, std::vector<int>{1});
  // A table may receive a tensor that no stage sends.
  position.Await({/*forward=*/false, /*micro_batch=*/4, /*stage=*/1});
  const RankWaits hopeless = ReportOf(mine);
  ASSERT_EQ(hopeless.waits.size(), 1u);
  EXPECT_EQ(hopeless.waits[0].what, "the gradient of stage 2 for stage 1");
  EXPECT_TRUE(hopeless.waits[0].ranks.empty());
  position.GoOn();
  EXPECT_TRUE(ReportOf(mine).waits.empty());
  position.EndStep();
  EXPECT_FALSE(ReportOf(mine).busy);
}

TEST(StepPositionTest, ItWaitsSinceTheFirstTimeItSaysSo) {
  StepPosition position;
  position.BeginStep(StepKind::kTrain, 0);
  position.Await({/*forward=*/true, /*micro_batch=*/0, /*stage=*/1});
  const auto since = position.Get().receive->since;
  position.Await({/*forward=*/true, /*micro_batch=*/0, /*stage=*/1});
  EXPECT_EQ(position.Get().receive->since, since);
  position.Await({/*forward=*/false, /*micro_batch=*/0, /*stage=*/1});
  EXPECT_FALSE(position.Get().receive->forward);
  // The next step does not inherit the wait of the previous one.
  position.BeginStep(StepKind::kTrain, 1);
  EXPECT_FALSE(position.Get().receive.has_value());
}

}  // namespace
}  // namespace troupe::actors
