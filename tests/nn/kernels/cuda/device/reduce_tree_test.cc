// Sums over ranks on the GPU have the same bits as on the CPU
// (comm/reduction/reduction_tree.h).

#include "nn/kernels/cuda/device/reduce_tree.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/reduction/reduction_tree.h"
#include "gtest/gtest.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::nn::cuda {
namespace {

constexpr comm::ReduceOp kSameOps[] = {
    comm::ReduceOp::kSum, comm::ReduceOp::kAvg, comm::ReduceOp::kMin,
    comm::ReduceOp::kMax};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMin,
                             ReduceOp::kMax};

// Returns random bits, which are numbers of many magnitudes.
Tensor Random(DType dtype, std::int64_t count, std::uint64_t seed,
              Allocator& memory) {
  Tensor tensor = Tensor::Empty({count}, dtype, memory);
  auto* const bytes = static_cast<unsigned char*>(tensor.raw());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = static_cast<unsigned char>(seed >> 56);
  }
  return tensor;
}

void ExpectTheBitsOfTheCpu(CudaDevice& device, DType dtype, int ranks,
                           std::int64_t count, int op) {
  CachingAllocator memory;
  // Also begins at odd elements, so that not all ranges are 16-byte aligned.
  const std::int64_t at = ranks % 3;
  std::vector<Tensor> hosts, there;
  for (int r = 0; r < ranks; ++r) {
    hosts.push_back(Random(dtype, count + at, 1000 * ranks + r, memory));
    there.push_back(Tensor::Empty({count + at}, dtype, device.allocator()));
    device.CopyBytes(Queue::kCompute, hosts[r], there[r]);
    there[r] = there[r].FlatView(at, {count});
    hosts[r] = hosts[r].FlatView(at, {count});
  }
  ASSERT_TRUE(device.Reduce(Queue::kCompute, {kOps[op], there, there}).ok());
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const Tensor& host : hosts) {
    from.push_back(host.raw());
    to.push_back(host.raw());
  }
  comm::ReduceTree({kSameOps[op], dtype, ranks}, from, to, count);
  for (int r : {0, ranks - 1}) {
    const Tensor back = Tensor::Empty({count}, dtype, device.host_allocator());
    device.CopyBytes(Queue::kCompute, there[r], back);
    ASSERT_TRUE(Await(device, device.Record(Queue::kCompute)).ok());
    ASSERT_TRUE(BitEqual(back, hosts[r]))
        << DTypeName(dtype) << ", " << ranks << " ranks, op " << op;
  }
}

TEST(ReduceTreeTest, HasTheBitsOfTheCpu) {
  const EmulatedWorld world(1);
  auto device = *CudaDevice::Open(0);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    for (int ranks : {1, 2, 3, 4, 5, 7, 8, 9, 31, 64}) {
      for (int op = 0; op < 4; ++op) {
        ExpectTheBitsOfTheCpu(*device, dtype, ranks, /*count=*/77, op);
      }
    }
  }
}

TEST(ReduceTreeTest, SaysWhatItDoesNotReduce) {
  CachingAllocator memory;
  const Tensor whole = Tensor::Empty({4}, DType::kI64, memory);
  EXPECT_EQ(CheckReduceTree({ReduceOp::kSum, {whole}, {whole}}).message(),
            "GPUs do not reduce i64");
  const Tensor a = Tensor::Empty({4}, DType::kF32, memory);
  const Tensor b = Tensor::Empty({5}, DType::kF32, memory);
  EXPECT_EQ(CheckReduceTree({ReduceOp::kSum, {a, b}, {a}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckReduceTree({ReduceOp::kSum, {}, {}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      CheckReduceTree({ReduceOp::kSum, std::vector<Tensor>(65, a), {a}}).code(),
      absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace troupe::nn::cuda
