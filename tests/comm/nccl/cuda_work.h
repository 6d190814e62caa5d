// Gives a group the communication queue of a device, for tests without kernels:
// Reduce() is not implemented.
//
//   CudaWork work(*device);
//   group[rank]->UseDevice(&work);

#ifndef TESTS_COMM_NCCL_CUDA_WORK_H_
#define TESTS_COMM_NCCL_CUDA_WORK_H_

#include <functional>
#include <utility>
#include <vector>

#include "comm/device/device_work.h"
#include "nn/kernels/cuda/device/cuda_device.h"

namespace troupe::comm {

class CudaWork final : public DeviceWork {
 public:
  explicit CudaWork(nn::cuda::CudaDevice& device) : device_(device) {}

  void Wait(const base::Event& event) override {
    device_.Wait(nn::Queue::kComm, event);
  }
  absl::Status Reduce(ReduceOp, std::vector<nn::Tensor>,
                      std::vector<nn::Tensor>) override {
    return absl::UnimplementedError("NCCL reduces by itself");
  }
  void Copy(const nn::Tensor& from, const nn::Tensor& to) override {
    device_.CopyBytes(nn::Queue::kComm, from, to);
  }
  absl::Status Enqueue(const char* name,
                       std::function<bool(void*)> work) override {
    return device_.Enqueue(nn::Queue::kComm, name, std::move(work));
  }
  void LookAfter(std::function<bool()> look) override {
    device_.LookAfter(std::move(look));
  }
  bool capturing() const override { return device_.capturing(); }
  nn::Allocator* host_allocator() override { return &device_.host_allocator(); }
  base::Event Record() override { return device_.Record(nn::Queue::kComm); }

 private:
  nn::cuda::CudaDevice& device_;
};

}  // namespace troupe::comm

#endif  // TESTS_COMM_NCCL_CUDA_WORK_H_
