#include "pipeline/table/add_gathers.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/schedules/step_simulation.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/compute_order.h"
#include "pipeline/table/placement.h"
#include "tests/pipeline/table_simulator.h"

namespace troupe::pipeline {
namespace {

// Returns a chunk of `parts` parts that read a bucket of 64 bytes each.
ChunkReads EachItsBucket(int parts, bool keep = false) {
  ChunkReads chunk;
  for (int part = parts - 1; part >= 0; --part) {
    chunk.buckets.push_back({part, part, 64});
  }
  chunk.keep = keep;
  return chunk;
}

// Returns the table of data parallelism with gathers.
std::string Gathered(int micro_batches, const ChunkReads& chunk,
                     std::int64_t bytes_ahead) {
  const StepTable table =
      AddReductions(DataParallelTable(micro_batches),
                    static_cast<int>(chunk.buckets.size()), {});
  const StepTable made = AddGathers(table, {}, {{chunk}, bytes_ahead});
  EXPECT_EQ(Validate(made), absl::OkStatus());
  EXPECT_EQ(*ParseTable(made.ToString()), made);
  return made.ToString();
}

TEST(AddGathersTest, GathersEachBucketBeforeItsPart) {
  // One ahead of the part that runs.
  EXPECT_EQ(Gathered(1, EachItsBucket(2), 64),
            "GV1 GV0 F0 RL1 LR GV1.1 B0 RL0 AR0 UP0 RL1.1 AR1 UP1");
  EXPECT_EQ(Gathered(1, EachItsBucket(3), 64),
            "GV2 GV1 F0 RL2 GV0 RL1 LR GV1.1 B0 RL0 GV2.1 AR0 UP0 RL1.1 AR1 "
            "UP1 RL2.1 AR2 UP2");
  // None ahead.
  EXPECT_EQ(Gathered(1, EachItsBucket(2), 0),
            "GV1 F0 RL1 GV0 LR B0 RL0 GV1.1 AR0 UP0 RL1.1 AR1 UP1");
}

TEST(AddGathersTest, ReleasesNothingThatFitsAhead) {
  EXPECT_EQ(Gathered(2, EachItsBucket(2), 1000),
            "GV1 GV0 F0 B0 F1 LR B1 RL0 AR0 UP0 RL1 AR1 UP1");
}

TEST(AddGathersTest, KeepsWhatItIsToldToKeep) {
  EXPECT_EQ(Gathered(2, EachItsBucket(2, /*keep=*/true), 0),
            "GV1 F0 GV0 B0 F1 LR B1 RL0 AR0 UP0 RL1 AR1 UP1");
}

TEST(AddGathersTest, ABucketOfSeveralPartsStaysForAll) {
  // Bucket 0 has a parameter of the last part, and one that the first shares.
  ChunkReads chunk;
  chunk.buckets = {{1, 1, 64}, {0, 2, 64}};
  EXPECT_EQ(Gathered(1, chunk, 0),
            "GV1 F0 GV0 RL0 LR B0 GV0.1 RL0.1 AR0 UP0 RL1 AR1 UP1");
}

TEST(AddGathersTest, AnEvaluationGathersToo) {
  const StepTable table = *ParseTable("F0");
  const StepTable made = AddGathers(table, {}, {{EachItsBucket(3)}, 64});
  EXPECT_EQ(made.ToString(), "GV2 GV1 F0 RL2 GV0 RL1 RL0");
  EXPECT_EQ(Validate(made), absl::OkStatus());
}

TEST(AddGathersTest, ReductionsOfASplitBackwardComeBehindIt) {
  const StepTable table = AddReductions(*ParseTable("F0 I0 W0"), 2, {});
  EXPECT_EQ(AddGathers(table, {}, {{EachItsBucket(2)}, 0}).ToString(),
            "GV1 F0 RL1 GV0 LR I0 RL0 GV1.1 RL1.1 W0 AR0 UP0 AR1 UP1");
}

TEST(AddGathersTest, EachMicroBatchIsReducedInItsBackward) {
  ReductionOptions options;
  options.each_micro_batch = true;
  const StepTable table = AddReductions(DataParallelTable(2), 2, options);
  EXPECT_EQ(AddGathers(table, options, {{EachItsBucket(2)}, 0}).ToString(),
            "GV1 F0 RL1 GV0 B0 RL0 GV1.1 AR0 AR1 F1 RL1.1 GV0.1 LR B1 RL0.1 "
            "GV1.2 AR0.1 UP0 RL1.2 AR1.1 UP1");
}

TEST(AddGathersTest, TiedReductionsStayAtTheEnd) {
  ReductionOptions options;
  options.tied = {1};
  const StepTable table = AddReductions(DataParallelTable(1), 2, options);
  EXPECT_EQ(AddGathers(table, options, {{EachItsBucket(2)}, 0}).ToString(),
            "GV1 F0 RL1 GV0 LR B0 RL0 GV1.1 AR0 UP0 RL1.1 TR1 AR1 UP1");
}

TEST(AddGathersTest, TablesThatReadWhatIsNotThereAreRefused) {
  const auto error = [](const std::string& text) {
    return std::string(Validate(*ParseTable(text)).message());
  };
  EXPECT_EQ(error("GV0 F0 RL0 LR B0 AR0 UP0"),
            "schedule: B0 reads bucket 0, which no GV gathers for it; add one, "
            "and an RL after its last use");
  EXPECT_EQ(error("GV0 F0 RL0 LR B0 AR0 UP0 GV0.1 RL0.1"), "");
  EXPECT_EQ(
      error("GV0 GV0.1 F0 RL0 LR B0 RL0.1 AR0 UP0"),
      "schedule: GV0.1 begins before the turn before it has ended; put the "
      "RL of that before it");
  EXPECT_EQ(error("RL0 GV0 F0 LR B0 AR0 UP0"),
            "schedule: RL0 comes before its gather; put the GV before it");
  EXPECT_EQ(error("GV0 F0 LR B0 AR0 UP0"),
            "schedule: GV0 has no release after it; add it");
  EXPECT_EQ(error("GV0 F0 RL0 GV0.2 LR B0 RL0.2 AR0 UP0"),
            "schedule: GV0.2 has no round before it; number rounds from 0");
}

// Walks a table and returns the largest number of bytes that are held at a
// time.
std::int64_t MostHeld(const StepTable& table,
                      const std::vector<ChunkReads>& chunks) {
  std::int64_t held = 0, most = 0;
  for (const Action& action : table.actions) {
    const bool gathers = action.kind == ActionKind::kGatherValues;
    if (!gathers && action.kind != ActionKind::kReleaseValues) continue;
    const std::int64_t bytes = chunks[action.chunk].buckets[action.index].bytes;
    held += gathers ? bytes : -bytes;
    most = std::max(most, held);
  }
  EXPECT_EQ(held, 0) << table.ToString();
  return most;
}

// Returns the largest number of bytes that a part reads.
std::int64_t MostRead(const std::vector<ChunkReads>& chunks) {
  std::int64_t most = 0;
  for (const ChunkReads& chunk : chunks) {
    for (const BucketReads& at : chunk.buckets) {
      for (const int part : {at.first, at.last}) {
        std::int64_t bytes = 0;
        for (const BucketReads& reads : chunk.buckets) {
          if (reads.first <= part && part <= reads.last) bytes += reads.bytes;
        }
        most = std::max(most, bytes);
      }
    }
  }
  return most;
}

class Drawn {
 public:
  explicit Drawn(std::uint64_t seed)
      : draws_(nn::RandomKey(seed, nn::Purpose::kTest),
               {0, 0, nn::HashName("gathers")}) {}
  int Below(int n) { return static_cast<int>(draws_.Below(n)); }

  ChunkReads Chunk() {
    ChunkReads chunk;
    const int buckets = 1 + Below(5), parts = 1 + Below(6);
    for (int k = 0; k < buckets; ++k) {
      const int first = Below(parts), last = first + Below(parts - first);
      chunk.buckets.push_back({first, last, 1 + Below(100)});
    }
    // The buckets of a backward are complete in their order.
    std::sort(chunk.buckets.begin(), chunk.buckets.end(),
              [](const BucketReads& a, const BucketReads& b) {
                return a.first > b.first;
              });
    return chunk;
  }

 private:
  nn::RandomStream draws_;
};

// The compute tables of every schedule, for 2 ranks along pp.
struct Schedule {
  std::string name;
  std::vector<StepTable> tables;
  Placement placement;
};

std::vector<Schedule> AllSchedules(int micro_batches) {
  const int pp = 2;
  std::vector<Schedule> all;
  all.push_back({"gpipe",
                 {GPipeTable(micro_batches), GPipeTable(micro_batches)},
                 LoopedPlacement(pp, 1)});
  all.push_back({"looped gpipe",
                 {GPipeTable(micro_batches, 2), GPipeTable(micro_batches, 2)},
                 LoopedPlacement(pp, 2)});
  all.push_back({"1f1b", *OneForwardOneBackward(pp, micro_batches),
                 LoopedPlacement(pp, 1)});
  return all;
}

TEST(AddGathersTest, EveryScheduleAndPolicyEndsWithinItsMemory) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Drawn drawn(seed);
    for (const Schedule& schedule : AllSchedules(2 + 2 * drawn.Below(3))) {
      SCOPED_TRACE(absl::StrCat(schedule.name, ", seed ", seed));
      const std::int64_t ahead = drawn.Below(3) == 0 ? 0 : drawn.Below(300);
      const bool keep = drawn.Below(4) == 0;
      std::vector<StepTable> tables;
      for (int pp = 0; pp < 2; ++pp) {
        GatherOptions options;
        options.bytes_ahead = ahead;
        std::vector<int> buckets;
        const std::vector<ChunkEnds> ends = EndsAt(schedule.placement, pp);
        for (std::size_t c = 0; c < ends.size(); ++c) {
          options.chunks.push_back(drawn.Chunk());
          options.chunks.back().keep = keep;
          buckets.push_back(
              static_cast<int>(options.chunks.back().buckets.size()));
        }
        const StepTable reduced =
            AddReductions(AddTransfers(schedule.tables[pp], ends), buckets, {});
        tables.push_back(AddGathers(reduced, {}, options));
        const StepTable& made = tables.back();
        ASSERT_EQ(Validate(made), absl::OkStatus()) << made.ToString();
        ASSERT_EQ(*ParseTable(made.ToString()), made);
        if (!keep) {
          ASSERT_LE(MostHeld(made, options.chunks),
                    MostRead(options.chunks) + ahead)
              << made.ToString();
        }
      }
      StepCosts costs;
      costs.stages.resize(schedule.placement.size());
      for (const Dispatch dispatch : {Dispatch::kArrival, Dispatch::kStrict}) {
        EXPECT_EQ(
            SimulateStep(tables, schedule.placement, costs, dispatch).status(),
            absl::OkStatus());
      }
      const Mesh mesh(/*dp=*/2, /*pp=*/2);
      std::vector<StepTable> of_ranks;
      for (int rank = 0; rank < mesh.size(); ++rank) {
        of_ranks.push_back(tables[mesh.CoordsOf(rank).pp]);
        KeepComputeOrder(of_ranks.back());
      }
      EXPECT_EQ(RunTables(mesh, of_ranks, seed, schedule.placement).error, "");
    }
  }
}

}  // namespace
}  // namespace troupe::pipeline
