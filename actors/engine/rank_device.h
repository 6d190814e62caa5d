// The device of a rank as the step engine uses it: the kernel set, the queues
// that its groups work in, and what its layers see of their peers.
//
//   TROUPE_ASSIGN_OR_RETURN(auto device, RankDevice::Open(options));
//   device->kernels().queues();     // null on a device that works at once
//   device->update_queue();         // where updates go
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_RANK_DEVICE_H_
#define ACTORS_ENGINE_RANK_DEVICE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/engine/layer_collectives.h"
#include "actors/engine/queue_work.h"
#include "actors/engine/rank_groups.h"
#include "actors/engine/strand_wait.h"
#include "actors/spec/job_spec.h"
#include "nn/collectives.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class RankDevice {
 public:
  // All outlive it.
  struct Options {
    const JobSpec* spec = nullptr;
    int local_rank = 0;                  // among those of its host
    const RankGroups* groups = nullptr;  // are told of the device
    StrandWait* wait = nullptr;          // how layers wait for their peers
  };

  // Errors: those of OpenRankKernels().
  static absl::StatusOr<std::unique_ptr<RankDevice>> Open(
      const Options& options);

  nn::Kernels& kernels() const { return *kernels_; }
  const std::shared_ptr<nn::Kernels>& shared_kernels() const {
    return kernels_;
  }
  bool has_queues() const { return kernels_->queues() != nullptr; }
  // Updates run behind reductions, on their queue. A rank that has no peers
  // has nothing to wait for, and keeps them in the compute queue.
  nn::Queue update_queue() const;
  // Whether collectives are work of devices, which whoever starts them gives
  // to this rank's device: in the thread of the engine.
  bool reduces_on_device() const { return reduces_on_device_; }
  // Peers of layers, by axis.
  absl::Span<const nn::AxisCollectives> axes() const { return axes_; }
  // Tells the replicas' group which memory is reduced, where it wants to know;
  // none before that memory goes.
  void UseRanges(const std::vector<nn::Tensor>& reduced);

 private:
  RankDevice(const Options& options, std::shared_ptr<nn::Kernels> kernels);
  void JoinGroups();
  // Adds the queue for communication along axis number `axis`; null where the
  // device has none.
  QueueWork* AddWork(int axis);

  const Options options_;
  const std::shared_ptr<nn::Kernels> kernels_;
  std::vector<std::unique_ptr<QueueWork>> works_;
  bool reduces_on_device_ = false;
  std::vector<std::unique_ptr<LayerCollectives>> layer_collectives_;
  std::vector<nn::AxisCollectives> axes_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_RANK_DEVICE_H_
