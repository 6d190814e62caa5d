// What a process does in a collective whose processes reach each other's
// ranges: no element travels by a link.
//
//   DirectWork work(layout, plan, element_bytes, /*updates=*/false);
//   DirectWork::Part part;
//   while (work.Claim(&part)) {
//     Compute(part);                 // from the inputs of all, where they lie
//     work.Done();
//   }
//   if (work.done()) TellTheOthers();
//
// What one process wants it computes itself: a tree, a copy. Of a tree that all
// want, each process computes an equal share, and writes it to the ranges of
// all: each input is read once, each range is written once, and in place nobody
// writes what another one reads.
//
// Not thread-safe.

#ifndef COMM_SPANNING_DIRECT_WORK_H_
#define COMM_SPANNING_DIRECT_WORK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/spanning/layout.h"
#include "comm/spanning/transfer_plan.h"

namespace troupe::comm::internal {

class DirectWork {
 public:
  struct Part {
    int block = 0;
    std::int64_t begin = 0, count = 0;  // elements of the block
    int index = 0;
  };

  // `updates`: every process computes the whole, for an update that keeps no
  // sum.
  DirectWork(const GroupLayout& layout, const TransferPlan& plan,
             std::size_t element_bytes, bool updates);

  // The next part; false: all are claimed.
  bool Claim(Part* part);
  bool claimable() const { return next_ < parts_.size(); }
  // A part that was claimed is done.
  void Done() { --left_; }
  // All are.
  bool done() const { return left_ == 0; }

 private:
  void Cut(int block, std::int64_t begin, std::int64_t end, std::int64_t step);

  std::vector<Part> parts_;
  std::size_t next_ = 0;
  std::size_t left_ = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_DIRECT_WORK_H_
