// The collectives of a layer (nn/collectives.h), run on the compute strand.
//
//   LayerCollectives dp(groups.of_layers()[0].comm.get(), &kernels, &fiber,
//                       /*on_device=*/false);
//   chunk.axes = {{"dp", &dp}};
//
// Layers have communicators of their own. A group pairs the collectives of its
// ranks by order; in the group that reduces buckets, a layer's collective could
// stand before a bucket's on one rank and after it on another.
//
// A group of devices (comm/device, comm/nccl) enqueues the collective, and
// later work of the compute queue waits for it; the fiber goes on, unless the
// device has fallen kAheadMax collectives behind. The fiber waits for other
// groups.
//
// Errors: those of Communicator::RunInline(), or Start().
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_LAYER_COLLECTIVES_H_
#define ACTORS_ENGINE_LAYER_COLLECTIVES_H_

#include <deque>

#include "absl/status/status.h"
#include "actors/engine/fiber/strand_wait.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "nn/collectives.h"
#include "nn/kernels/kernels.h"

namespace troupe::actors {

class LayerCollectives : public nn::Collectives {
 public:
  // Limit on the collectives that a device has not completed when the host
  // enqueues another one. A group of devices has an in_flight_max above it.
  static constexpr int kAheadMax = 32;

  // All arguments outlive it. `on_device`: result of Communicator::UseDevice().
  LayerCollectives(comm::Communicator* comm, nn::Kernels* kernels,
                   StrandWait* wait, bool on_device)
      : comm_(comm), kernels_(kernels), wait_(wait), on_device_(on_device) {}

  int rank() const override { return comm_->rank(); }
  int size() const override { return comm_->size(); }
  absl::Status AllReduce(nn::ReduceOp op, const nn::Tensor& range) override;
  absl::Status AllGather(const nn::Tensor& input,
                         const nn::Tensor& range) override;
  absl::Status ReduceScatter(nn::ReduceOp op, const nn::Tensor& input,
                             const nn::Tensor& range) override;
  // Runs any collective in the same way.
  absl::Status Run(const comm::Collective& collective);

 private:
  // Waits until the device is less than kAheadMax collectives behind.
  absl::Status AwaitDevice();

  comm::Communicator* const comm_;
  nn::Kernels* const kernels_;
  StrandWait* const wait_;
  const bool on_device_;
  // The compute queue before each of the last collectives on the device.
  std::deque<base::Event> before_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LAYER_COLLECTIVES_H_
