// Implements the device interface of a group of ranks
// (comm/device/device_work.h) over one communication queue of the rank's kernel
// set.
//
//   QueueWork work(kernels, nn::CommQueue(0));
//   on_device = world->UseDevice(&work);
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_QUEUE_WORK_H_
#define ACTORS_ENGINE_QUEUE_WORK_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "comm/device/device_work.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"

namespace troupe::actors {

class QueueWork final : public comm::DeviceWork {
 public:
  // `kernels` has queues, and outlives it.
  QueueWork(nn::Kernels& kernels, nn::Queue queue)
      : kernels_(kernels), queue_(queue) {}

  void Wait(const base::Event& event) override;
  absl::Status Reduce(comm::ReduceOp op, std::vector<nn::Tensor> sources,
                      std::vector<nn::Tensor> destinations) override;
  void Copy(const nn::Tensor& from, const nn::Tensor& to) override;
  absl::Status Enqueue(const char* name,
                       std::function<bool(void* native_stream)> work) override;
  void LookAfter(std::function<bool()> look) override;
  bool capturing() const override;
  nn::Allocator* host_allocator() override;
  base::Event Record() override;

 private:
  nn::Kernels& kernels_;
  const nn::Queue queue_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_QUEUE_WORK_H_
