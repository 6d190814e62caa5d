#include "pipeline/cut_search.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "pipeline/schedules/schedules.h"

namespace troupe::pipeline {
namespace {

UnitCosts Unit(int number, double forward, double backward, double held,
               double activation) {
  UnitCosts unit;
  unit.path = absl::StrCat(number);
  unit.costs = {forward, backward / 2, backward / 2, activation};
  unit.held_bytes = held;
  return unit;
}

// Units of small numbers, so that sums are exact and often equal.
ModelCosts Random(int units, nn::RandomStream& draws) {
  ModelCosts costs;
  for (int i = 0; i < units; ++i) {
    costs.units.push_back(Unit(i, static_cast<double>(draws.Below(4)),
                               static_cast<double>(2 * draws.Below(5)),
                               static_cast<double>(draws.Below(7)),
                               static_cast<double>(draws.Below(3))));
  }
  return costs;
}

struct Ranks {
  double seconds = 0, bytes = 0;  // the largest
};

// Computes the ranks' work for stages that begin with these units, by hand.
Ranks RanksOf(const ModelCosts& costs, const CutOptions& options,
              const std::vector<int>& begins) {
  std::vector<double> seconds(options.placement.size()),
      bytes(options.placement.size());
  int stage = 0;
  for (int i = 0; i < static_cast<int>(costs.units.size()); ++i) {
    const UnitCosts& unit = costs.units[i];
    stage += stage < static_cast<int>(begins.size()) && begins[stage] == i;
    const int pp = options.placement[stage].pp;
    const int alive = options.under_way.empty() ? 1 : options.under_way[stage];
    seconds[pp] +=
        options.micro_batches *
            (unit.costs.forward + unit.costs.inputs + unit.costs.weights) +
        unit.costs.update;
    bytes[pp] += unit.held_bytes + alive * unit.costs.activation;
  }
  return {*std::max_element(seconds.begin(), seconds.end()),
          *std::max_element(bytes.begin(), bytes.end())};
}

// Tries all cuts.
void ForAllCuts(int units, int cuts, int from, std::vector<int>& begins,
                const std::function<void()>& visit) {
  if (static_cast<int>(begins.size()) == cuts) return visit();
  for (int i = from; i < units; ++i) {
    begins.push_back(i);
    ForAllCuts(units, cuts, i + 1, begins, visit);
    begins.pop_back();
  }
}

Ranks BestOf(const ModelCosts& costs, const CutOptions& options) {
  Ranks best = {1e9, 1e9};
  double least_bytes = 1e9;
  std::vector<int> begins;
  ForAllCuts(static_cast<int>(costs.units.size()),
             static_cast<int>(options.placement.size()) - 1, 1, begins, [&] {
               const Ranks ranks = RanksOf(costs, options, begins);
               least_bytes = std::min(least_bytes, ranks.bytes);
               if (ranks.bytes <= options.memory_limit) {
                 best.seconds = std::min(best.seconds, ranks.seconds);
               }
             });
  best.bytes = least_bytes;
  return best;
}

TEST(CutSearchTest, IsTheBestOfAllCuts) {
  nn::RandomStream draws(nn::RandomKey(1, nn::Purpose::kTest), {});
  for (const Placement& placement :
       {LoopedPlacement(1, 1), LoopedPlacement(3, 1), LoopedPlacement(2, 2),
        LoopedPlacement(3, 2), LoopedPlacement(2, 3), VPlacement(2),
        VPlacement(3)}) {
    for (int round = 0; round < 12; ++round) {
      const ModelCosts costs = Random(10, draws);
      CutOptions options;
      options.placement = placement;
      options.micro_batches = 4;
      for (std::size_t i = 0; i < placement.size(); ++i) {
        options.under_way.push_back(1 + static_cast<int>(draws.Below(4)));
      }
      if (round % 2 != 0)
        options.memory_limit = 14 + static_cast<double>(draws.Below(16));
      const Ranks best = BestOf(costs, options);
      const auto found = FindCuts(costs, options);
      if (best.seconds == 1e9) {
        EXPECT_EQ(found.status().code(), absl::StatusCode::kResourceExhausted)
            << found.status();
        EXPECT_GT(best.bytes, options.memory_limit);
        continue;
      }
      ASSERT_TRUE(found.ok()) << found.status();
      std::vector<int> begins;
      for (const Cut& cut : found->cuts) {
        begins.push_back(std::stoi(std::get<std::string>(cut.at)));
      }
      ASSERT_EQ(begins.size() + 1, placement.size());
      const Ranks ranks = RanksOf(costs, options, begins);
      EXPECT_EQ(ranks.seconds, best.seconds) << round;
      EXPECT_EQ(found->rank_seconds, ranks.seconds);
      EXPECT_EQ(found->rank_bytes, ranks.bytes);
      EXPECT_LE(ranks.bytes, options.memory_limit);
    }
  }
}

TEST(CutSearchTest, SaysHowMuchIsMissing) {
  ModelCosts costs;
  for (int i = 0; i < 4; ++i) {
    costs.units.push_back(Unit(i, 1, 2, /*held=*/1024, /*activation=*/512));
  }
  CutOptions options;
  options.placement = LoopedPlacement(2, 1);
  options.under_way = {4, 1};
  options.memory_limit = 4096;
  EXPECT_EQ(FindCuts(costs, options).status(),
            absl::ResourceExhaustedError(
                "no cuts keep what a rank holds within 4 KiB: at best, pp 1 "
                "holds 4.5 KiB, which is 512 bytes more; raise the limit, or "
                "take more stages"));
  // Rank 0 keeps four micro-batches, so it takes fewer layers than is fair.
  options.memory_limit = 5 << 10;
  const auto found = FindCuts(costs, options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->cuts, (std::vector<Cut>{"1"}));
}

TEST(CutSearchTest, RefusesWhatItDoesNotKnow) {
  ModelCosts costs;
  costs.units.resize(3);
  CutOptions options;
  options.placement = LoopedPlacement(4, 1);
  EXPECT_EQ(FindCuts(costs, options).status().message(),
            "the model has 3 layers in Sequentials, too few for 4 stages; "
            "take fewer");
  options.placement = {{1, 0}, {0, 0}};
  EXPECT_EQ(FindCuts(costs, options).status().message(),
            "CutOptions.placement must be a LoopedPlacement() or a "
            "VPlacement(); give the cuts of others by hand");
}

// The search is fast for a model of many layers over many ranks.
TEST(CutSearchTest, LargeModels) {
  nn::RandomStream draws(nn::RandomKey(2, nn::Purpose::kTest), {});
  ModelCosts costs = Random(60, draws);
  for (UnitCosts& unit : costs.units) unit.costs.forward += 20;
  for (const Placement& placement :
       {LoopedPlacement(16, 1), LoopedPlacement(8, 2), VPlacement(8)}) {
    CutOptions options;
    options.placement = placement;
    const auto found = FindCuts(costs, options);
    ASSERT_TRUE(found.ok()) << found.status();
    double all = 0;
    for (const UnitCosts& unit : costs.units) {
      all += unit.costs.forward + unit.costs.inputs + unit.costs.weights;
    }
    const int pp = placement.size() == 16 && placement[8].chunk == 0 ? 16 : 8;
    EXPECT_GE(found->rank_seconds, all / pp);
    EXPECT_LT(found->rank_seconds, 1.35 * all / pp);
  }
}

TEST(CutSearchTest, StagesAreSumsOfUnits) {
  ModelCosts costs;
  costs.transfer = 0.5;
  for (int i = 0; i < 4; ++i) {
    costs.units.push_back(Unit(i, 1, 2, 8, 4));
    costs.units.back().costs.update = i;
  }
  costs.units[2].path = "features.0";
  costs.units[3].path = "features.1";
  costs.units[3].costs.backward = 1.5;
  // A cut may name what the unit begins.
  const StepCosts stages = CostsOfStages(costs, {"features"});
  ASSERT_EQ(stages.stages.size(), 2u);
  EXPECT_EQ(stages.transfer, 0.5);
  EXPECT_EQ(stages.stages[0].forward, 2);
  EXPECT_EQ(stages.stages[0].update, 1);
  EXPECT_EQ(stages.stages[1].TimeOf(ActionKind::kBackward), 3.5);
  EXPECT_EQ(stages.stages[1].inputs, 2);
  EXPECT_EQ(stages.stages[1].held, 16);
  EXPECT_EQ(stages.stages[1].activation, 8);
}

TEST(CutSearchTest, MicroBatchesUnderWay) {
  EXPECT_EQ(MostUnderWay(*OneForwardOneBackward(4, 8), LoopedPlacement(4, 1)),
            (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(MostUnderWay(*GPipe(2, 8), LoopedPlacement(2, 1)),
            (std::vector<int>{8, 8}));
}

}  // namespace
}  // namespace troupe::pipeline
