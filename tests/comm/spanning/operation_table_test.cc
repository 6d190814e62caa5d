#include "comm/spanning/operation/operation_table.h"

#include "gtest/gtest.h"

namespace troupe::comm::internal {
namespace {

class OperationTableTest : public testing::Test {
 protected:
  const GroupLayout layout_{{0, 0, 1}, /*process=*/0};
  OperationTable table_{&layout_, /*in_flight_max=*/2};
};

TEST_F(OperationTableTest, RanksJoinTheSameCollectives) {
  const OpPtr first = table_.JoinNext(/*place=*/0);
  EXPECT_EQ(first->seq, 0u);
  EXPECT_EQ(table_.JoinNext(/*place=*/1), first);
  EXPECT_EQ(table_.JoinNext(/*place=*/1)->seq, 1u);
  EXPECT_EQ(table_.joined(0), 1u);
  EXPECT_EQ(table_.joined(1), 2u);
  EXPECT_EQ(table_.Find(0), first);
  EXPECT_EQ(table_.Find(2), nullptr);
}

TEST_F(OperationTableTest, ARankHasAFewInFlight) {
  table_.JoinNext(0);
  EXPECT_TRUE(table_.CheckRoom(0).ok());
  table_.JoinNext(0);
  EXPECT_EQ(table_.CheckRoom(0),
            absl::ResourceExhaustedError(
                "rank 0 has 2 collectives in flight, as many as in_flight_max "
                "allows; the oldest is number 0; wait for it"));
  table_.Erase(0);
  EXPECT_TRUE(table_.CheckRoom(0).ok());
}

TEST_F(OperationTableTest, NotesAreNeitherLateNorTooEarly) {
  EXPECT_TRUE(table_.MayBeAnnounced(0));
  EXPECT_TRUE(table_.MayBeAnnounced(1));
  EXPECT_FALSE(table_.MayBeAnnounced(2));
  for (int place : {0, 1}) table_.JoinNext(place);
  EXPECT_TRUE(table_.MayBeAnnounced(0));
  table_.Erase(0);
  EXPECT_FALSE(table_.MayBeAnnounced(0));
  EXPECT_TRUE(table_.MayBeAnnounced(2));
}

TEST_F(OperationTableTest, AnOperationIsReusedUnlessItIsInUse) {
  OpPtr op = table_.JoinNext(0);
  Operation* const used = op.get();
  table_.Erase(0);
  {
    const OpPtr other = op;
    table_.Recycle(op);
    EXPECT_NE(table_.JoinNext(0).get(), used);
  }
  table_.Recycle(std::move(op));
  const OpPtr again = table_.JoinNext(0);
  EXPECT_EQ(again.get(), used);
  EXPECT_EQ(again->seq, 2u);
}

}  // namespace
}  // namespace troupe::comm::internal
