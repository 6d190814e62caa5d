// The named schedules: their pictures, the lengths of their bubbles and their
// memory as their papers have them, and runs under seeds.

#include "pipeline/schedules/schedules.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipeline/schedules/step_simulation.h"
#include "pipeline/table/activation_bound.h"
#include "tests/base/seeds.h"
#include "tests/pipeline/table_simulator.h"

namespace troupe::pipeline {
namespace {

StepCosts Equal(int stages, StageCosts costs = {}) {
  StepCosts all;
  all.stages.assign(stages, costs);
  return all;
}

SimulatedStep Simulated(const Tables& tables, const Placement& placement,
                        const StepCosts& costs, Dispatch dispatch) {
  absl::StatusOr<SimulatedStep> step =
      SimulateStep(tables, placement, costs, dispatch);
  EXPECT_TRUE(step.ok()) << step.status() << "\n" << ToGrid(tables);
  return step.ok() ? *std::move(step) : SimulatedStep();
}

// Returns the time in which a rank does not compute.
double BubbleOf(const SimulatedStep& step) {
  return step.seconds * step.bubble;
}

TEST(SchedulesTest, LookLikeThis) {
  EXPECT_EQ(ToGrid(*GPipe(2, 3)),
            "rank 0: F0 F1 F2 B0 B1 B2\nrank 1: F0 F1 F2 B0 B1 B2\n");
  EXPECT_EQ(ToGrid(*OneForwardOneBackward(3, 4)),
            "rank 0: F0 F1 F2 B0 F3 B1 B2 B3\n"
            "rank 1: F0 F1 B0 F2 B1 F3 B2 B3\n"
            "rank 2: F0 B0 F1 B1 F2 B2 F3 B3\n");
  EXPECT_EQ(ToGrid(*InterleavedOneForwardOneBackward(2, 4, 2)),
            "rank 0: 0F0 0F1 1F0 1F1 0F2 1B0 0F3 1B1 1F2 0B0 1F3 0B1 1B2 1B3 "
            "0B2 0B3\n"
            "rank 1: 0F0 0F1 1F0 1B0 1F1 1B1 0F2 0B0 0F3 0B1 1F2 1B2 1F3 1B3 "
            "0B2 0B3\n");
  EXPECT_EQ(ToGrid(*BreadthFirst(1, 2, 2)),
            "rank 0: 0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1\n");
  EXPECT_EQ(ToGrid(*ZeroBubbleH1(3, 4)),
            "rank 0: F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3\n"
            "rank 1: F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3\n"
            "rank 2: F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3\n");
  EXPECT_EQ(ToGrid(*ZeroBubbleH2(2, 4)),
            "rank 0: F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3\n"
            "rank 1: F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3\n");
  EXPECT_EQ(ToGrid(*ZeroBubbleV(2, 3)),
            "rank 0: 0F0 0F1 0F2 1F0 1I0 1W0 1F1 1I1 1W1 0I0 0W0 1F2 1I2 1W2 "
            "0I1 0W1 0I2 0W2\n"
            "rank 1: 0F0 1F0 0F1 1F1 1I0 1W0 0F2 0I0 0W0 1F2 1I1 1W1 0I1 1I2 "
            "0I2 0W1 1W2 0W2\n");
}

struct Sizes {
  int pp, micro_batches, chunks;
};

// Returns sizes that the schedule takes.
std::vector<Sizes> SizesOf(const NamedSchedule& schedule) {
  std::vector<Sizes> sizes;
  for (const int pp : {1, 2, 3, 4, 8}) {
    for (const int m : {pp, 2 * pp, 3 * pp, 4 * pp}) {
      const int chunks = schedule.chunks > 0 ? schedule.chunks : 2;
      if (schedule.name == "dualpipe_v" && m < 2 * pp) continue;
      sizes.push_back({pp, m, chunks});
    }
  }
  return sizes;
}

TEST(SchedulesTest, AllHaveWhatAStepNeeds) {
  for (const NamedSchedule& schedule : NamedSchedules()) {
    for (const Sizes& size : SizesOf(schedule)) {
      const auto tables =
          schedule.tables(size.pp, size.micro_batches, size.chunks);
      ASSERT_TRUE(tables.ok()) << schedule.name << ": " << tables.status();
      ASSERT_EQ(tables->size(), size.pp);
      for (const StepTable& table : *tables) {
        EXPECT_EQ(Validate(table), absl::OkStatus())
            << schedule.name << ": " << table.ToString();
        EXPECT_EQ(table.micro_batches(), size.micro_batches) << schedule.name;
        EXPECT_EQ(table.chunks(), size.chunks) << schedule.name;
      }
    }
  }
}

TEST(SchedulesTest, BothDispatchesEndAndArrivalIsNoLonger) {
  for (const NamedSchedule& schedule : NamedSchedules()) {
    for (const Sizes& size : SizesOf(schedule)) {
      const Tables tables =
          *schedule.tables(size.pp, size.micro_batches, size.chunks);
      const Placement placement = PlacementFor(schedule, size.pp, size.chunks);
      const StepCosts costs = Equal(size.pp * size.chunks);
      const SimulatedStep strict =
          Simulated(tables, placement, costs, Dispatch::kStrict);
      const SimulatedStep arrival =
          Simulated(tables, placement, costs, Dispatch::kArrival);
      EXPECT_LE(arrival.seconds, strict.seconds)
          << schedule.name << " pp " << size.pp << " m " << size.micro_batches;
      EXPECT_LE(arrival.activations_max(), strict.activations_max())
          << schedule.name;
    }
  }
}

TEST(SchedulesTest, BubblesAreThoseOfThePapers) {
  constexpr double kF = 1, kI = 1.25, kW = 0.75;
  const StageCosts costs = {kF, kI, kW, 1};
  for (const int p : {2, 3, 4, 8}) {
    const int m = 3 * p;
    const auto bubble = [&](const absl::StatusOr<Tables>& tables, int chunks) {
      StageCosts part = costs;
      part.forward /= chunks;
      part.inputs /= chunks;
      part.weights /= chunks;
      return BubbleOf(Simulated(*tables, LoopedPlacement(p, chunks),
                                Equal(p * chunks, part), Dispatch::kStrict));
    };
    const double all = (p - 1) * (kF + kI + kW);
    EXPECT_NEAR(bubble(GPipe(p, m), 1), all, 1e-9);
    EXPECT_NEAR(bubble(OneForwardOneBackward(p, m), 1), all, 1e-9);
    EXPECT_NEAR(bubble(InterleavedOneForwardOneBackward(p, m, 2), 2), all / 2,
                1e-9);
    EXPECT_NEAR(bubble(BreadthFirst(p, m, 2), 2), all / 2, 1e-9);
  }
}

// The three parts of each stage take equally long.
TEST(SchedulesTest, ZeroBubbles) {
  for (const int p : {1, 2, 3, 4, 8}) {
    const int m = 3 * p;
    const auto simulated = [&](const absl::StatusOr<Tables>& tables,
                               const Placement& placement) {
      return Simulated(*tables, placement,
                       Equal(static_cast<int>(placement.size())),
                       Dispatch::kStrict);
    };
    // Returns the largest bubble between a rank's first action and its last.
    const auto within = [](const SimulatedStep& step) {
      double most = 0;
      for (const SimulatedRank& rank : step.ranks) {
        const double span =
            rank.actions.back().end - rank.actions.front().begin;
        most = std::max(most, span - rank.busy);
      }
      return most;
    };
    const SimulatedStep h1 =
        simulated(ZeroBubbleH1(p, m), LoopedPlacement(p, 1));
    EXPECT_NEAR(BubbleOf(h1), p - 1, 1e-9);
    EXPECT_NEAR(within(simulated(ZeroBubbleH2(p, m), LoopedPlacement(p, 1))), 0,
                1e-9);
    EXPECT_NEAR(within(simulated(ZeroBubbleV(p, m), VPlacement(p))), 0, 1e-9);
    const Placement v = VPlacement(p);
    // The unit is a chunk's F: 1f1b's bubble has 6 of them from rank to rank.
    const double classic = 6 * (p - 1);
    EXPECT_LE(BubbleOf(simulated(DualPipeV(p, m), v)), p - 1 + 1e-9);
    EXPECT_LE(BubbleOf(simulated(VHalf(p, m), v)), 0.6 * classic + 1e-9);
    EXPECT_LE(BubbleOf(simulated(VMin(p, m), v)), 0.65 * classic + 1e-9);
  }
}

TEST(SchedulesTest, RanksKeepNoMoreThanTheyMay) {
  const auto most = [](const absl::StatusOr<Tables>& tables) {
    int all = 0;
    for (const StepTable& table : *tables) {
      all = std::max(all, MostActivations(table));
    }
    return all;
  };
  for (const int p : {1, 2, 3, 4, 8, 16}) {
    const int m = 4 * p;
    EXPECT_EQ(most(GPipe(p, m)), m);
    EXPECT_EQ(most(OneForwardOneBackward(p, m)), p);
    EXPECT_EQ(most(InterleavedOneForwardOneBackward(p, m, 2)), 3 * p - 1);
    EXPECT_EQ(most(BreadthFirst(p, m, 2)), 2 * m);
    EXPECT_LE(most(ZeroBubbleH1(p, m)), p);
    EXPECT_LE(most(ZeroBubbleH2(p, m)), 2 * p - 1);
    EXPECT_LE(most(ZeroBubbleV(p, m)), 2 * p);
    EXPECT_LE(most(DualPipeV(p, m)), 2 * p + 1);
    EXPECT_LE(most(VHalf(p, m)), VHalfBound(p));
    EXPECT_LE(most(VMin(p, m)), VMinBound(p));
  }
}

// Runs with messages in any order: the seed decides how slow each link and each
// stage is. 10,000 seeds of each schedule: TROUPE_SIM_TIMES=200.
TEST(SchedulesTest, AllRanksEndUnderEverySeedAndKeepTheBound) {
  for (const NamedSchedule& schedule : NamedSchedules()) {
    const int chunks = schedule.chunks > 0 ? schedule.chunks : 2;
    for (const int pp : {2, 3, 4}) {
      const int m = 2 * pp;
      const Placement placement = PlacementFor(schedule, pp, chunks);
      Tables tables = *schedule.tables(pp, m, chunks);
      std::vector<int> bounds;
      for (int rank = 0; rank < pp; ++rank) {
        StepTable& table = tables[rank];
        bounds.push_back(MostActivations(table));
        table = AddReductions(AddTransfers(table, EndsAt(placement, rank)),
                              std::vector<int>(chunks, 1), {});
        BoundActivations(table);
      }
      for (const std::uint64_t seed : Seeds(50)) {
        const TableRun run =
            RunTables(Mesh(/*dp=*/1, pp), tables, seed, placement);
        ASSERT_EQ(run.error, "") << schedule.name << ", seed " << seed;
        for (int rank = 0; rank < pp; ++rank) {
          ASSERT_LE(run.in_flight_max[rank], bounds[rank])
              << schedule.name << ", seed " << seed;
        }
      }
    }
  }
}

TEST(SchedulesTest, SizesThatAScheduleDoesNotTake) {
  EXPECT_EQ(InterleavedOneForwardOneBackward(4, 9, 2).status().message(),
            "schedule: interleaved 1F1B takes micro-batches in rounds of 4 or "
            "more, all alike: 9 micro-batches make no 2 equal rounds; "
            "make 8");
  EXPECT_EQ(DualPipeV(4, 7).status().message(),
            "schedule: dualpipe_v takes at least 2 pp = 8 micro-batches, and "
            "there are 7; make them smaller");
  EXPECT_EQ(GPipe(0, 1).status().message(),
            "schedule: pp = 0, micro-batches = 1, chunks = 1: each must be "
            "at least 1, and chunks at most 1024");
  EXPECT_EQ(ZeroBubbleV(2, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SchedulesTest, APlanTakesThemByName) {
  PlanOptions options;
  options.mesh = Mesh(/*dp=*/2, /*pp=*/2);
  options.global_batch_size = 32;
  options.micro_batch_size = 4;
  ASSERT_EQ(SetSchedule("zb_v", options), absl::OkStatus());
  EXPECT_EQ(options.placement, VPlacement(2));
  EXPECT_EQ(options.schedule(options.mesh, 1, 4).micro_batches(), 4);
  EXPECT_EQ(SetSchedule("2f2b", options).message(),
            "schedule: there is no \"2f2b\"; choose one of gpipe, 1f1b, "
            "interleaved_1f1b, breadth_first, zb_h1, zb_h2, zb_v, dualpipe_v, "
            "v_half, v_min");
  EXPECT_EQ(SetTables({}, options).message(),
            "schedule: there are 0 tables where the mesh has pp = 2");
}

}  // namespace
}  // namespace troupe::pipeline
