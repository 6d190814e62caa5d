// Tests NVIDIA's NCCL on a GPU: one rank, and two on one GPU where NCCL allows
// it (2.30 and later, with NCCL_MULTI_RANK_GPU_ENABLE=1). Skipped without a
// GPU.

#include <nccl.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "comm/memory_store.h"
#include "comm/nccl/nccl_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cuda/device/cuda_device.h"
#include "tests/comm/nccl/cuda_work.h"

namespace troupe::comm {
namespace {

using nn::cuda::CudaDevice;
using testing::Each;

// Ranks of a group, all on the first GPU.
class OneGpu {
 public:
  explicit OneGpu(int size) {
    for (int r = 0; r < size; ++r) {
      devices_.push_back(*CudaDevice::Open(0));
      works_.emplace_back(*devices_.back());
    }
  }
  ~OneGpu() {
    group_.clear();
    devices_.clear();
  }

  absl::Status Join(std::uint32_t generation) {
    group_.clear();
    NcclGroupOptions options;
    options.name = "replicas";
    options.generation = generation;
    options.timeout = absl::Seconds(60);
    for (std::size_t r = 0; r < devices_.size(); ++r) {
      options.ranks.push_back(static_cast<int>(r));
      options.local.push_back(static_cast<int>(r));
    }
    TROUPE_ASSIGN_OR_RETURN(group_, OpenNcclGroup(options, store_));
    for (std::size_t r = 0; r < devices_.size(); ++r) {
      group_[r]->UseDevice(&works_[r]);
    }
    return absl::OkStatus();
  }

  // Expects that an all-reduce over ranks adds up their 1000 numbers.
  void ExpectSum() {
    nn::CachingAllocator memory;
    const std::vector<float> ones(1000, 1);
    std::vector<nn::Tensor> here, there;
    std::vector<Event> done;
    for (std::size_t r = 0; r < devices_.size(); ++r) {
      CudaDevice& device = *devices_[r];
      here.push_back(nn::Tensor::Of<float>({1000}, ones, memory));
      there.push_back(
          nn::Tensor::Empty({1000}, nn::DType::kF32, device.allocator()));
      device.CopyBytes(nn::Queue::kCompute, here[r], there[r]);
      const auto event = group_[r]->Start(AllReduce(ReduceOp::kSum, there[r]),
                                          device.Record(nn::Queue::kCompute));
      ASSERT_TRUE(event.ok()) << event.status();
      device.Wait(nn::Queue::kCompute, *event);
      device.CopyBytes(nn::Queue::kCompute, there[r], here[r]);
      done.push_back(device.Record(nn::Queue::kCompute));
    }
    for (std::size_t r = 0; r < devices_.size(); ++r) {
      const absl::Status status = Await(done[r]);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_THAT(here[r].span<float>(),
                  Each(static_cast<float>(devices_.size())));
    }
  }

  absl::Status Await(const Event& event) {
    while (!event.ready()) {
      for (const auto& device : devices_) device->Progress();
    }
    return event.status();
  }
  Communicator& rank(int r) { return *group_[r]; }

 private:
  MemoryStore store_;
  std::vector<std::unique_ptr<CudaDevice>> devices_;
  std::deque<CudaWork> works_;
  Group group_;
};

bool HasGpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

TEST(NcclGpuTest, OneRank) {
  if (!HasGpu()) GTEST_SKIP() << "no GPU";
  OneGpu ranks(1);
  ASSERT_TRUE(ranks.Join(/*generation=*/1).ok());
  ranks.ExpectSum();
  EXPECT_TRUE(ranks.Await(*ranks.rank(0).Start(Barrier(), Event())).ok());
  ranks.rank(0).Abort(absl::CancelledError("enough"));
  EXPECT_EQ(ranks.rank(0).Start(Barrier(), Event()).status().message(),
            "enough");
  ASSERT_TRUE(ranks.Join(/*generation=*/2).ok());
  ranks.ExpectSum();
}

TEST(NcclGpuTest, TwoRanksOnOneGpu) {
  if (!HasGpu()) GTEST_SKIP() << "no GPU";
  int version = 0;
  const char* const allowed = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (ncclGetVersion(&version) != ncclSuccess || version < 23000 ||
      allowed == nullptr || std::string(allowed) != "1") {
    GTEST_SKIP() << "needs NCCL 2.30 and NCCL_MULTI_RANK_GPU_ENABLE=1";
  }
  OneGpu ranks(2);
  ASSERT_TRUE(ranks.Join(/*generation=*/1).ok());
  for (int i = 0; i < 3; ++i) ranks.ExpectSum();
  ranks.rank(1).Abort(absl::CancelledError("enough"));
  ASSERT_TRUE(ranks.Join(/*generation=*/2).ok());
  ranks.ExpectSum();
}

}  // namespace
}  // namespace troupe::comm
