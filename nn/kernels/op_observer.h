// Observes the ops of a kernel set while a profile is taken: what is called,
// on which tensors, when it begins and ends.
//
//   class Counter : public OpObserver {
//    public:
//     std::int64_t BeginOp(const OpCall&) override { return ++begun; }
//     void EndOp(const OpCall& call, std::int64_t token) override {
//       absl::PrintF("%d: %s\n", token, call.name);
//     }
//     std::int64_t begun = 0;
//   };
//   Counter counter;
//   ObservedOps observed(kernels, counter);
//   status = kernels.ReluForward(x, y);           // tells the counter
//   observed.Restore();
//   status = kernels.ReluForward(x, y);           // does not
//
// An op that calls another op of the same set has it between its begin and its
// end. On a device with queues an op ends when its work is in the queue.
//
// Cost: none without an ObservedOps, as it binds the set's ops anew. Threads:
// those of the kernel set, which nobody uses while ops are bound.

#ifndef NN_KERNELS_OP_OBSERVER_H_
#define NN_KERNELS_OP_OBSERVER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn {

struct OpCall {
  int number = 0;         // place in the order of Kernels::ForEachOp()
  const char* name = "";  // "LinearForward"
  // The operands, in the order of the op's declaration; those that the caller
  // left undefined are not among them.
  absl::Span<const Tensor* const> tensors;
};

class OpObserver {
 public:
  virtual ~OpObserver() = default;
  // Called before an op. EndOp() gets the result after it, also if it failed.
  virtual std::int64_t BeginOp(const OpCall& call) = 0;
  virtual void EndOp(const OpCall& call, std::int64_t token) = 0;
};

// Returns the names of all ops, by number.
std::vector<const char*> OpNames();

class ObservedOps {
 public:
  // `observer` and this object outlive the calls of `kernels`, or Restore().
  ObservedOps(Kernels& kernels, OpObserver& observer);
  ObservedOps(const ObservedOps&) = delete;
  ObservedOps& operator=(const ObservedOps&) = delete;

  // Makes the ops of the kernel set what they were. Kernels that end first need
  // no such call.
  void Restore();

 private:
  Kernels& kernels_;
  std::vector<std::shared_ptr<void>> inner_;  // each op as it was, by number
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_OP_OBSERVER_H_
