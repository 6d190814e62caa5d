#include "actors/supervision/save_round.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

ShardSummary Shard(int shard) {
  ShardSummary summary;
  summary.shard = shard;
  return summary;
}

TEST(SaveRoundTest, GoesFromCopiesToFilesToItsEnd) {
  SaveRound round;
  EXPECT_FALSE(round.active());
  round.Begin(/*step=*/100, /*shards=*/2, /*ranks=*/2);
  EXPECT_TRUE(round.SnapshotTaken(100, 1));
  EXPECT_TRUE(round.Opened(100, "folder"));
  EXPECT_FALSE(round.CanWrite()) << "shard 0 is not copied";
  EXPECT_TRUE(round.SnapshotTaken(100, 0));
  EXPECT_TRUE(round.HasSnapshots());
  EXPECT_TRUE(round.CanWrite());
  EXPECT_TRUE(round.ShardSaved(100, Shard(1)));
  EXPECT_FALSE(round.CanCommit());
  EXPECT_EQ(round.ToString(), "1 of 2 shards of step 100 are written, not 0");
  EXPECT_TRUE(round.ShardSaved(100, Shard(0)));
  EXPECT_TRUE(round.CanCommit());
  EXPECT_EQ(round.summaries().size(), 2u);
  round.End();
  EXPECT_FALSE(round.active());
  EXPECT_FALSE(round.CanCommit());
}

TEST(SaveRoundTest, TheFolderMayComeLast) {
  SaveRound round;
  round.Begin(7, 1, 1);
  EXPECT_TRUE(round.SnapshotTaken(7, 0));
  EXPECT_FALSE(round.CanWrite());
  EXPECT_TRUE(round.Opened(7, "folder"));
  EXPECT_TRUE(round.CanWrite());
}

TEST(SaveRoundTest, OldAndDoubleNewsChangeNothing) {
  SaveRound round;
  EXPECT_FALSE(round.SnapshotTaken(0, 0)) << "nothing has begun";
  round.Begin(100, 2, 2);
  EXPECT_FALSE(round.SnapshotTaken(99, 0)) << "of another step";
  EXPECT_FALSE(round.SnapshotTaken(100, 2)) << "no such shard";
  EXPECT_FALSE(round.SnapshotTaken(100, -1));
  EXPECT_TRUE(round.SnapshotTaken(100, 0));
  EXPECT_FALSE(round.SnapshotTaken(100, 0)) << "heard before";
  EXPECT_FALSE(round.HasSnapshots());
  EXPECT_FALSE(round.Opened(99, "other"));
  EXPECT_TRUE(round.Opened(100, "folder"));
  EXPECT_FALSE(round.Opened(100, "again"));
  EXPECT_EQ(round.folder(), "folder");
  EXPECT_TRUE(round.ShardSaved(100, Shard(0)));
  EXPECT_FALSE(round.ShardSaved(100, Shard(0)));
  EXPECT_FALSE(round.ShardSaved(100, Shard(5)));
  round.End();
  EXPECT_FALSE(round.ShardSaved(100, Shard(1))) << "it is over";
}

TEST(SaveRoundTest, RanksWithoutAShardReportToo) {
  SaveRound round;
  round.Begin(/*step=*/100, /*shards=*/1, /*ranks=*/3);
  EXPECT_TRUE(round.Opened(100, "folder"));
  for (int rank : {0, 2}) EXPECT_TRUE(round.SnapshotTaken(100, rank));
  EXPECT_FALSE(round.CanWrite()) << "rank 1 has not reported";
  EXPECT_FALSE(round.ShardSaved(100, Shard(1))) << "there is one shard";
  EXPECT_TRUE(round.SnapshotTaken(100, 1));
  EXPECT_TRUE(round.CanWrite());
}

TEST(SaveRoundTest, AShardIsWrittenOnceAllItsWritersHaveReported) {
  SaveRound round;
  round.Begin(/*step=*/100, /*shards=*/2, /*ranks=*/1, /*writers=*/2);
  EXPECT_TRUE(round.SnapshotTaken(100, 0));
  EXPECT_TRUE(round.Opened(100, "folder"));
  const auto part = [](int shard, int writer) {
    ShardSummary summary = Shard(shard);
    summary.writer = writer, summary.writers = 2;
    return summary;
  };
  EXPECT_FALSE(round.ShardSaved(100, part(0, 2))) << "no such writer";
  EXPECT_FALSE(round.ShardSaved(100, part(0, -1)));
  EXPECT_TRUE(round.ShardSaved(100, part(1, 0)));
  EXPECT_FALSE(round.ShardSaved(100, part(1, 0))) << "heard before";
  EXPECT_TRUE(round.ShardSaved(100, part(1, 1)));
  EXPECT_TRUE(round.ShardSaved(100, part(0, 1)));
  EXPECT_FALSE(round.CanCommit());
  EXPECT_FALSE(round.IsSaved(0, 0));
  EXPECT_EQ(round.ToString(),
            "1 of 2 shards of step 100 are written, not 0 by writers 0");
  EXPECT_TRUE(round.ShardSaved(100, part(0, 0)));
  EXPECT_TRUE(round.CanCommit());
}

}  // namespace
}  // namespace troupe::actors
