// Ranks of an NCCL group on emulated GPUs, for tests. Each rank has a device;
// one thread drives them, in an order that a seed chooses.
//
//   NcclRanks ranks(seed, /*size=*/4);
//   ranks.Join();
//   Event done = *ranks.group[0]->Start(Barrier(), Event());
//   EXPECT_TRUE(ranks.Await({done}).ok());

#ifndef TESTS_COMM_NCCL_NCCL_RANKS_H_
#define TESTS_COMM_NCCL_NCCL_RANKS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/memory_store.h"
#include "comm/nccl/nccl_group.h"
#include "nn/kernels/cuda/device/cuda_device.h"
#include "tests/comm/nccl/cuda_work.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::comm {

class NcclRanks {
 public:
  NcclRanks(std::uint64_t seed, int size) : world(GpusOf(seed, size)) {
    for (int r = 0; r < size; ++r) {
      devices.push_back(*nn::cuda::CudaDevice::Open(r));
      works.emplace_back(*devices.back());
    }
  }
  ~NcclRanks() {
    // A device's destructor waits for its running work, which must therefore
    // not wait for another rank: the group is destroyed first.
    group.clear();
    devices.clear();
  }

  NcclGroupOptions options(std::uint32_t generation = 1) const {
    NcclGroupOptions made;
    made.name = "replicas";
    made.generation = generation;
    for (int r = 0; r < static_cast<int>(devices.size()); ++r) {
      made.ranks.push_back(r);
      made.local.push_back(r);
    }
    return made;
  }
  // Makes the group as separate processes would, each of which has one rank.
  Group OfProcesses(const NcclGroupOptions& of_all) {
    Group made;
    for (int place : of_all.local) {
      NcclGroupOptions of_one = of_all;
      of_one.local = {place};
      Group alone = *OpenNcclGroup(of_one, store);
      made.push_back(std::move(alone[place]));
    }
    return made;
  }
  // Makes the group in one process, as most tests do.
  void Join() { Join(*OpenNcclGroup(options(), store)); }
  void Join(Group made) {
    group = std::move(made);
    for (std::size_t r = 0; r < group.size(); ++r) {
      EXPECT_TRUE(group[r]->UseDevice(&works[r]));
    }
  }

  // Drives all devices until all events are ready; returns the first error.
  absl::Status Await(const std::vector<Event>& events) {
    absl::Status status;
    for (const Event& event : events) {
      while (!event.ready()) {
        for (const auto& device : devices) device->Progress();
      }
      status.Update(event.status());
    }
    return status;
  }

  // Returns a tensor on the rank's device, to which the compute queue copies
  // `values`.
  template <typename T>
  nn::Tensor On(int rank, const std::vector<T>& values) {
    const nn::Tensor host = nn::Tensor::Of<T>(
        {static_cast<std::int64_t>(values.size())}, values, host_);
    nn::cuda::CudaDevice& device = *devices[rank];
    const nn::Tensor there =
        nn::Tensor::Empty(host.shape(), host.dtype(), device.allocator());
    device.CopyBytes(nn::Queue::kCompute, host, there);
    return there;
  }
  Event Ready(int rank) { return devices[rank]->Record(nn::Queue::kCompute); }
  // Returns the values of the tensor after `done`.
  template <typename T>
  std::vector<T> Values(int rank, const nn::Tensor& tensor, const Event& done) {
    nn::cuda::CudaDevice& device = *devices[rank];
    const nn::Tensor host =
        nn::Tensor::Empty(tensor.shape(), tensor.dtype(), host_);
    device.Wait(nn::Queue::kCompute, done);
    device.CopyBytes(nn::Queue::kCompute, tensor, host);
    const absl::Status status = Await({device.Record(nn::Queue::kCompute)});
    EXPECT_TRUE(status.ok()) << status;
    const absl::Span<T> span = host.span<T>();
    return std::vector<T>(span.begin(), span.end());
  }

  nn::cuda::EmulatedWorld world;
  MemoryStore store;
  std::vector<std::unique_ptr<nn::cuda::CudaDevice>> devices;
  std::deque<CudaWork> works;
  Group group;

 private:
  static emulated_cuda::Options GpusOf(std::uint64_t seed, int size) {
    emulated_cuda::Options options = nn::cuda::EmulatedWorld::OptionsOf(seed);
    options.devices = size;
    options.device_bytes = std::size_t{8} << 20;
    return options;
  }

  nn::CachingAllocator host_;
};

}  // namespace troupe::comm

#endif  // TESTS_COMM_NCCL_NCCL_RANKS_H_
