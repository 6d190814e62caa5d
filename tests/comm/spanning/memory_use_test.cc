#include "comm/spanning/operation/memory_use.h"

#include "gtest/gtest.h"

namespace troupe::comm::internal {
namespace {

using Members = std::vector<int>;

TEST(MemoryUse, IsFreeOnceTasksLinksAndMembersHaveReleasedIt) {
  MemoryUse memory(/*members=*/3, /*self=*/0);
  EXPECT_TRUE(memory.free());
  memory.BeginTask();
  memory.BeginSend(1);
  memory.BeginReceive(2);
  memory.LendToAll();
  EXPECT_EQ(memory.Holders(), (Members{1, 2}));
  memory.EndTask();
  memory.EndSend(1);
  memory.LetGo(1);
  EXPECT_EQ(memory.Holders(), (Members{2}));
  memory.LetGo(2);
  EXPECT_FALSE(memory.free());
  memory.EndReceive(2);
  EXPECT_TRUE(memory.free());
}

TEST(MemoryUse, ALostMemberReceivesAndBorrowsNothingMore) {
  MemoryUse memory(/*members=*/2, /*self=*/0);
  memory.BeginReceive(1);
  memory.LendToAll();
  memory.LendToAll();
  memory.BeginSend(1);
  memory.Lose(1);
  EXPECT_FALSE(memory.receiving_from(1));
  // The link calls OnSent() after it was lost, too.
  EXPECT_FALSE(memory.free());
  memory.EndSend(1);
  EXPECT_TRUE(memory.free());
  memory.LendToAll();
  EXPECT_TRUE(memory.free());
  // A late notification counts nothing twice.
  memory.LetGo(1);
  memory.LetGoAll(1);
  EXPECT_TRUE(memory.free());
}

TEST(MemoryUse, PeersAreNotifiedOnceIfTheyLendOrBorrow) {
  MemoryUse memory(/*members=*/2, /*self=*/0);
  EXPECT_FALSE(memory.TakeLetGoAll());
  memory.ExpectLending();
  memory.BeginReach();
  EXPECT_FALSE(memory.TakeLetGoAll());
  memory.EndReach();
  EXPECT_TRUE(memory.TakeLetGoAll());
  EXPECT_FALSE(memory.TakeLetGoAll());
}

}  // namespace
}  // namespace troupe::comm::internal
