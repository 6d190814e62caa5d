// Ties: what stages share. Where modules of two stages have one parameter
// (nn::Module::TieParameter: a GPT's head and its table of tokens), each of the
// stages holds a copy under the name that the whole model gives it. The copies
// begin equal, their gradients are added up over the stages once a step, and
// the same update keeps them equal, to the bit.
//
//   for (const Tie& tie : TiesOf(plan.stages)) {
//     tie.name;         // "wte.weight"
//     tie.members;      // {{/*stage=*/0, /*bucket=*/2}, {3, 1}}
//     PlacesOf(tie, plan.stages);   // {0, 3}: coordinates along pp
//   }
//   CopiesIn(plan.stages, /*stage=*/3);    // {"wte.weight"}: stage 0 saves it
//
// A plan says it by names alone: a parameter that several stages list is one
// parameter. What is tied lies in buckets of its own, the last of its stage,
// equal in all stages of the tie; it is trained in all of them or in none.
//
// The order of a sum is that of stages for those on one rank, then the tree of
// comm/reduction_tree.h over ranks; replicas are summed behind that, so that
// two stages give the bits of one rank that adds up each use by itself.
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
  std::string name;                // of its first parameter
  std::vector<TieMember> members;  // at least two, in the order of stages
};

// All of a plan; a tie is known by its number here (TiedGroup()).
std::vector<Tie> TiesOf(absl::Span<const StagePlan> stages);

// Coordinates along pp of the ranks that hold the tie, ascending, each once.
std::vector<int> PlacesOf(const Tie& tie, absl::Span<const StagePlan> stages);

// The parameters of a stage that an earlier one has too, which saves them, and
// counts them in norms.
std::set<std::string> CopiesIn(absl::Span<const StagePlan> stages, int stage);

// How many of the buckets of each of these stages are tied: its last ones.
std::vector<int> TiedBuckets(absl::Span<const StagePlan> stages,
                             const std::vector<int>& numbers);

// kInvalidArgument that names stage and parameter: copies of other sizes or
// dtypes, trained in one stage and not in another, or in buckets that are not
// alike or not the last; more than kTiesMax ties.
absl::Status CheckTies(absl::Span<const StagePlan> stages);

}  // namespace troupe::pipeline

#endif  // PIPELINE_TIES_H_
