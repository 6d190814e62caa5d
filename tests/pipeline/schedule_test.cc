#include "pipeline/table/schedule.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipeline/table/table_cursor.h"

namespace troupe::pipeline {
namespace {

// Returns a line for each action: "UP0 <- bucket 0 reduced, bucket 0 released".
std::string Needs(const StepTable& table) {
  std::string text;
  for (const Action& action : table.actions) {
    absl::StrAppend(&text, action.ToString(), " <-");
    for (const Signal& need : action.needs) {
      switch (need.kind) {
        case SignalKind::kDone:
          absl::StrAppend(&text, " ", table.actions[need.id].ToString());
          break;
        case SignalKind::kBucketReady:
          absl::StrAppend(&text, " ready:", need.id);
          if (need.round > 0) absl::StrAppend(&text, ".", need.round);
          break;
        case SignalKind::kBucketReleased:
          absl::StrAppend(&text, " released:", need.id);
          break;
        case SignalKind::kBucketReduced:
          absl::StrAppend(&text, " reduced:", need.id);
          break;
        case SignalKind::kAllReduced:
          absl::StrAppend(&text, " all-reduced");
          break;
        case SignalKind::kLossReduced:
          absl::StrAppend(&text, " loss");
          break;
        case SignalKind::kStepAsked:
          absl::StrAppend(&text, " asked");
          break;
      }
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

StepTable Parsed(const std::string& text,
                 const ReductionOptions& options = {}) {
  absl::StatusOr<StepTable> table = ParseTable(text, options);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *table : StepTable{};
}

TEST(ScheduleTest, DataParallelAccumulates) {
  EXPECT_EQ(DataParallelTable(1).ToString(), "F0 B0");
  EXPECT_EQ(DataParallelTable(3).ToString(), "F0 B0 F1 B1 F2 B2");
}

TEST(ScheduleTest, GPipeRunsAllForwardsFirst) {
  EXPECT_EQ(GPipeTable(1).ToString(), "F0 B0");
  EXPECT_EQ(GPipeTable(3).ToString(), "F0 F1 F2 B0 B1 B2");
}

TEST(ScheduleTest, TransfersStandAroundWhatNeedsThem) {
  const StepTable compute = GPipeTable(2);
  const bool no = false, yes = true;
  EXPECT_EQ(AddTransfers(compute, /*first_stage=*/yes, /*last_stage=*/yes),
            compute);
  EXPECT_EQ(AddTransfers(compute, yes, no).ToString(),
            "F0 SA0 F1 SA1 RG0 B0 RG1 B1");
  EXPECT_EQ(AddTransfers(compute, no, no).ToString(),
            "RA0 F0 SA0 RA1 F1 SA1 RG0 B0 SG0 RG1 B1 SG1");
  EXPECT_EQ(AddTransfers(compute, no, yes).ToString(),
            "RA0 F0 RA1 F1 B0 SG0 B1 SG1");
}

TEST(ScheduleTest, ASplitBackwardSendsBeforeItsWeights) {
  EXPECT_EQ(AddTransfers(Parsed("F0 I0 W0"), false, false).ToString(),
            "RA0 F0 SA0 RG0 I0 SG0 W0");
}

TEST(ScheduleTest, ReductionsComeLastAndTheLossAfterTheLastForward) {
  EXPECT_EQ(AddReductions(DataParallelTable(2), 2, {}).ToString(),
            "F0 B0 F1 LR B1 AR0 UP0 AR1 UP1");
  EXPECT_EQ(AddReductions(DataParallelTable(1), 0, {}).ToString(), "F0 LR B0");
  EXPECT_EQ(
      AddReductions(AddTransfers(GPipeTable(2), true, false), 1, {}).ToString(),
      "F0 SA0 F1 SA1 LR RG0 B0 RG1 B1 AR0 UP0");
}

TEST(ScheduleTest, NeedsOfDataParallel) {
  EXPECT_EQ(Needs(AddReductions(DataParallelTable(2), 2, {})),
            "F0 <-\n"
            "B0 <- F0\n"
            "F1 <- F0\n"
            "LR <- F0 F1\n"
            "B1 <- F1 B0\n"
            "AR0 <- ready:0\n"
            "UP0 <- reduced:0 released:0 loss\n"
            "AR1 <- ready:1\n"
            "UP1 <- reduced:1 released:1 loss\n");
}

TEST(ScheduleTest, NeedsOfAMiddleStage) {
  EXPECT_EQ(Needs(AddTransfers(GPipeTable(2), false, false)),
            "RA0 <-\n"
            "F0 <- RA0\n"
            "SA0 <- F0\n"
            "RA1 <-\n"
            "F1 <- RA1 F0\n"
            "SA1 <- F1\n"
            "RG0 <-\n"
            "B0 <- F0 RG0\n"
            "SG0 <- B0\n"
            "RG1 <-\n"
            "B1 <- F1 RG1 B0\n"
            "SG1 <- B1\n");
}

TEST(ScheduleTest, NeedsOfSplitBackwards) {
  EXPECT_EQ(Needs(AddTransfers(Parsed("F0 F1 I0 I1 W0 W1"), false, true)),
            "RA0 <-\n"
            "F0 <- RA0\n"
            "RA1 <-\n"
            "F1 <- RA1 F0\n"
            "I0 <- F0\n"
            "SG0 <- I0\n"
            "I1 <- F1 I0\n"
            "SG1 <- I1\n"
            "W0 <- I0\n"
            "W1 <- I1 W0\n");
}

// Whole and split backwards add up a weight's gradients in one order.
TEST(ScheduleTest, WholeAndSplitBackwardsKeepOneOrder) {
  EXPECT_EQ(Needs(Parsed("F0 F1 F2 B0 I1 W1 B2")),
            "F0 <-\n"
            "F1 <- F0\n"
            "F2 <- F1\n"
            "B0 <- F0\n"
            "I1 <- F1 B0\n"
            "W1 <- I1 B0\n"
            "B2 <- F2 W1\n");
}

TEST(ScheduleTest, AnUpdateMayNeedAllBuckets) {
  const ReductionOptions options = {/*update_needs_all_buckets=*/true};
  EXPECT_EQ(Needs(AddReductions(DataParallelTable(1), 1, options)),
            "F0 <-\n"
            "LR <- F0\n"
            "B0 <- F0\n"
            "AR0 <- ready:0\n"
            "UP0 <- reduced:0 released:0 loss all-reduced\n");
}

TEST(ScheduleTest, WhatAllBucketsSayMayBeSummedOverStages) {
  const ReductionOptions options = {/*update_needs_all_buckets=*/true,
                                    /*reduce_findings=*/true};
  EXPECT_EQ(Needs(AddReductions(DataParallelTable(1), 1, options)),
            "F0 <-\n"
            "LR <- F0\n"
            "B0 <- F0\n"
            "AR0 <- ready:0\n"
            "UP0 <- reduced:0 released:0 loss all-reduced NR\n"
            "NR <- loss all-reduced\n");
  // A stage without parameters takes part in the sum.
  EXPECT_EQ(Needs(AddReductions(DataParallelTable(1), 0, options)),
            "F0 <-\n"
            "LR <- F0\n"
            "B0 <- F0\n"
            "NR <- loss\n");
}

TEST(ScheduleTest, AReductionMayUpdate) {
  const ReductionOptions options = {/*update_needs_all_buckets=*/false,
                                    /*reduce_findings=*/false,
                                    /*fuse_updates=*/true};
  EXPECT_EQ(Needs(AddReductions(DataParallelTable(1), 2, options)),
            "F0 <-\n"
            "LR <- F0\n"
            "B0 <- F0\n"
            "RU0 <- ready:0 released:0 loss\n"
            "RU1 <- ready:1 released:1 loss\n");
}

TEST(ScheduleTest, AReductionMayHaveRounds) {
  ReductionOptions options;
  options.rounds = 3;
  const StepTable table = AddReductions(DataParallelTable(1), 2, options);
  EXPECT_EQ(Needs(table),
            "F0 <-\n"
            "LR <- F0\n"
            "B0 <- F0\n"
            "AR0 <- ready:0\n"
            "AR0.1 <- AR0\n"
            "AR0.2 <- AR0.1\n"
            "UP0 <- reduced:0 released:0 loss\n"
            "AR1 <- ready:1\n"
            "AR1.1 <- AR1\n"
            "AR1.2 <- AR1.1\n"
            "UP1 <- reduced:1 released:1 loss\n");
  EXPECT_EQ(table.rounds(), 3);
  EXPECT_EQ(table.buckets(), 2);
  EXPECT_EQ(table.Find(ActionKind::kReduceBucket, 1, 0, /*round=*/2), 9);
  EXPECT_EQ(table.Find(ActionKind::kReduceBucket, 1, 0, /*round=*/3), -1);
  EXPECT_EQ(Parsed(table.ToString()), table);
  EXPECT_EQ(DataParallelTable(1).rounds(), 1);
}

// Stages that share a bucket sum it before the first round.
TEST(ScheduleTest, RoundsFollowTheSumOverStages) {
  ReductionOptions options;
  options.tied = {1};
  options.rounds = 2;
  EXPECT_EQ(Needs(AddReductions(DataParallelTable(1), 1, options)),
            "F0 <-\n"
            "LR <- F0\n"
            "B0 <- F0\n"
            "TR0 <- ready:0\n"
            "AR0 <- TR0\n"
            "AR0.1 <- AR0\n"
            "UP0 <- reduced:0 released:0 loss\n");
}

// Bucket 1 is shared with another stage, and reduced once.
TEST(ScheduleTest, EachMicroBatchMayBeReduced) {
  ReductionOptions options;
  options.each_micro_batch = true;
  options.tied = {1};
  const StepTable table = AddReductions(DataParallelTable(2), 2, options);
  EXPECT_EQ(Needs(table),
            "F0 <-\n"
            "B0 <- F0\n"
            "AR0 <- ready:0\n"
            "F1 <- F0\n"
            "LR <- F0 F1\n"
            "B1 <- F1 B0\n"
            "AR0.1 <- AR0 ready:0.1\n"
            "UP0 <- reduced:0 released:0 loss\n"
            "TR1 <- ready:1\n"
            "AR1 <- TR1\n"
            "UP1 <- reduced:1 released:1 loss\n");
  EXPECT_EQ(Parsed(table.ToString(), options), table);
  EXPECT_EQ(Validate(table), absl::OkStatus());
  TableCursor cursor(table);
  cursor.Begin();
  cursor.GiveGradients(0, 0, /*micro_batch=*/0, /*last=*/false);
  EXPECT_TRUE(cursor.Given({SignalKind::kBucketReady, 0}));
  EXPECT_FALSE(cursor.Given({SignalKind::kBucketReady, 0, 0, /*round=*/1}));
  cursor.GiveGradients(1, 0, 0, false);
  EXPECT_FALSE(cursor.Given({SignalKind::kBucketReady, 1}));
  cursor.GiveGradients(1, 0, 1, true);
  EXPECT_TRUE(cursor.Given({SignalKind::kBucketReady, 1}));
  EXPECT_TRUE(cursor.Given({SignalKind::kBucketReleased, 1}));
}

// Bucket 2 is shared with another stage.
TEST(ScheduleTest, GathersStandWhereTheirOrderSays) {
  ReductionOptions options;
  options.gather_values = true;
  options.tied = {1};
  const auto behind_backward = [&](GatherOrder order) {
    options.gather_order = order;
    const StepTable table = AddReductions(DataParallelTable(1), 3, options);
    EXPECT_EQ(Validate(table), absl::OkStatus());
    return table.ToString().substr(std::string("F0 LR B0 ").size());
  };
  EXPECT_EQ(behind_backward(GatherOrder::kAtEnd),
            "TR2 AR0 UP0 AR1 UP1 AR2 UP2 AG2 AG1 AG0");
  EXPECT_EQ(behind_backward(GatherOrder::kBehindNext),
            "TR2 AR0 UP0 AR1 UP1 AG0 AR2 UP2 AG1 AG2");
  EXPECT_EQ(behind_backward(GatherOrder::kBehindUpdate),
            "TR2 AR0 UP0 AG0 AR1 UP1 AG1 AR2 UP2 AG2");
  options.sum_parameters = true;
  EXPECT_EQ(behind_backward(GatherOrder::kAtEnd),
            "TR2 AR0 AR1 AR2 PN0 UP0 PN1 UP1 PN2 UP2 AG2 AG1 AG0");
  EXPECT_EQ(behind_backward(GatherOrder::kBehindNext),
            "TR2 AR0 AR1 PN0 UP0 AG0 AR2 PN1 UP1 AG1 PN2 UP2 AG2");
  EXPECT_EQ(behind_backward(GatherOrder::kBehindUpdate),
            "TR2 AR0 PN0 UP0 AG0 AR1 PN1 UP1 AG1 AR2 PN2 UP2 AG2");
  options.sum_parameters = false;
  options.update_needs_all_buckets = options.reduce_findings = true;
  EXPECT_EQ(behind_backward(GatherOrder::kBehindUpdate),
            "TR2 AR0 UP0 AR1 UP1 AR2 UP2 AG2 AG1 AG0 NR");
}

// The rounds of a chunk stand behind its own weight gradients.
TEST(ScheduleTest, EachMicroBatchIsReducedBehindItsBackward) {
  ReductionOptions options;
  options.each_micro_batch = true;
  EXPECT_EQ(AddReductions(Parsed("F0 I0 F1 W0 I1 W1"), 1, options).ToString(),
            "F0 I0 F1 LR W0 AR0 I1 W1 AR0.1 UP0");
}

TEST(ScheduleTest, ChunksAndRoundsAreBothNamed) {
  const StepTable table = Parsed("0F0 1F0 LR 1B0 0B0 1AR0 1AR0.1 1UP0");
  EXPECT_EQ(table.ToString(), "0F0 1F0 LR 1B0 0B0 1AR0 1AR0.1 1UP0");
  EXPECT_EQ(table.actions[6].chunk, 1);
  EXPECT_EQ(table.actions[6].round, 1);
}

TEST(ScheduleTest, ParsesWhatItPrints) {
  for (const ReductionOptions& options :
       {ReductionOptions{}, ReductionOptions{/*update_needs_all_buckets=*/true},
        ReductionOptions{true, /*reduce_findings=*/true},
        ReductionOptions{false, false, /*fuse_updates=*/true}}) {
    for (int buckets : {0, 1, 3}) {
      for (const StepTable& compute :
           {DataParallelTable(1), DataParallelTable(4), GPipeTable(3),
            Parsed("F0 I0 F1 W0 I1 W1")}) {
        for (int stage = 0; stage < 4; ++stage) {
          const StepTable table = AddReductions(
              AddTransfers(compute, stage % 2 == 0, stage / 2 == 0), buckets,
              options);
          EXPECT_EQ(Parsed(table.ToString(), options), table)
              << table.ToString();
        }
      }
    }
  }
}

TEST(ScheduleTest, ParsesAnySpacing) {
  EXPECT_EQ(Parsed(" F0\tB0\n\nLR "), Parsed("F0 B0 LR"));
  EXPECT_EQ(Parsed(""), StepTable{});
}

TEST(ScheduleTest, ParseErrorsNameTheWord) {
  for (const char* word :
       {"X0",           "F",    "F-1",   "f0",     "FF0",      "F0x",
        "LR0",          "SA",   "AR",    "S0",     "F0,B0",    "AR2147483647",
        "F99999999999", "AR0.", "AR0.0", "AR0.01", "AR0.1024", "AR0.1.1",
        "AR.1",         "F0.1", "RU0.1", "UP0.1",  "LR.1"}) {
    EXPECT_EQ(ParseTable(absl::StrCat("F0 B0 ", word, " F1")).status(),
              absl::InvalidArgumentError(absl::StrCat(
                  "\"", word, "\" is no action; write F0, B0, AR0, ...")))
        << word;
  }
}

TEST(ScheduleTest, KnowsItsSizes) {
  const StepTable table = Parsed("F0 F1 LR B0 B1 AR0 UP0 AR1 UP1 AR2 UP2");
  EXPECT_EQ(table.micro_batches(), 2);
  EXPECT_EQ(table.buckets(), 3);
  EXPECT_EQ(table.Find(ActionKind::kBackward, 1), 4);
  EXPECT_EQ(table.Find(ActionKind::kBackward, 2), -1);
  EXPECT_EQ(StepTable{}.micro_batches(), 0);
  EXPECT_EQ(StepTable{}.buckets(), 0);
}

TEST(ScheduleTest, AGridHasALinePerRank) {
  const StepTable compute = GPipeTable(2);
  EXPECT_EQ(ToGrid({AddTransfers(compute, true, false),
                    AddTransfers(compute, false, false),
                    AddTransfers(compute, false, true)}),
            "rank 0: F0 SA0 F1 SA1 RG0 B0 RG1 B1\n"
            "rank 1: RA0 F0 SA0 RA1 F1 SA1 RG0 B0 SG0 RG1 B1 SG1\n"
            "rank 2: RA0 F0 RA1 F1 B0 SG0 B1 SG1\n");
  EXPECT_EQ(ToGrid({}), "");
}

}  // namespace
}  // namespace troupe::pipeline
