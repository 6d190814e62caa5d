// Ties: parameters that several stages share. If modules of two stages have one
// parameter (nn::Module::TieParameter: a GPT's head and its token embedding),
// each of the stages holds a copy under the parameter's name in the whole
// model. The copies begin equal, their gradients are added up over the stages
// once a step, and the same update keeps them equal, to the bit.
//
//   for (const Tie& tie : TiesOf(plan.stages)) {
//     tie.name;         // "wte.weight"
//     tie.members;      // {{/*stage=*/0, /*bucket=*/2}, {3, 1}}
//     PlacesOf(tie, plan.stages);   // {0, 3}: coordinates along pp
//   }
//   CopiesIn(plan.stages, /*stage=*/3);    // {"wte.weight"}: stage 0 saves it
//
// A plan shows ties by names alone: a parameter that several stages list is one
// parameter. Tied parameters lie in separate buckets, the last of their stage,
// equal in all stages of the tie; they are trained in all of them or in none.
//
// Gradients are summed over the stages on one rank, in the order of stages;
// then over ranks, by the tree of comm/reduction/reduction_tree.h; then over
// replicas. So two stages give the bits of one rank that adds up each use by
// itself.
//
// Source: Megatron-LM's embedding group (Shoeybi et al. 2019, arXiv:1909.08053;
// Narayanan et al. 2021, arXiv:2104.04473). Cost: linear in the plan.

#ifndef PIPELINE_TIES_H_
#define PIPELINE_TIES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "pipeline/plan.h"

namespace troupe::pipeline {

struct TieMember {
  int stage = 0;
  int bucket = 0;

  friend bool operator==(const TieMember& a, const TieMember& b) {
    return a.stage == b.stage && a.bucket == b.bucket;
  }
};

// A bucket of which several stages have a copy.
struct Tie {
  std::string name;                // name of its first parameter
  std::vector<TieMember> members;  // two or more, ordered by stage
};

// Returns all ties of a plan. TiedGroup() takes an index into the result.
std::vector<Tie> TiesOf(absl::Span<const StagePlan> stages);

// Returns the coordinates along pp of the ranks that hold the tie, ascending,
// each once.
std::vector<int> PlacesOf(const Tie& tie, absl::Span<const StagePlan> stages);

// Returns the parameters of a stage that an earlier stage has too. The earlier
// one saves them, and counts them in norms.
std::set<std::string> CopiesIn(absl::Span<const StagePlan> stages, int stage);

// Returns how many buckets of each stage in `numbers` are tied. They are its
// last ones.
std::vector<int> TiedBuckets(absl::Span<const StagePlan> stages,
                             const std::vector<int>& numbers);

// Returns kInvalidArgument that names stage and parameter for copies with
// different sizes or dtypes, trained in one stage and not in another, or in
// buckets that differ or are not the last; and for more than kTiesMax ties.
absl::Status CheckTies(absl::Span<const StagePlan> stages);

}  // namespace troupe::pipeline

#endif  // PIPELINE_TIES_H_
