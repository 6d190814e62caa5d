// An optimizer step that is fused with the reduction of its gradients: instead
// of keeping the sum, the ranks update their replicas (parameters, optimizer
// states), each element on one rank, which sends the result to the others.
//
//   class Descent : public ReplicaUpdate {
//     absl::Span<const nn::Tensor> replicas() const override { return all_; }
//     absl::Status Apply(std::int64_t begin, const nn::Tensor& sum) override {
//       float* param = all_[0].data<float>() + begin;
//       const float* grad = sum.data<float>();
//       for (int i = 0; i < sum.numel(); ++i) param[i] -= 0.1f * grad[i];
//       return absl::OkStatus();
//     }
//     std::vector<nn::Tensor> all_;         // the parameters, by rank
//   };
//   auto descent = std::make_shared<Descent>();
//   comm.RunInline(ReduceUpdate(ReduceOp::kSum, gradients, descent), timeout);
//
// Why: n ranks that sum and then update read and write each gradient and each
// parameter on every rank, in two passes over memory. A fused chunk is summed,
// updated and written to all ranks while it is in a core's cache. The result is
// that of ZeRO stage 1 (Rajbhandari et al. 2020, section 5.1: reduce-scatter,
// update of a shard, all-gather), in one pass.
//
// The bits are those of an all-reduce and an update on every rank, if the
// replicas are the same on all ranks before, and Apply() computes an element
// from that element alone, in the same way on all ranks.

#ifndef COMM_REPLICA_UPDATE_H_
#define COMM_REPLICA_UPDATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

class ReplicaUpdate {
 public:
  virtual ~ReplicaUpdate() = default;

  // Returns this rank's copies: flat, each as long as the reduced range, of any
  // dtypes. The result does not change while the collective runs.
  virtual absl::Span<const nn::Tensor> replicas() const = 0;

  // Updates elements [begin, begin + sum.numel()) of this rank's replicas.
  // Called in a thread that drives this rank (or, in a group that spans
  // processes, its process), one call at a time, for parts of the range: the
  // other ranks update the rest, and write into these replicas from their
  // threads. In each process each element is updated once. Must not wait for
  // anything: Abort() waits for it. An error, or an exception (kInternal),
  // aborts the group and leaves the replicas half updated.
  virtual absl::Status Apply(std::int64_t begin, const nn::Tensor& sum) = 0;
};

}  // namespace troupe::comm

#endif  // COMM_REPLICA_UPDATE_H_
