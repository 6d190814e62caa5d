// Schedules from a building block: the actions of one micro-batch, repeated at
// an interval as long as a rank's work in the block (Qi et al. 2024,
// arXiv:2405.15362, sec. 3). A rank holds as many activations as the time for
// which a block keeps them, divided by this interval.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "pipeline/schedules/producer.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/schedules/step_simulation.h"

namespace troupe::pipeline {
namespace {

// A block has F, I and W of each of a V's two chunks, all equally long.
constexpr int kPeriod = 6;

// The steps of a block from one rank to the next, on its four legs: forwards
// down and up the V, gradients of inputs down and up again.
struct Legs {
  int forward_down, forward_up, back_down, back_up;
};

// Times at which a rank begins the actions of micro-batch 0.
struct BlockRow {
  std::array<int, 2> forward, inputs, weights;  // indexed by chunk

  int& Of(ActionKind kind, int chunk) {
    return kind == ActionKind::kForward          ? forward[chunk]
           : kind == ActionKind::kBackwardInputs ? inputs[chunk]
                                                 : weights[chunk];
  }
};

// Places gradients of weights where the rank is free. Returns false if other
// actions collide.
bool FillRow(BlockRow& row) {
  std::array<bool, kPeriod> taken = {};
  const auto take = [&taken](int time) {
    return !std::exchange(taken[time % kPeriod], true);
  };
  for (const int chunk : {0, 1}) {
    if (!take(row.forward[chunk]) || !take(row.inputs[chunk])) return false;
  }
  for (const int chunk : {1, 0}) {
    int& weights = row.weights[chunk];
    for (weights = row.inputs[chunk] + 1; !take(weights); ++weights) {
    }
  }
  return true;
}

// Returns the block with the shortest turns between two legs.
std::vector<BlockRow> MakeBlock(int pp, const Legs& legs) {
  std::vector<BlockRow> block(pp);
  // Tries every set of turns that adds up to `sum`, the shortest first.
  for (int sum = 3;; ++sum) {
    TROUPE_CHECK(sum <= 3 * kPeriod, "some turns fit into a period");
    for (int first = 1; first < sum - 1; ++first) {
      for (int second = 1; first + second < sum; ++second) {
        const int third = sum - first - second;
        const int up = (pp - 1) * legs.forward_down + first;
        const int down = up + (pp - 1) * legs.forward_up + second;
        const int last = down + (pp - 1) * legs.back_down + third;
        bool fits = true;
        for (int rank = 0; rank < pp && fits; ++rank) {
          const int behind = pp - 1 - rank;
          block[rank].forward = {rank * legs.forward_down,
                                 up + behind * legs.forward_up};
          block[rank].inputs = {last + behind * legs.back_up,
                                down + rank * legs.back_down};
          fits = FillRow(block[rank]);
        }
        if (fits) return block;
      }
    }
  }
}

Tables Repeat(std::vector<BlockRow>& block, int micro_batches) {
  Tables tables;
  for (BlockRow& row : block) {
    std::vector<std::pair<int, Action>> timed;
    for (int m = 0; m < micro_batches; ++m) {
      for (const ActionKind kind :
           {ActionKind::kForward, ActionKind::kBackwardInputs,
            ActionKind::kBackwardWeights}) {
        for (const int chunk : {0, 1}) {
          timed.push_back(
              {row.Of(kind, chunk) + m * kPeriod, {kind, m, {}, chunk}});
        }
      }
    }
    std::stable_sort(
        timed.begin(), timed.end(),
        [](const auto& a, const auto& b) { return a.first < b.first; });
    StepTable table;
    for (auto& [time, action] : timed) table.actions.push_back(action);
    tables.push_back(WithNeeds(std::move(table), {}));
  }
  return tables;
}

// Moves actions up into the gaps that the first and the last blocks leave.
absl::StatusOr<Tables> Squeeze(const Tables& tables, int pp) {
  StepCosts costs;
  costs.stages.assign(2 * pp, StageCosts());
  TROUPE_ASSIGN_OR_RETURN(
      const SimulatedStep step,
      SimulateStep(tables, VPlacement(pp), costs, Dispatch::kArrival));
  Tables squeezed;
  for (const SimulatedRank& rank : step.ranks) {
    StepTable table;
    for (const SimulatedAction& at : rank.actions) {
      table.actions.push_back(at.action);
    }
    squeezed.push_back(WithNeeds(std::move(table), {}));
  }
  return squeezed;
}

absl::StatusOr<Tables> FromBlock(int pp, int micro_batches, const Legs& legs) {
  TROUPE_RETURN_IF_ERROR(CheckProducer(pp, micro_batches));
  std::vector<BlockRow> block = MakeBlock(pp, legs);
  return Squeeze(Repeat(block, micro_batches), pp);
}

}  // namespace

absl::StatusOr<Tables> VHalf(int pp, int micro_batches) {
  return FromBlock(pp, micro_batches, {2, 1, 2, 1});
}

absl::StatusOr<Tables> VMin(int pp, int micro_batches) {
  return FromBlock(pp, micro_batches, {1, 1, 1, 1});
}

}  // namespace troupe::pipeline
