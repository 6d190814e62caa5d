// The device of a rank: its kernel set, the queues of its groups' collectives,
// and the collectives of its layers.
//
//   TROUPE_ASSIGN_OR_RETURN(auto device, RankDevice::Open(options));
//   device->kernels().queues();     // null on a device that works at once
//   device->update_queue();         // queue of updates
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_RANK_DEVICE_H_
#define ACTORS_ENGINE_RANK_DEVICE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "actors/engine/fiber/strand_wait.h"
#include "actors/engine/layer_collectives.h"
#include "actors/engine/queue_work.h"
#include "actors/engine/rank_groups.h"
#include "actors/spec/job_spec.h"
#include "nn/collectives.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class RankDevice {
 public:
  // All pointers outlive the device.
  struct Options {
    const JobSpec* spec = nullptr;       // used by Open() alone
    int local_rank = 0;                  // number among the ranks of its host
    const RankGroups* groups = nullptr;  // their UseDevice() is called
    StrandWait* wait = nullptr;          // used by layers that wait for peers
  };

  // Errors: those of OpenRankKernels().
  static absl::StatusOr<std::unique_ptr<RankDevice>> Open(
      const Options& options);

  // Makes a device of kernels that are open already.
  static std::unique_ptr<RankDevice> Over(const Options& options,
                                          std::shared_ptr<nn::Kernels> kernels);

  nn::Kernels& kernels() const { return *kernels_; }
  const std::shared_ptr<nn::Kernels>& shared_kernels() const {
    return kernels_;
  }
  bool has_queues() const { return kernels_->queues() != nullptr; }
  // Returns the queue of updates: that of the reductions, or kCompute on a rank
  // without peers, whose updates have nothing to wait for.
  nn::Queue update_queue() const;
  // Whether collectives run on the device. The engine's thread must then start
  // them, since starting one enqueues work on this rank's device.
  bool reduces_on_device() const { return reduces_on_device_; }
  // Returns the collectives of layers, by axis.
  absl::Span<const nn::AxisCollectives> axes() const { return axes_; }
  // Returns those along one axis; null if the rank has no such group.
  LayerCollectives* Along(absl::string_view axis) const;
  // Registers the memory that is reduced with the replicas' group, if
  // collectives run on the device (Communicator::UseRanges). Call it with an
  // empty list before that memory is freed.
  void UseRanges(const std::vector<nn::Tensor>& reduced);

 private:
  RankDevice(const Options& options, std::shared_ptr<nn::Kernels> kernels);
  void JoinGroups();
  // Adds the queue for communication along axis number `axis`. Returns null if
  // the device has no queues.
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
