// Validate() of pipeline/table/schedule.h: rejects each kind of table that
// cannot run, with the reason.

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {
namespace {

StepTable ParsedTable(absl::string_view text) {
  absl::StatusOr<StepTable> table = ParseTable(text);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *table : StepTable{};
}

// Returns the error of Validate() for the table; "" if it is valid.
std::string Wrong(const StepTable& table) {
  const absl::Status status = Validate(table);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}
std::string Wrong(absl::string_view text) { return Wrong(ParsedTable(text)); }

TEST(ValidateTest, WhatTheProducersMakeIsSound) {
  for (int micro_batches : {1, 2, 5}) {
    for (const StepTable& compute :
         {DataParallelTable(micro_batches), GPipeTable(micro_batches)}) {
      for (int stage = 0; stage < 4; ++stage) {
        for (bool all : {false, true}) {
          const StepTable table = AddReductions(
              AddTransfers(compute, stage % 2 == 0, stage / 2 == 0),
              /*buckets=*/3, {all});
          EXPECT_EQ(Wrong(table), "") << table.ToString();
        }
      }
    }
  }
}

TEST(ValidateTest, SoundTablesOfOtherKinds) {
  EXPECT_EQ(Wrong(""), "");
  EXPECT_EQ(Wrong("F0"), "") << "an evaluation";
  EXPECT_EQ(Wrong("RA0 F0 SA0 SG0 RG0"), "") << "gradients as bare credits";
  EXPECT_EQ(Wrong("RA0 F0 SA0"), "") << "an evaluation of a middle stage";
  EXPECT_EQ(Wrong("F0 F1 I0 W0 I1 W1 LR AR0 UP0"), "") << "split backwards";
  EXPECT_EQ(Wrong("F0 F1 B0 I1 W1 LR AR0 UP0"), "") << "both kinds";
}

// The order of the text does not decide whether a table can run; needs do.
TEST(ValidateTest, AnyOrderWillDoThatNeedsAllow) {
  EXPECT_EQ(Wrong("UP0 AR0 B1 B0 LR F1 F0"), "");
}

TEST(ValidateTest, AnActionTwice) {
  EXPECT_EQ(Wrong("F0 F0 B0"),
            "schedule: F0 is there twice; remove one of them");
  EXPECT_EQ(Wrong("F0 LR LR B0"),
            "schedule: LR is there twice; remove one of them");
  EXPECT_EQ(Wrong("F0 B0 LR AR0 UP0 AR0"),
            "schedule: AR0 is there twice; remove one of them");
}

TEST(ValidateTest, PartnersThatAreMissing) {
  EXPECT_EQ(Wrong("F0 B0 B1"), "schedule: B1 has no forward; add it");
  EXPECT_EQ(Wrong("F0 I1 W1"), "schedule: I1 has no forward; add it");
  EXPECT_EQ(Wrong("F0 I0"),
            "schedule: I0 has no weight gradients after it; add it");
  EXPECT_EQ(Wrong("F0 W0"),
            "schedule: W0 has no input gradients before it; add it");
  EXPECT_EQ(Wrong("F0 SA1"), "schedule: SA1 has no forward; add it");
  EXPECT_EQ(Wrong("RA1 F0"), "schedule: RA1 has no forward; add it");
  EXPECT_EQ(Wrong("F0 B0 SG1"), "schedule: SG1 has no backward; add it");
  EXPECT_EQ(Wrong("F0 B0 RG1"), "schedule: RG1 has no backward; add it");
  EXPECT_EQ(Wrong("F0 RG1"), "schedule: RG1 has no forward; add it");
  EXPECT_EQ(Wrong("F0 LR B0 AR0"), "schedule: AR0 has no update; add it");
  EXPECT_EQ(Wrong("F0 LR B0 UP0"), "schedule: UP0 has no reduction; add it");
  EXPECT_EQ(Wrong("F0 LR B0 RU0 UP0"),
            "schedule: UP0 has no reduction; add it");
}

TEST(ValidateTest, MicroBatches) {
  EXPECT_EQ(
      Wrong("F0 F1 B0"),
      "schedule: F1 has no backward; add one, or remove those of the others");
  EXPECT_EQ(Wrong("F0 B0 F2 B2"),
            "schedule: micro-batch 1 of 2 has no forward; add F1");
  EXPECT_EQ(Wrong("F0 B0 I0 W0"),
            "schedule: F0 has two backwards, whole and split; remove one");
}

TEST(ValidateTest, AnEvaluationReducesAndUpdatesNothing) {
  EXPECT_EQ(Wrong("F0 LR"),
            "schedule: LR is for training, and the table has no backward; "
            "remove it, or add one");
  EXPECT_EQ(Wrong("F0 AR0 UP0"),
            "schedule: AR0 is for training, and the table has no backward; "
            "remove it, or add one");
  EXPECT_EQ(Wrong("RA0 F0 TR0"),
            "schedule: TR0 is for training, and the table has no backward; "
            "remove it, or add one");
}

TEST(ValidateTest, ABucketIsLeftOut) {
  EXPECT_EQ(Wrong("F0 LR B0 AR1 UP1"),
            "schedule: bucket 0 of 2 is never reduced; add an AR or RU for it");
}

TEST(ValidateTest, ABucketIsReducedTwice) {
  EXPECT_EQ(Wrong("F0 LR B0 AR0 UP0 RU0"),
            "schedule: bucket 0 is reduced twice, by AR and by RU; remove one");
}

TEST(ValidateTest, Rounds) {
  EXPECT_EQ(Validate(ParsedTable("F0 LR B0 AR0 AR0.1 AR0.2 UP0")),
            absl::OkStatus());
  EXPECT_EQ(Wrong("F0 LR B0 AR0.1 UP0"),
            "schedule: AR0.1 has no round before it; number rounds from 0");
  EXPECT_EQ(Wrong("F0 LR B0 AR0 AR0.2 UP0"),
            "schedule: AR0.2 has no round before it; number rounds from 0");
  EXPECT_EQ(Wrong("F0 LR B0 AR0 AR0.1 AR0.1 UP0"),
            "schedule: AR0.1 is there twice; remove one of them");
  // Collectives of one group start in table order.
  EXPECT_EQ(Wrong("F0 LR B0 AR0.1 AR0 UP0"),
            "schedule: these actions can never run: AR0.1 AR0 UP0; move or add "
            "what they wait for");
  StepTable table = ParsedTable("F0 LR B0 AR0 UP0");
  table.actions[3].round = kRoundsMax;
  EXPECT_EQ(Wrong(table),
            "schedule: AR0.1024 has a round that must be from 0 to 1023");
  table = ParsedTable("F0 LR B0 AR0 UP0");
  table.actions[4].round = 1;
  EXPECT_EQ(
      Wrong(table),
      "schedule: UP0.1 has a round; leave it out, since only AR has rounds");
}

TEST(ValidateTest, NumbersBelowZero) {
  StepTable table;
  table.actions.push_back({ActionKind::kReduceBucket, -1, {}});
  EXPECT_EQ(Wrong(table), "schedule: AR-1 has a number below 0; count from 0");
}

TEST(ValidateTest, NeedsThatNothingGives) {
  const Signal impossible[] = {
      {SignalKind::kDone, 6},          {SignalKind::kDone, -1},
      {SignalKind::kBucketReady, 1},   {SignalKind::kBucketReleased, 1},
      {SignalKind::kBucketReduced, 7},
  };
  for (const Signal& signal : impossible) {
    StepTable table = ParsedTable("F0 LR B0 AR0 UP0");
    table.actions[2].needs.push_back(signal);
    EXPECT_EQ(
        Wrong(table),
        "schedule: B0 needs a signal that nothing gives; correct its needs");
  }
  // An update without the loss's divisor; reductions without a gradient.
  EXPECT_EQ(Wrong("F0 B0 AR0 UP0"),
            "schedule: these actions can never run: UP0; move or add what they "
            "wait for");
  EXPECT_EQ(Wrong("F0 B0 RU0"),
            "schedule: these actions can never run: RU0; move or add what they "
            "wait for");
}

TEST(ValidateTest, NeedsInACircle) {
  StepTable table = ParsedTable("F0 LR B0 AR0 UP0");
  table.actions[0].needs.push_back({SignalKind::kDone, 2});  // F0 after B0
  EXPECT_EQ(Wrong(table),
            "schedule: these actions can never run: F0 LR B0 AR0 UP0; move or "
            "add what they wait for");
}

// AR1 must not start before AR0, whose bucket waits for AR1. Needs alone have
// no cycle.
TEST(ValidateTest, CollectivesInAnOrderThatCannotBe) {
  StepTable table = ParsedTable("F0 LR B0 AR0 AR1 UP0 UP1");
  table.actions[3].needs.push_back({SignalKind::kBucketReduced, 1});
  EXPECT_EQ(Wrong(table),
            "schedule: these actions can never run: AR0 AR1 UP0 UP1; move or "
            "add what they wait for");
}

}  // namespace
}  // namespace troupe::pipeline
