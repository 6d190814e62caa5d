// Bookkeeping for the buckets of a rank that several stages share
// (pipeline/ties.h): a rank with several copies of a bucket first adds them up
// itself. It then takes part in one collective with other ranks, once the last
// of its copies has its gradients.
//
//   TiedSums sums(plan, rank);
//   // In a step, as the gradients of buckets become ready:
//   TiedSums::Sum* sum = sums.Begin(action, id);
//   if (sum == nullptr) return absl::OkStatus();  // a copy is not ready yet
//   AddUp(sum->copies);                      // into the first, in this order
//   if (sum->has_peers) AllReduce(pipeline::TiedGroup(sum->tie));
//   for (int id : sums.End(*sum)) cursor.Finish(id);
//
// Uses tables and plans, neither tensors nor actors. Threads: one at a time.

#ifndef ACTORS_ENGINE_ACTIONS_TIED_SUMS_H_
#define ACTORS_ENGINE_ACTIONS_TIED_SUMS_H_

#include <utility>
#include <vector>

#include "pipeline/plan.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

class TiedSums {
 public:
  // A bucket of one of the rank's chunks.
  struct Copy {
    int chunk = 0;
    int bucket = 0;
  };
  struct Sum {
    int tie = 0;               // number of the tie in the plan
    std::vector<Copy> copies;  // copies on this rank, in the order of stages
    bool has_peers = false;    // whether other ranks have copies
    std::vector<int> begun;    // TR actions that have begun in this step
  };

  TiedSums(const pipeline::Plan& plan, int rank);

  // Begins action `id` of the table, a TR. Returns its sum if the TRs of all of
  // the rank's copies have begun; else null.
  Sum* Begin(const pipeline::Action& action, int id);
  // Returns the sum of `action`, a TR.
  Sum& Of(const pipeline::Action& action);
  // Ends `sum`, which is complete in all copies. Returns the actions that end
  // with it.
  std::vector<int> End(Sum& sum) { return std::exchange(sum.begun, {}); }

 private:
  std::vector<Sum> sums_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_TIED_SUMS_H_
