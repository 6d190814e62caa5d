#include "pipeline/table/signal_waiters.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two chunks of one bucket each: the actions need both buckets, and others.
StepTable Table() {
  StepTable table;
  table.actions.resize(4);
  for (int i = 0; i < 4; ++i) table.actions[i].chunk = i % 2;
  table.actions[0].needs = {};
  table.actions[1].needs = {{SignalKind::kDone, 0}};
  table.actions[2].needs = {{SignalKind::kDone, 0},
                            {SignalKind::kBucketReady, 0, /*chunk=*/1}};
  table.actions[3].needs = {{SignalKind::kBucketReady, 0, /*chunk=*/1},
                            {SignalKind::kAllReduced}};
  return table;
}

TEST(SignalWaitersTest, ListsActionsInTableOrder) {
  const SignalWaiters waiters(Table(), {2, 1});
  const auto of = [&](const Signal& signal) {
    return waiters.Of(waiters.SlotOf(signal));
  };
  EXPECT_THAT(of({SignalKind::kDone, 0}), ElementsAre(1, 2));
  EXPECT_THAT(of({SignalKind::kDone, 3}), IsEmpty());
  EXPECT_THAT(of({SignalKind::kBucketReady, 0, 1}), ElementsAre(2, 3));
  EXPECT_THAT(of({SignalKind::kBucketReady, 0, 0}), IsEmpty());
  EXPECT_THAT(of({SignalKind::kBucketReduced, 0, 1}), IsEmpty());
  EXPECT_THAT(of({SignalKind::kAllReduced}), ElementsAre(3));
  EXPECT_THAT(of({SignalKind::kLossReduced}), IsEmpty());
}

TEST(SignalWaitersTest, EachSignalHasASlotOfItsOwn) {
  const SignalWaiters waiters(Table(), {2, 1});
  EXPECT_EQ(waiters.buckets(), 3);
  std::set<int> slots;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(waiters.SlotOf({SignalKind::kDone, i}), i);
    slots.insert(i);
  }
  for (SignalKind kind : {SignalKind::kBucketReady, SignalKind::kBucketReleased,
                          SignalKind::kBucketReduced}) {
    slots.insert(waiters.SlotOf({kind, 0, 0}));
    slots.insert(waiters.SlotOf({kind, 1, 0}));
    slots.insert(waiters.SlotOf({kind, 0, 1}));
  }
  for (SignalKind kind : {SignalKind::kAllReduced, SignalKind::kLossReduced,
                          SignalKind::kStepAsked}) {
    slots.insert(waiters.SlotOf({kind}));
  }
  EXPECT_EQ(slots.size(), 16u);
  EXPECT_EQ(*slots.rbegin(), waiters.num_slots() - 1);
}

}  // namespace
}  // namespace troupe::pipeline
