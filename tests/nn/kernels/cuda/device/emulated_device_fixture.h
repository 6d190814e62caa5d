// Fixture of the tests of the CUDA device: an emulated CUDA runtime for a seed,
// whose destructor finds leaks, writes outside allocations and operations that
// never ran, and helpers that create and read tensors.
//
//   for (std::uint64_t seed : Seeds(200)) {
//     const EmulatedWorld world(seed);
//     auto device = *CudaDevice::Open(0);
//     Tensor x = OnDevice(*device, Queue::kCompute, {1, 2, 3});
//     EXPECT_THAT(Numbers(*device, x), testing::ElementsAre(1, 2, 3));
//   }

#ifndef TESTS_NN_KERNELS_CUDA_DEVICE_EMULATED_DEVICE_FIXTURE_H_
#define TESTS_NN_KERNELS_CUDA_DEVICE_EMULATED_DEVICE_FIXTURE_H_

#include <sched.h>

#include <cstdint>
#include <vector>

#include "base/cuda/emulated/emulated_cuda.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cuda/device/cuda_device.h"

namespace troupe::nn::cuda {

// The emulated CUDA runtime of one test run. There is one at a time; all CUDA
// objects must be destroyed before it.
class EmulatedWorld {
 public:
  explicit EmulatedWorld(std::uint64_t seed) { Begin(OptionsOf(seed)); }
  explicit EmulatedWorld(const emulated_cuda::Options& options) {
    Begin(options);
  }
  ~EmulatedWorld() {
    const std::vector<std::string> problems = emulated_cuda::Finish();
    if (broken_) return;
    EXPECT_THAT(problems, testing::IsEmpty()) << "seed " << seed_;
  }
  EmulatedWorld(const EmulatedWorld&) = delete;
  EmulatedWorld& operator=(const EmulatedWorld&) = delete;

  static emulated_cuda::Options OptionsOf(std::uint64_t seed) {
    emulated_cuda::Options options;
    options.seed = seed;
    options.device_bytes = std::size_t{64} << 20;
    options.stall_seconds = 0;
    return options;
  }
  // Declares that the test breaks a device; the destructor then ignores what is
  // left.
  void ExpectBroken() { broken_ = true; }

 private:
  void Begin(const emulated_cuda::Options& options) {
    seed_ = options.seed;
    emulated_cuda::Reset(options);
  }

  std::uint64_t seed_ = 0;
  bool broken_ = false;
};

inline Tensor HostNumbers(const std::vector<float>& values) {
  static auto* const allocator = new CachingAllocator();
  return Tensor::Of<float>({static_cast<std::int64_t>(values.size())}, values,
                           *allocator);
}

// Drives the device until `event` is done, and returns its status.
inline absl::Status Await(CudaDevice& device, const base::Event& event) {
  while (!event.ready()) {
    if (!device.Progress()) sched_yield();
  }
  return event.status();
}

inline Tensor OnDevice(CudaDevice& device, Queue queue,
                       const std::vector<float>& values) {
  const Tensor host = HostNumbers(values);
  const Tensor there =
      Tensor::Empty(host.shape(), host.dtype(), device.allocator());
  device.CopyBytes(queue, host, there);
  return there;
}

// Copies the tensor to the host on the compute queue and returns its numbers.
inline std::vector<float> Numbers(CudaDevice& device, const Tensor& tensor) {
  const Tensor host =
      Tensor::Empty(tensor.shape(), tensor.dtype(), device.host_allocator());
  device.CopyBytes(Queue::kCompute, tensor, host);
  const absl::Status status = Await(device, device.Record(Queue::kCompute));
  EXPECT_TRUE(status.ok()) << status;
  const absl::Span<float> span = host.span<float>();
  return std::vector<float>(span.begin(), span.end());
}

// Returns a + b, computed by CudaDevice::Reduce().
inline Tensor Sum(CudaDevice& device, Queue queue, const Tensor& a,
                  const Tensor& b) {
  const Tensor y = Tensor::Empty(a.shape(), a.dtype(), device.allocator());
  const absl::Status status =
      device.Reduce(queue, {ReduceOp::kSum, {a, b}, {y}});
  EXPECT_TRUE(status.ok()) << status;
  return y;
}

}  // namespace troupe::nn::cuda

#endif  // TESTS_NN_KERNELS_CUDA_DEVICE_EMULATED_DEVICE_FIXTURE_H_
