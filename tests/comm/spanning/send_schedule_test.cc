#include "comm/spanning/plan/send_schedule.h"

#include <vector>

#include "gtest/gtest.h"

namespace troupe::comm::internal {
namespace {

constexpr std::int64_t kPieceElements = 16;

TransferSettings Settings(int members) {
  TransferSettings settings;
  settings.eager_bytes.assign(members, 0);
  settings.piece_bytes = kPieceElements * sizeof(float);
  settings.two_step = members > 2;
  return settings;
}

// Plans an all-reduce of `pieces` pieces. Of two processes each computes all,
// of more an equal share.
TransferPlan Plan(const GroupLayout& layout, std::int64_t pieces) {
  const Block block{Block::kAll, Block::kAll, pieces * kPieceElements};
  return TransferPlan(layout, {block}, sizeof(float),
                      Settings(layout.members()));
}

TEST(SendSchedule, BeginsWithTheNextMemberAndTakesTurns) {
  const GroupLayout layout({0, 1, 2}, /*process=*/1);
  const TransferPlan plan = Plan(layout, 6);
  SendSchedule schedule;
  schedule.Make(layout, plan);
  // Pieces 0 and 1 are computed by member 0, 2 and 3 here, 4 and 5 by member 2.
  EXPECT_EQ(schedule.pieces(), (std::vector<int>{4, 0, 5, 1}));
  for (int piece : {4, 0, 5, 1}) {
    ASSERT_FALSE(schedule.empty());
    EXPECT_TRUE(schedule.MayGo());
    EXPECT_EQ(schedule.TakeNext(), piece);
  }
  EXPECT_TRUE(schedule.empty());
}

TEST(SendSchedule, AWindowOpensWithCredits) {
  const GroupLayout layout({0, 1}, /*process=*/0);
  const TransferPlan plan = Plan(layout, 66);
  SendSchedule schedule;
  schedule.Make(layout, plan);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_FALSE(schedule.TakeCredit(/*member=*/1)) << "nothing was sent yet";
    int sent = 0;
    for (; schedule.MayGo(); ++sent) schedule.TakeNext();
    EXPECT_EQ(sent, 64);
    // The last 64 pieces need no credit.
    for (int more = 0; more < 2; ++more) {
      EXPECT_FALSE(schedule.MayGo());
      EXPECT_TRUE(schedule.TakeCredit(/*member=*/1));
      EXPECT_TRUE(schedule.MayGo());
      schedule.TakeNext();
    }
    EXPECT_TRUE(schedule.empty());
    EXPECT_FALSE(schedule.TakeCredit(/*member=*/1));
    schedule.Restart();
  }
}

TEST(SendSchedule, GivesAsManyCreditsAsThePeerExpects) {
  const GroupLayout layout({0, 1}, /*process=*/0);
  const TransferPlan plan = Plan(layout, 66);
  SendSchedule schedule;
  schedule.Make(layout, plan);
  int given = 0;
  for (int i = 0; i < plan.pieces(); ++i) {
    if (schedule.GiveCredit(i, /*member=*/1)) ++given;
  }
  EXPECT_EQ(given, 2);
}

}  // namespace
}  // namespace troupe::comm::internal
