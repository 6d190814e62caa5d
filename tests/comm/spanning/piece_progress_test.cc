#include "comm/spanning/operation/piece_progress.h"

#include "gtest/gtest.h"

namespace troupe::comm::internal {
namespace {

constexpr int kValue = PieceProgress::kValue;

TEST(PieceProgress, IsReadyOnceItsFramesHaveArrived) {
  StagingPool pool(/*kept_bytes_max=*/1 << 10);
  PieceProgress piece;
  piece.Reset(/*frames=*/2, /*nodes=*/3);
  char* const buffer = piece.Keep(pool.Take(64));
  piece.Place(/*node=*/1, /*member=*/4, buffer);
  EXPECT_EQ(piece.Data(1), buffer);
  EXPECT_EQ(piece.Data(2), nullptr);
  EXPECT_TRUE(piece.Receiving(1, /*member=*/4));
  EXPECT_FALSE(piece.Receiving(1, /*member=*/5));
  EXPECT_FALSE(piece.Receiving(/*node=*/3, /*member=*/4));
  piece.Arrive(1);
  EXPECT_FALSE(piece.Receiving(1, /*member=*/4));
  EXPECT_FALSE(piece.TakeReady());
  const char note[] = "sum";
  piece.AddFromNote(/*node=*/2, /*member=*/5, note);
  EXPECT_EQ(piece.Data(2), note);
  EXPECT_TRUE(piece.TakeReady());
  EXPECT_FALSE(piece.TakeReady());
}

TEST(PieceProgress, WaitsUntilItsOwnPartsAreSent) {
  PieceProgress piece;
  piece.Reset(/*frames=*/0, /*nodes=*/0);
  piece.ExpectParts();
  EXPECT_FALSE(piece.TakeReady());
  piece.SetSent();
  piece.BeginSend();
  piece.BeginSend();
  EXPECT_FALSE(piece.EndSend());
  EXPECT_FALSE(piece.TakeReady());
  EXPECT_TRUE(piece.EndSend());
  EXPECT_TRUE(piece.TakeReady());
}

TEST(PieceProgress, FindsSumsOfNodes) {
  StagingPool pool(/*kept_bytes_max=*/1 << 10);
  PieceProgress::Sums sums;
  sums.emplace_back(5, pool.Take(64));
  const char* const sum = sums.front().second.data();
  PieceProgress piece;
  piece.SetParts(std::move(sums));
  EXPECT_EQ(piece.Part(5), sum);
  EXPECT_EQ(piece.Part(4), nullptr);
  piece.Finish();
  EXPECT_EQ(piece.Part(5), nullptr);
}

TEST(PieceProgress, IsAsNewAfterReset) {
  PieceProgress piece;
  piece.Reset(/*frames=*/1, /*nodes=*/0);
  const char value[] = "value";
  piece.AddFromNote(kValue, /*member=*/1, value);
  ASSERT_TRUE(piece.TakeReady());
  piece.BeginForward();
  piece.Finish();
  piece.Reset(/*frames=*/1, /*nodes=*/0);
  EXPECT_FALSE(piece.forwarding());
  EXPECT_EQ(piece.Data(kValue), nullptr);
  EXPECT_FALSE(piece.TakeReady());
  piece.Place(kValue, /*member=*/1, value);
  piece.Arrive(kValue);
  EXPECT_TRUE(piece.TakeReady());
}

}  // namespace
}  // namespace troupe::comm::internal
