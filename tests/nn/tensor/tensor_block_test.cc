#include "nn/tensor/tensor_block.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/nn/testing/limited_memory.h"

namespace troupe::nn {
namespace {

std::vector<Tensor> Like() {
  return {Tensor::Meta({3, 5}, DType::kF32, Device{}),
          Tensor::Meta({0, 5}, DType::kF32, Device{}),
          Tensor::Meta({3}, DType::kI64, Device{}),
          Tensor::Meta({7}, DType::kU8, Device{})};
}

TEST(TensorBlock, OneCopyMovesAll) {
  CachingAllocator allocator;
  const absl::StatusOr<TensorBlock> from =
      TensorBlock::Create(Like(), allocator);
  const absl::StatusOr<TensorBlock> to = TensorBlock::Create(Like(), allocator);
  ASSERT_TRUE(from.ok() && to.ok());
  for (const Tensor& tensor : from->tensors()) {
    std::memset(tensor.raw(), static_cast<int>(tensor.numel()), tensor.bytes());
  }
  EXPECT_EQ(from->bytes().bytes(), TensorBlock::BytesOf(Like()));
  std::memcpy(to->bytes().raw(), from->bytes().raw(), from->bytes().bytes());
  ASSERT_EQ(to->tensors().size(), Like().size());
  for (std::size_t i = 0; i < Like().size(); ++i) {
    const Tensor& tensor = to->tensors()[i];
    EXPECT_EQ(tensor.shape(), Like()[i].shape());
    EXPECT_TRUE(BitEqual(tensor, from->tensors()[i])) << i;
    const auto offset =
        static_cast<std::size_t>(static_cast<char*>(tensor.raw()) -
                                 static_cast<char*>(to->bytes().raw()));
    EXPECT_EQ(offset % TensorBlock::kPartAlignmentBytes, 0u);
  }
}

TEST(TensorBlock, ATensorKeepsTheBlock) {
  CachingAllocator allocator;
  Tensor part;
  {
    absl::StatusOr<TensorBlock> block = TensorBlock::Create(Like(), allocator);
    ASSERT_TRUE(block.ok());
    part = block->tensors()[2];
  }
  EXPECT_EQ(allocator.stats().bytes_in_use, TensorBlock::BytesOf(Like()));
  for (std::int64_t& number : part.span<std::int64_t>()) number = -1;
  part = Tensor();
  EXPECT_EQ(allocator.stats().bytes_in_use, 0u);
}

TEST(TensorBlock, RunningOutOfMemoryIsAnError) {
  auto memory = std::make_shared<LimitedMemory>();
  memory->bytes_max = 100;
  CachingAllocator allocator({/*cached_bytes_max=*/0, Device{}, memory});
  EXPECT_TRUE(absl::IsResourceExhausted(
      TensorBlock::Create(Like(), allocator).status()));
}

}  // namespace
}  // namespace troupe::nn
