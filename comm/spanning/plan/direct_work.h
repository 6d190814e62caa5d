// The share of one process in a collective whose processes read and write each
// other's ranges directly: no element travels over a link.
//
//   DirectWork work(layout, plan, element_bytes, /*updates=*/false);
//   DirectWork::Part part;
//   while (work.Claim(&part)) {
//     Compute(part);                 // from the inputs of all, in place
//     work.Done();
//   }
//   if (work.done()) TellTheOthers();
//
// A process that alone wants a result computes it: a tree, or a copy. If all
// want the result of a tree, each process computes an equal share, and writes
// it to the ranges of all: each input is read once, each range is written once,
// and in place no process writes what another one reads.
//
// Not thread-safe.

#ifndef COMM_SPANNING_PLAN_DIRECT_WORK_H_
#define COMM_SPANNING_PLAN_DIRECT_WORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/spanning/plan/layout.h"
#include "comm/spanning/plan/transfer_plan.h"

namespace troupe::comm::internal {

class DirectWork {
 public:
  // Elements [begin, begin + count) of a block.
  struct Part {
    int block = 0;
    std::int64_t begin = 0, count = 0;  // elements of the block
    int index = 0;
  };

  // `updates`: every process computes the whole result, for an update that does
  // not keep the sum.
  DirectWork(const GroupLayout& layout, const TransferPlan& plan,
             std::size_t element_bytes, bool updates);

  // Returns the next part in `part`; false: all are claimed.
  bool Claim(Part* part);
  bool claimable() const { return next_ < parts_.size(); }
  // Records that a claimed part is complete.
  void Done() { --left_; }
  // Returns whether all parts are complete.
  bool done() const { return left_ == 0; }

 private:
  void Cut(int block, std::int64_t begin, std::int64_t end, std::int64_t step);

  std::vector<Part> parts_;
  std::size_t next_ = 0;
  std::size_t left_ = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_PLAN_DIRECT_WORK_H_
