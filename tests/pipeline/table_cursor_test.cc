#include "pipeline/table/table_cursor.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "pipeline/table/action_rules.h"

namespace troupe::pipeline {
namespace {

// A cursor by the names of its actions.
class NamedCursor {
 public:
  explicit NamedCursor(absl::string_view text,
                       const ReductionOptions& options = {}, int buckets = 0)
      : cursor_(*ParseTable(text, options), buckets) {}

  // Returns the next runnable action, or "-".
  std::string Next(bool busy = false) const {
    const int next = cursor_.NextRunnable(busy);
    return next < 0 ? "-" : cursor_.table().actions[next].ToString();
  }
  void Start(absl::string_view name) { cursor_.Start(Id(name)); }
  void Finish(absl::string_view name) { cursor_.Finish(Id(name)); }
  void Run(absl::string_view name) {
    Start(name);
    Finish(name);
  }
  void Give(SignalKind kind, int id = 0) { cursor_.Give({kind, id}); }

  TableCursor& operator*() { return cursor_; }

 private:
  int Id(absl::string_view name) const {
    const auto& actions = cursor_.table().actions;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].ToString() == name) return static_cast<int>(i);
    }
    ADD_FAILURE() << name << " is not in the table";
    return 0;
  }

  TableCursor cursor_;
};

TEST(TableCursorTest, RunsATableInItsOrderWhereNothingWaits) {
  NamedCursor cursor("F0 B0 F1 B1");
  std::string order;
  while (!(*cursor).complete()) {
    const std::string next = cursor.Next();
    absl::StrAppend(&order, next, " ");
    cursor.Run(next);
  }
  EXPECT_EQ(order, "F0 B0 F1 B1 ");
  EXPECT_EQ(cursor.Next(), "-");
}

TEST(TableCursorTest, WhatIsReadyOvertakesWhatWaits) {
  NamedCursor cursor("RA0 F0 RA1 F1 RG0 B0 RG1 B1");
  EXPECT_EQ(cursor.Next(), "-") << "receives are never offered";
  cursor.Finish("RA0");
  cursor.Run("F0");
  cursor.Finish("RG0");
  EXPECT_EQ(cursor.Next(), "B0") << "F1 still waits for its activation";
  cursor.Run("B0");
  cursor.Finish("RG1");
  EXPECT_EQ(cursor.Next(), "-") << "B1 needs F1";
  cursor.Finish("RA1");
  cursor.Run("F1");
  cursor.Run("B1");
  EXPECT_TRUE((*cursor).complete());
}

TEST(TableCursorTest, BackwardsKeepMicroBatchOrder) {
  NamedCursor cursor("F0 F1 RG0 B0 RG1 B1");
  cursor.Run("F0");
  cursor.Run("F1");
  cursor.Finish("RG1");
  EXPECT_EQ(cursor.Next(), "-") << "B1 waits for B0, which waits for RG0";
  cursor.Finish("RG0");
  EXPECT_EQ(cursor.Next(), "B0");
}

TEST(TableCursorTest, WhileOneComputesOnlyOthersAreOffered) {
  NamedCursor cursor("F0 F1 SA0 SA1");
  cursor.Run("F0");
  cursor.Start("F1");
  EXPECT_EQ(cursor.Next(/*busy=*/true), "SA0");
  cursor.Run("SA0");
  EXPECT_EQ(cursor.Next(/*busy=*/true), "-");
  cursor.Finish("F1");
  EXPECT_EQ(cursor.Next(/*busy=*/true), "SA1");
}

TEST(TableCursorTest, CollectivesStartInTableOrder) {
  NamedCursor cursor("F0 LR B0 AR0 UP0 AR1 UP1");
  cursor.Run("F0");
  cursor.Give(SignalKind::kBucketReady, 1);
  EXPECT_EQ(cursor.Next(true), "LR");
  cursor.Start("LR");
  EXPECT_EQ(cursor.Next(true), "-") << "AR1 is ready, AR0 comes first";
  cursor.Give(SignalKind::kBucketReady, 0);
  EXPECT_EQ(cursor.Next(true), "AR0");
  cursor.Start("AR0");
  EXPECT_EQ(cursor.Next(true), "AR1") << "started is enough";
}

TEST(TableCursorTest, CollectivesOfOtherGroupsDoNotWait) {
  NamedCursor cursor("F0 B0 F1 LR B1 AR0 RU1 UP0");
  cursor.Run("F0");
  cursor.Run("B0");
  EXPECT_EQ(cursor.Next(true), "-") << "LR waits for F1";
  cursor.Give(SignalKind::kBucketReady, 1);
  cursor.Give(SignalKind::kBucketReleased, 1);
  cursor.Give(SignalKind::kLossReduced);
  EXPECT_EQ(cursor.Next(true), "-") << "AR0 comes before RU1, in one group";
  cursor.Give(SignalKind::kBucketReady, 0);
  EXPECT_EQ(cursor.Next(true), "AR0") << "LR is of the world";
  cursor.Start("AR0");
  EXPECT_EQ(cursor.Next(true), "RU1");
  cursor.Run("F1");
  EXPECT_EQ(cursor.Next(true), "LR") << "the first of the table";
}

// A round ends sooner or later than the last forward: LR keeps its place on
// each rank. NR stands behind the gather for which its result is needed.
TEST(TableCursorTest, RoundsOfMicroBatchesKeepTheLossInItsPlace) {
  ReductionOptions options;
  options.update_needs_all_buckets = options.reduce_findings = true;
  options.gather_values = options.each_micro_batch = true;
  NamedCursor cursor(
      AddReductions(*ParseTable("F0 B0 F1 B1 F2 B2"), 1, options).ToString(),
      options);
  const auto run_backward = [&](const char* name, int micro_batch) {
    cursor.Run(name);
    (*cursor).GiveGradients(0, 0, micro_batch, /*last=*/micro_batch == 2);
  };
  cursor.Run("F0");
  run_backward("B0", 0);
  cursor.Start("AR0");
  cursor.Run("F1");
  run_backward("B1", 1);
  cursor.Run("F2");
  EXPECT_EQ(cursor.Next(true), "-") << "LR follows AR0.1, which waits for AR0";
  cursor.Finish("AR0");
  EXPECT_EQ(cursor.Next(true), "AR0.1");
  cursor.Start("AR0.1");
  EXPECT_EQ(cursor.Next(true), "LR") << "started is enough";
  run_backward("B2", 2);
  cursor.Finish("AR0.1");
  EXPECT_EQ(cursor.Next(true), "LR") << "AR0.2 comes after it";
  cursor.Start("LR");
  EXPECT_EQ(cursor.Next(true), "AR0.2");
  cursor.Run("AR0.2");
  cursor.Give(SignalKind::kBucketReduced, 0);
  EXPECT_EQ(cursor.Next(true), "-") << "NR needs the loss";
  cursor.Finish("LR");
  cursor.Give(SignalKind::kLossReduced);
  for (const char* name : {"NR", "UP0", "AG0"}) {
    EXPECT_EQ(cursor.Next(true), name);
    cursor.Run(name);
  }
  EXPECT_TRUE((*cursor).complete());
}

TEST(TableCursorTest, CollectivesNameTheirGroup) {
  const auto group_of = [](ActionKind kind) { return GroupOf({kind, 0, {}}); };
  EXPECT_EQ(group_of(ActionKind::kReduceLoss), GroupId::kDpPp);
  EXPECT_EQ(group_of(ActionKind::kReduceBucket), GroupId::kDp);
  EXPECT_EQ(group_of(ActionKind::kReduceUpdateBucket), GroupId::kDp);
  EXPECT_DEATH(group_of(ActionKind::kForward), "only a collective has a group");
}

TEST(TableCursorTest, AnUpdateNeedsSumDivisorAndTheLastReader) {
  const SignalKind signals[] = {SignalKind::kBucketReduced,
                                SignalKind::kBucketReleased,
                                SignalKind::kLossReduced};
  for (SignalKind late : signals) {
    NamedCursor cursor("F0 LR B0 AR0 UP0");
    for (const char* name : {"F0", "LR", "B0"}) cursor.Run(name);
    cursor.Give(SignalKind::kBucketReady, 0);
    cursor.Run("AR0");
    for (SignalKind signal : signals) {
      if (signal != late) cursor.Give(signal);
    }
    EXPECT_EQ(cursor.Next(), "-");
    cursor.Give(late);
    EXPECT_EQ(cursor.Next(), "UP0");
  }
}

TEST(TableCursorTest, AllReducedComesWithTheLastBucket) {
  NamedCursor cursor("F0 LR B0 AR0 UP0 AR1 UP1",
                     {/*update_needs_all_buckets=*/true});
  for (const char* name : {"F0", "LR", "B0"}) cursor.Run(name);
  cursor.Give(SignalKind::kLossReduced);
  for (int k : {0, 1}) {
    cursor.Give(SignalKind::kBucketReady, k);
    cursor.Give(SignalKind::kBucketReleased, k);
  }
  cursor.Run("AR0");
  cursor.Run("AR1");
  cursor.Give(SignalKind::kBucketReduced, 0);
  cursor.Give(SignalKind::kBucketReduced, 0);  // counts once
  EXPECT_FALSE((*cursor).Given({SignalKind::kAllReduced, 0}));
  EXPECT_EQ(cursor.Next(), "-");
  cursor.Give(SignalKind::kBucketReduced, 1);
  EXPECT_TRUE((*cursor).Given({SignalKind::kAllReduced, 0}));
  EXPECT_EQ(cursor.Next(), "UP0");
}

TEST(TableCursorTest, BucketsThatTheTableLeavesOutMayGiveSignals) {
  NamedCursor cursor("F0", {}, /*buckets=*/2);
  cursor.Give(SignalKind::kBucketReady, 1);
  EXPECT_TRUE((*cursor).Given({SignalKind::kBucketReady, 1}));
  EXPECT_FALSE((*cursor).Given({SignalKind::kBucketReady, 0}));
  EXPECT_EQ(cursor.Next(), "F0");
}

TEST(TableCursorTest, SaysWhatIsUnfinished) {
  NamedCursor cursor("F0 LR B0 AR0 UP0");
  EXPECT_EQ((*cursor).Unfinished(), "F0 LR B0 AR0 UP0");
  cursor.Run("F0");
  cursor.Start("B0");
  cursor.Run("LR");
  EXPECT_EQ((*cursor).Unfinished(), "B0 AR0 UP0") << "started is not done";
  EXPECT_FALSE((*cursor).complete());
}

TEST(TableCursorTest, BeginForgetsTheLastStep) {
  NamedCursor cursor("F0 LR B0 AR0 UP0");
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(cursor.Next(), "F0");
    for (const char* name : {"F0", "LR", "B0"}) cursor.Run(name);
    EXPECT_EQ(cursor.Next(), "-");
    cursor.Give(SignalKind::kBucketReady, 0);
    cursor.Run("AR0");
    cursor.Give(SignalKind::kBucketReduced, 0);
    cursor.Run("UP0");
    EXPECT_TRUE((*cursor).complete());
    EXPECT_EQ((*cursor).Unfinished(), "");
    (*cursor).Begin();
    EXPECT_FALSE((*cursor).Given({SignalKind::kAllReduced, 0}));
  }
}

// Computations, sends and starts of collectives come before draining; ends of
// collectives and updates after it begins.
TEST(TableCursorTest, DrainsWhenOnlyResultsAndUpdatesAreLeft) {
  NamedCursor cursor("RA0 F0 LR B0 SG0 AR0 UP0 AR1 UP1");
  for (int step = 0; step < 2; ++step) {
    cursor.Finish("RA0");
    for (const char* name : {"F0", "B0", "SG0"}) cursor.Run(name);
    for (int k : {0, 1}) cursor.Give(SignalKind::kBucketReady, k);
    cursor.Start("LR");
    cursor.Start("AR0");
    EXPECT_FALSE((*cursor).draining());
    cursor.Start("AR1");
    EXPECT_TRUE((*cursor).draining());
    EXPECT_FALSE((*cursor).complete());
    for (const char* name : {"AR1", "LR", "AR0"}) cursor.Finish(name);
    EXPECT_EQ((*cursor).Unfinished(), "UP0 UP1");
    EXPECT_TRUE((*cursor).draining());
    (*cursor).Begin();
    EXPECT_FALSE((*cursor).draining());
  }
}

TEST(TableCursorTest, DrainsWhileGathersOfUpdatesAreLeft) {
  NamedCursor cursor("F0 LR B0 AR0 UP0 AR1 UP1 AG1 AG0");
  for (int step = 0; step < 2; ++step) {
    for (const char* name : {"F0", "LR", "B0"}) cursor.Run(name);
    cursor.Give(SignalKind::kLossReduced);
    for (int k : {0, 1}) {
      cursor.Give(SignalKind::kBucketReady, k);
      cursor.Give(SignalKind::kBucketReleased, k);
    }
    cursor.Run("AR0");
    cursor.Give(SignalKind::kBucketReduced, 0);
    cursor.Run("UP0");
    EXPECT_FALSE((*cursor).draining()) << "AR1 has not started";
    cursor.Start("AR1");
    EXPECT_TRUE((*cursor).draining());
    EXPECT_FALSE((*cursor).Runnable(8)) << "AG1 starts before AG0";
    EXPECT_EQ(cursor.Next(), "-");
    cursor.Finish("AR1");
    cursor.Give(SignalKind::kBucketReduced, 1);
    cursor.Run("UP1");
    cursor.Start("AG1");
    EXPECT_TRUE((*cursor).Runnable(8)) << "started is enough";
    cursor.Run("AG0");
    EXPECT_TRUE((*cursor).draining());
    EXPECT_FALSE((*cursor).complete());
    cursor.Finish("AG1");
    EXPECT_TRUE((*cursor).complete());
    (*cursor).Begin();
  }
}

TEST(TableCursorTest, SaysWhetherAnActionMayRun) {
  NamedCursor cursor("F0 B0");
  EXPECT_TRUE((*cursor).Runnable(0));
  EXPECT_FALSE((*cursor).Runnable(1)) << "B0 needs F0";
  cursor.Start("F0");
  EXPECT_FALSE((*cursor).Runnable(0)) << "it runs";
  cursor.Finish("F0");
  EXPECT_TRUE((*cursor).Runnable(1));
}

TEST(TableCursorTest, AnEmptyTableIsComplete) {
  NamedCursor cursor("");
  EXPECT_TRUE((*cursor).complete());
  EXPECT_EQ(cursor.Next(), "-");
}

TEST(TableCursorDeathTest, TwiceIsABug) {
  NamedCursor cursor("F0 B0");
  cursor.Start("F0");
  EXPECT_DEATH(cursor.Start("F0"), "an action starts once a step");
  cursor.Finish("F0");
  EXPECT_DEATH(cursor.Finish("F0"), "an action finishes once a step");
}

TEST(TableCursorTest, KindsAreSorted) {
  std::string compute, receive, collective;
  const StepTable all =
      *ParseTable("F0 B0 I0 W0 RA0 SA0 RG0 SG0 LR AR0 UP0 RU1");
  for (const Action& action : all.actions) {
    if (IsCompute(action.kind)) absl::StrAppend(&compute, action.ToString());
    if (IsReceive(action.kind)) absl::StrAppend(&receive, action.ToString());
    if (IsCollective(action.kind)) {
      absl::StrAppend(&collective, action.ToString());
    }
  }
  EXPECT_EQ(compute, "F0B0I0W0");
  EXPECT_EQ(receive, "RA0RG0");
  EXPECT_EQ(collective, "LRAR0RU1");
}

}  // namespace
}  // namespace troupe::pipeline
