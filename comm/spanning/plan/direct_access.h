// Access of one process to the ranges of the others in one collective by
// reference (direct_work.h): addresses, tasks, and which members have finished.
//
//   DirectAccess direct(/*members=*/2);
//   direct.SetLends(true);             // our note refers to our ranges
//   direct.Begin(layout, plan, element_bytes, /*updates=*/false);
//   direct.SetInput(rank, memory);     // of each rank that this process needs
//   DirectWork::Part part;
//   while (direct.AddTask(/*tasks_max=*/1) && direct.Claim(&part)) {
//     Compute(direct.input(rank), part);
//     direct.EndTask();
//   }
//
// Not thread-safe: used under the group's lock; addresses are constant once the
// first task was added.

#ifndef COMM_SPANNING_PLAN_DIRECT_ACCESS_H_
#define COMM_SPANNING_PLAN_DIRECT_ACCESS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/spanning/plan/direct_work.h"
#include "comm/spanning/plan/layout.h"
#include "comm/spanning/plan/transfer_plan.h"

namespace troupe::comm::internal {

class DirectAccess {
 public:
  explicit DirectAccess(int members) : let_go_(members) {}

  // Whether the note of this process refers to its ranges.
  void SetLends(bool lends) { lends_ = lends; }
  bool lends() const { return lends_; }
  // Whether a member has finished its part and accesses no memory here any
  // more. It may be ahead of this process.
  void SetLetGo(int member) { let_go_[member] = true; }
  bool let_go(int member) const { return let_go_[member]; }
  // Returns whether all members but `self` have let go.
  bool AllLetGo(int self) const;

  // Begins the work of this process: elements are read and written by
  // reference, not sent as pieces.
  void Begin(const GroupLayout& layout, const TransferPlan& plan,
             std::size_t element_bytes, bool updates);
  bool begun() const { return work_.has_value(); }

  // Address of a rank's input or output; null if this process does not need it.
  void SetInput(int rank, std::shared_ptr<char> memory) {
    inputs_[rank] = std::move(memory);
  }
  void SetOutput(int rank, std::shared_ptr<char> memory) {
    outputs_[rank] = std::move(memory);
  }
  char* input(int rank) const { return inputs_[rank].get(); }
  char* output(int rank) const { return outputs_[rank].get(); }

  // Adds a task that claims a part; false: all parts are claimed, or there are
  // `tasks_max` tasks.
  bool AddTask(int tasks_max);
  // Claims the part of a task. False ends the task: all are claimed.
  bool Claim(DirectWork::Part* part);
  // Ends a task without a part.
  void DropTask() { --tasks_; }
  // Ends a task, whose part is complete.
  void EndTask();
  // Returns whether all parts are complete.
  bool done() const { return work_->done(); }

  // Whether peers were notified that the part of this process has ended.
  void SetOver() { over_ = true; }
  bool over() const { return over_; }

  // Forgets all, for another collective.
  void Clear();

 private:
  bool lends_ = false;
  std::vector<bool> let_go_;  // index: member
  std::optional<DirectWork> work_;
  std::vector<std::shared_ptr<char>> inputs_, outputs_;  // index: rank
  int tasks_ = 0;
  bool over_ = false;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_PLAN_DIRECT_ACCESS_H_
