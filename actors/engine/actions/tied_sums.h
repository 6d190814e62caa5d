// The buckets of a rank that other stages share (pipeline/ties.h), as a step
// sums them: a rank that has several copies of one adds them up itself, and
// meets other ranks once, when the last of its copies has its gradients.
//
//   TiedSums sums(plan, rank);
//   // In a step, as the gradients of buckets are there:
//   TiedSums::Sum* sum = sums.Begin(action, id);
//   if (sum == nullptr) return absl::OkStatus();  // a copy has still to come
//   AddUp(sum->copies);                      // into the first, in this order
//   if (sum->has_peers) AllReduce(pipeline::TiedGroup(sum->tie));
//   for (int id : sums.End(*sum)) cursor.Finish(id);
//
// Knows tables and plans, neither tensors nor actors. Threads: one at a time.

#ifndef ACTORS_ENGINE_ACTIONS_TIED_SUMS_H_
#define ACTORS_ENGINE_ACTIONS_TIED_SUMS_H_

#include <utility>
#include <vector>

#include "pipeline/plan.h"
#include "pipeline/schedule.h"

namespace troupe::actors {

class TiedSums {
 public:
  // A bucket of one of the rank's chunks.
  struct Copy {
    int chunk = 0;
    int bucket = 0;
  };
  struct Sum {
    int tie = 0;               // its number in the plan
    std::vector<Copy> copies;  // the rank's, in the order of stages
    bool has_peers = false;    // whether other ranks have it
    std::vector<int> begun;    // numbers of actions, in this step
  };

  TiedSums(const pipeline::Plan& plan, int rank);

  // Action `id` of the table, a TR, begins. The sum that it is of, where all of
  // the rank's copies have begun; else null.
  Sum* Begin(const pipeline::Action& action, int id);
  // The sum that `action`, a TR, is of.
  Sum& Of(const pipeline::Action& action);
  // It is there, in all copies. Returns the actions that end with it.
  std::vector<int> End(Sum& sum) { return std::exchange(sum.begun, {}); }

 private:
  std::vector<Sum> sums_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_TIED_SUMS_H_
