// Tables of ranks that hold several chunks: their text, passes, checks, and
// runs of all ranks against each other.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "pipeline/mesh.h"
#include "pipeline/table/placement.h"
#include "pipeline/table/schedule.h"
#include "pipeline/table/table_cursor.h"
#include "tests/pipeline/table_simulator.h"

namespace troupe::pipeline {
namespace {

const Placement kV = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};

std::string WrongOfChunks(absl::string_view text) {
  const absl::StatusOr<StepTable> table = ParseTable(text);
  EXPECT_TRUE(table.ok()) << table.status();
  return std::string(Validate(*table).message());
}

TEST(ChunksTest, TheTextNamesChunksWhereThereAreSeveral) {
  const StepTable table = GPipeTable(/*micro_batches=*/2, /*chunks=*/2);
  EXPECT_EQ(table.ToString(), "0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1");
  EXPECT_EQ(table.chunks(), 2);
  EXPECT_EQ(table.micro_batches(), 2);
  EXPECT_EQ(*ParseTable(table.ToString()), table);
  EXPECT_EQ(GPipeTable(2, 1).ToString(), "F0 F1 B0 B1");
  EXPECT_EQ(ParseTable("F0 12RA3 LR")->ToString(), "0F0 12RA3 LR")
      << "a word without a number is of chunk 0";
  const Action action = {ActionKind::kUpdateBucket, 3, {}, 2};
  EXPECT_EQ(action.ToString(), "2UP3");
}

TEST(ChunksTest, WordsThatAreNoActions) {
  for (const char* word : {"2", "2LR", "1024F0", "-1F0", "2 F0", "2f0", "F",
                           "2F", "2F0x", "99999999999F0", "F1048577", "LR0"}) {
    EXPECT_FALSE(ParseTable(word).ok()) << word;
  }
  EXPECT_EQ(ParseTable("0F0 2LR").status().message(),
            "\"2LR\" is no action; write F0, B0, AR0, ...");
}

TEST(ChunksTest, EachChunkHasItsTransfersAndBuckets) {
  StepTable table = GPipeTable(/*micro_batches=*/1, /*chunks=*/2);
  table = AddTransfers(table, EndsAt(LoopedPlacement(2, 2), /*pp=*/0));
  EXPECT_EQ(table.ToString(), "0F0 0SA0 1RA0 1F0 1SA0 1RG0 1B0 1SG0 0RG0 0B0");
  table = AddReductions(table, /*buckets=*/{1, 2}, {});
  EXPECT_EQ(table.ToString(),
            "0F0 0SA0 1RA0 1F0 1SA0 LR 1RG0 1B0 1SG0 0RG0 0B0 "
            "1AR0 1UP0 1AR1 1UP1 0AR0 0UP0");
  EXPECT_EQ(table.bucket_counts(), (std::vector<int>{1, 2}));
  EXPECT_EQ(table.buckets(), 3);
  EXPECT_EQ(Validate(table), absl::OkStatus());
  EXPECT_EQ(*ParseTable(table.ToString()), table);
}

// Transfers between stages of one rank are a pair like any other.
TEST(ChunksTest, StagesSideBySide) {
  const StepTable table = AddTransfers(GPipeTable(1, 2), EndsAt(kV, /*pp=*/1));
  EXPECT_EQ(table.ToString(),
            "0RA0 0F0 0SA0 1RA0 1F0 1SA0 1RG0 1B0 1SG0 0RG0 0B0 0SG0");
}

TEST(ChunksTest, NeedsStayInTheirChunk) {
  const StepTable table = *ParseTable("0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1 LR");
  const auto needs = [&table](ActionKind kind, int m, int chunk) {
    std::string text;
    for (const Signal& need : table.actions[table.Find(kind, m, chunk)].needs) {
      text += table.actions[need.id].ToString(2) + " ";
    }
    return text;
  };
  EXPECT_EQ(needs(ActionKind::kForward, 1, 1), "1F0 ");
  EXPECT_EQ(needs(ActionKind::kForward, 0, 1), "");
  EXPECT_EQ(needs(ActionKind::kBackward, 1, 0), "0F1 0B0 ");
  EXPECT_EQ(needs(ActionKind::kReduceLoss, 0, 0), "0F0 0F1 1F0 1F1 ");
}

TEST(ChunksTest, SignalsNameTheirChunk) {
  TableCursor cursor(*ParseTable("0F0 1F0 LR 1B0 0B0 1AR0 1UP0 0AR0 0UP0"));
  const auto next = [&cursor] {
    const int i = cursor.NextRunnable(/*busy=*/true);
    return i < 0 ? "-" : cursor.table().actions[i].ToString(2);
  };
  cursor.Give({SignalKind::kBucketReady, 0, /*chunk=*/0});
  EXPECT_EQ(next(), "-") << "one order in a group, over all chunks";
  cursor.Give({SignalKind::kBucketReady, 0, /*chunk=*/1});
  EXPECT_EQ(next(), "1AR0");
  EXPECT_TRUE(cursor.Given({SignalKind::kBucketReady, 0, 1}));
  EXPECT_FALSE(cursor.Given({SignalKind::kBucketReduced, 0, 1}));
  cursor.Give({SignalKind::kBucketReduced, 0, 1});
  EXPECT_FALSE(cursor.Given({SignalKind::kAllReduced}));
  cursor.Give({SignalKind::kBucketReduced, 0, 0});
  EXPECT_TRUE(cursor.Given({SignalKind::kAllReduced}));
}

TEST(ChunksTest, BucketsByChunkMayGiveMoreSignalsThanTheTableNeeds) {
  TableCursor cursor(*ParseTable("0F0 1F0"), std::vector<int>{1, 2});
  cursor.Give({SignalKind::kBucketReady, 1, 1});
  EXPECT_TRUE(cursor.Given({SignalKind::kBucketReady, 1, 1}));
  EXPECT_FALSE(cursor.Given({SignalKind::kBucketReady, 0, 1}));
  EXPECT_FALSE(cursor.Given({SignalKind::kBucketReady, 0, 0}));
}

TEST(ChunksTest, TablesThatCannotRun) {
  EXPECT_EQ(WrongOfChunks("0F0 1F0 1B0 0B0 LR 1AR0 1UP0 0AR0 0UP0"), "");
  EXPECT_EQ(WrongOfChunks("0F0 1F0 1F0"),
            "schedule: 1F0 is there twice; remove one of them");
  EXPECT_EQ(
      WrongOfChunks("0F0 1F0 0B0"),
      "schedule: 1F0 has no backward; add one, or remove those of the others");
  EXPECT_EQ(WrongOfChunks("0F0 0B0 1B0"),
            "schedule: 1B0 has no forward; add it");
  EXPECT_EQ(WrongOfChunks("0F0 2F0"),
            "schedule: micro-batch 0 of 1 of chunk 1 has no forward; add 1F0");
  EXPECT_EQ(WrongOfChunks("0F0 1F0 1F1"),
            "schedule: chunk 1 has 2 micro-batches where chunk 0 has 1");
  EXPECT_EQ(WrongOfChunks("0F0 1F0 0B0 1B0 LR 1AR1 1UP1"),
            "schedule: bucket 0 of 2 of chunk 1 is never reduced; add an AR or "
            "RU for it");
  EXPECT_EQ(WrongOfChunks("0F0 1F0 0B0 1B0 LR 1AR0 1UP0 1RU0"),
            "schedule: bucket 0 of chunk 1 is reduced twice, by AR and by RU; "
            "remove one");
  StepTable table = *ParseTable("0F0 1F0");
  table.actions[0].chunk = 1 << 20;
  EXPECT_EQ(Validate(table).message(),
            "schedule: 1048576F0 has a chunk that must be from 0 to 1023");
  table = *ParseTable("0F0 1F0");
  table.actions[0].needs.push_back({SignalKind::kBucketReady, 0, 1});
  EXPECT_EQ(Validate(table).message(),
            "schedule: 0F0 needs a signal that nothing gives; correct its "
            "needs");
}

std::vector<StepTable> TablesOf(const Placement& placement, const Mesh& mesh,
                                int micro_batches, int chunks) {
  std::vector<StepTable> tables;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const int pp = mesh.CoordOf(rank, kPpAxis);
    const std::vector<int> buckets(chunks, 2);
    tables.push_back(AddReductions(
        AddTransfers(GPipeTable(micro_batches, chunks), EndsAt(placement, pp)),
        buckets, {}));
    EXPECT_EQ(Validate(tables.back()), absl::OkStatus());
  }
  return tables;
}

TEST(ChunksTest, AllRanksRunToTheirEnd) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Mesh mesh(/*dp=*/2, /*pp=*/3);
    const Placement looped = LoopedPlacement(3, 2);
    TableRun run = RunTables(mesh, TablesOf(looped, mesh, 4, 2), seed, looped);
    ASSERT_EQ(run.error, "") << "looped, seed " << seed;
    run = RunTables(Mesh(1, 2), TablesOf(kV, Mesh(1, 2), 3, 2), seed, kV);
    ASSERT_EQ(run.error, "") << "V, seed " << seed;
  }
}

// The simulator can fail: it finds tables of one placement on another.
TEST(ChunksTest, APlacementThatTablesDoNotFit) {
  const Mesh mesh(1, 2);
  const TableRun run = RunTables(mesh, TablesOf(kV, mesh, 1, 2), /*seed=*/0,
                                 LoopedPlacement(/*pp=*/2, /*chunks=*/2));
  EXPECT_NE(run.error, "");
}

// Interleaved 1F1B (Narayanan et al. 2021, arXiv:2104.04473, sec. 2.2) as a
// user's own table. A rank takes pp micro-batches through a chunk before it
// goes on to the next; k counts its forwards, or backwards, over all chunks.
StepTable InterleavedTable(int micro_batches, int pp, int pp_size, int chunks) {
  const int total = micro_batches * chunks;
  const int ahead =
      std::min(total, (pp_size - 1 - pp) * 2 + (chunks - 1) * pp_size);
  StepTable table;
  const auto append = [&](ActionKind kind, int k) {
    const int round = k / (pp_size * chunks), place = k % (pp_size * chunks);
    const int chunk = place / pp_size;
    const bool forward = kind == ActionKind::kForward;
    table.actions.push_back({kind,
                             round * pp_size + place % pp_size,
                             {},
                             forward ? chunk : chunks - 1 - chunk});
  };
  for (int k = 0; k < ahead; ++k) append(ActionKind::kForward, k);
  for (int k = 0; k < total; ++k) {
    if (k + ahead < total) append(ActionKind::kForward, k + ahead);
    append(ActionKind::kBackward, k);
  }
  return table;
}

TEST(ChunksTest, InterleavedOneForwardOneBackward) {
  constexpr int kPp = 2, kChunks = 2, kMicroBatches = 4;
  EXPECT_EQ(InterleavedTable(kMicroBatches, /*pp=*/0, kPp, kChunks).ToString(),
            "0F0 0F1 1F0 1F1 0F2 1B0 0F3 1B1 1F2 0B0 1F3 0B1 1B2 1B3 0B2 0B3");
  const Placement looped = LoopedPlacement(kPp, kChunks);
  std::vector<StepTable> tables;
  for (int pp = 0; pp < kPp; ++pp) {
    tables.push_back(AddReductions(
        AddTransfers(InterleavedTable(kMicroBatches, pp, kPp, kChunks),
                     EndsAt(looped, pp)),
        {1, 2}, {}));
    EXPECT_EQ(Validate(tables.back()), absl::OkStatus());
  }
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const TableRun run = RunTables(Mesh(1, kPp), tables, seed, looped);
    ASSERT_EQ(run.error, "") << "seed " << seed << "\n" << ToGrid(tables);
  }
}

}  // namespace
}  // namespace troupe::pipeline
