// The memory that one collective reads and writes in this process, and the
// reduction over it.
//
//   operands.SetMemory(rank, collective);          // of each rank here
//   operands.SetKind(collective, layout.size());
//   operands.SetTargets(plan, layout);
//   const char* from = operands.Input(plan.block(b).block, /*at=*/0, rank);
//
// Addresses of ranks in other processes are null. Threads: read by any, once
// the collective is planned.

#ifndef COMM_SPANNING_OPERATION_OPERANDS_H_
#define COMM_SPANNING_OPERATION_OPERANDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "comm/flow.h"
#include "comm/reduction/reduction_tree.h"
#include "comm/spanning/plan/layout.h"
#include "comm/spanning/plan/transfer_plan.h"

namespace troupe::comm::internal {

class Operands {
 public:
  // `ranks` is the number of ranks of the group.
  explicit Operands(int ranks) : inputs_(ranks), outputs_(ranks) {}

  void SetMemory(int rank, const Collective& collective);
  void SetKind(const Collective& collective, int ranks);
  void SetTargets(const TransferPlan& plan, const GroupLayout& layout);

  const Reduction& reduction() const { return reduction_; }
  std::size_t element_bytes() const { return element_bytes_; }
  // Returns the ranks here that receive the value of block b of the plan.
  const std::vector<int>& targets(int b) const { return targets_[b]; }

  // Returns the begin of a rank's input or output.
  const char* input(int rank) const { return inputs_[rank]; }
  char* output(int rank) const { return outputs_[rank]; }
  // Returns element `at` of a block in a rank's input or output.
  const char* Input(const Block& block, std::int64_t at, int rank) const {
    return inputs_[rank] + BytesOf(block.from_at + at);
  }
  char* Output(const Block& block, std::int64_t at, int rank) const {
    return outputs_[rank] + BytesOf(block.to_at + at);
  }
  // Returns the offset of an element.
  std::int64_t BytesOf(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(element_bytes_);
  }

 private:
  Reduction reduction_;
  std::size_t element_bytes_ = 1;
  std::vector<const char*> inputs_;        // index: rank of the group
  std::vector<char*> outputs_;             // index: rank of the group
  std::vector<std::vector<int>> targets_;  // index: block
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OPERATION_OPERANDS_H_
