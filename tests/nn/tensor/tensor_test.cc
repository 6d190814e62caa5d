#include "nn/tensor/tensor.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/usage_error.h"
#include "gtest/gtest.h"
#include "tests/nn/testing/limited_memory.h"

namespace troupe::nn {
namespace {

Tensor Counting(const Shape& shape, Allocator& allocator) {
  Tensor t = Tensor::Empty(shape, DType::kF32, allocator);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    t.data<float>()[i] = static_cast<float>(i);
  }
  return t;
}

TEST(Tensor, CopiesShareElements) {
  CachingAllocator allocator;
  Tensor a = Tensor::Zeros({2, 3}, DType::kF32, allocator);
  Tensor b = a;
  b.data<float>()[4] = 7;
  EXPECT_EQ(a.data<float>()[4], 7);
  EXPECT_EQ(a.bytes(), 24u);
  EXPECT_EQ(a.ToString(), "f32[2, 3] on cpu:0");
}

TEST(Tensor, OwnsAloneWhatNobodyElseRefersTo) {
  CachingAllocator allocator;
  Tensor a = Tensor::Zeros({2, 3}, DType::kF32, allocator);
  EXPECT_TRUE(a.owns_alone());
  {
    const Tensor view = a.Slice(0, 1);
    EXPECT_FALSE(a.owns_alone());
    EXPECT_FALSE(view.owns_alone());
  }
  EXPECT_TRUE(a.owns_alone());
  const Tensor moved = std::move(a);
  EXPECT_TRUE(moved.owns_alone());
  EXPECT_FALSE(Tensor().owns_alone());
  EXPECT_FALSE(Tensor::Meta({2}, DType::kF32, Device{}).owns_alone());
  float number = 1;
  EXPECT_FALSE(
      Tensor::Borrow(&number, {1}, DType::kF32, Device{}).owns_alone());
}

TEST(Tensor, ViewsAndSlicesShareMemory) {
  CachingAllocator allocator;
  Tensor t = Counting({4, 3, 2}, allocator);
  Tensor rows = t.Slice(1, 3);
  EXPECT_EQ(rows.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(rows.data<float>()[0], 6);
  Tensor inner = rows.Slice(1, 2).View({6});
  EXPECT_EQ(inner.data<float>()[5], 17);
  inner.data<float>()[5] = -1;
  EXPECT_EQ(t.data<float>()[17], -1);
  Tensor flat = t.FlatView(5, {2, 2});
  EXPECT_EQ(flat.data<float>()[3], 8);
  EXPECT_EQ(t.Slice(4, 4).numel(), 0);
}

TEST(Tensor, HoldsMemoryAsLongAsAnyViewLives) {
  CachingAllocator allocator;
  Tensor view;
  {
    Tensor t = Counting({100}, allocator);
    view = t.Slice(50, 51);
  }
  EXPECT_GT(allocator.stats().bytes_in_use, 0u);
  EXPECT_EQ(view.data<float>()[0], 50);
  view = Tensor();
  EXPECT_EQ(allocator.stats().bytes_in_use, 0u);
}

TEST(Tensor, SmallTemporariesTakeTurnsInOneBlock) {
  CachingAllocator allocator;
  for (const std::int64_t count : {16384, 1, 5000, 12288}) {
    const Tensor t = *Tensor::Temporary({count}, DType::kF32, allocator);
    EXPECT_EQ(t.shape(), Shape{count});
    EXPECT_EQ(t.span<float>().size(), static_cast<std::size_t>(count));
  }
  EXPECT_EQ(allocator.stats().system_allocations, 1);
  EXPECT_EQ(Tensor::Temporary({16385}, DType::kF32, allocator)->numel(), 16385);
}

TEST(Tensor, MetaHasAShapeAndNoMemory) {
  Tensor meta = Tensor::Meta({3, 5}, DType::kF64, Device{});
  EXPECT_TRUE(meta.defined());
  EXPECT_TRUE(meta.is_meta());
  EXPECT_EQ(meta.numel(), 15);
  EXPECT_EQ(meta.ToString(), "f64[3, 5] on cpu:0 (meta)");
  EXPECT_FALSE(Tensor().defined());
  EXPECT_EQ(Tensor().ToString(), "undefined");
}

TEST(Tensor, OfCopiesValues) {
  CachingAllocator allocator;
  Tensor t = Tensor::Of<std::int64_t>({3}, {4, 5, 6}, allocator);
  EXPECT_EQ(t.dtype(), DType::kI64);
  EXPECT_EQ(t.span<std::int64_t>()[2], 6);
}

TEST(Tensor, DetachedForgetsItsTape) {
  CachingAllocator allocator;
  Tensor t = Counting({2}, allocator);
  t.set_tape_ref({3, 1});
  EXPECT_EQ(t.Slice(0, 1).tape_ref().tape, 3u);
  EXPECT_EQ(t.Detached().tape_ref().tape, 0u);
  EXPECT_EQ(t.Detached().raw(), t.raw());
}

TEST(BitEqual, ComparesBitsNotValues) {
  CachingAllocator allocator;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Tensor a = Tensor::Of<float>({2}, {nan, 0.0f}, allocator);
  EXPECT_TRUE(BitEqual(a, Tensor::Of<float>({2}, {nan, 0.0f}, allocator)));
  EXPECT_FALSE(BitEqual(a, Tensor::Of<float>({2}, {nan, -0.0f}, allocator)));
  EXPECT_FALSE(BitEqual(a, a.View({2, 1})));
}

// Returns the message that `use` throws.
template <typename Use>
std::string Refusal(const Use& use) {
  try {
    use();
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Tensor, WrongUseThrowsASentence) {
  CachingAllocator allocator;
  Tensor t = Counting({4}, allocator);
  EXPECT_EQ(Refusal([&] { t.data<double>(); }),
            "f32[4] on cpu:0 has no elements of f64");
  EXPECT_EQ(Refusal([&] { t.View({5}); }),
            "f32[4] on cpu:0 has no view [5]: that has another number of "
            "elements");
  EXPECT_EQ(Refusal([&] { t.Slice(2, 5); }),
            "f32[4] on cpu:0 has no rows [2, 5) of the first axis");
  EXPECT_EQ(Refusal([&] { t.Slice(-1, 2); }),
            "f32[4] on cpu:0 has no rows [-1, 2) of the first axis");
  EXPECT_EQ(Refusal([&] { t.FlatView(2, {3}); }),
            "f32[4] on cpu:0 has no [3] from element 2 on");
  EXPECT_EQ(Refusal([&] { Tensor().data<float>(); }),
            "undefined has no memory");
}

TEST(Tensor, CreateNamesWhatThereIsNoMemoryFor) {
  auto memory = std::make_shared<LimitedMemory>();
  memory->bytes_max = 0;
  CachingAllocator allocator({/*cached_bytes_max=*/0, Device{}, memory});
  EXPECT_EQ(Tensor::Create({3, 5}, DType::kBF16, allocator).status(),
            absl::ResourceExhaustedError(
                "bf16[3, 5]: cpu:0 has no memory for 30 bytes: tensors hold 0 "
                "bytes of it, 0 bytes are free, nothing is cached"));
}

// Memory that the host may not access.
class DeviceOnly : public LimitedMemory {
 public:
  bool host_accessible() const override { return false; }
};

TEST(Tensor, TheHostMayNotTouchADevicesMemory) {
  CachingAllocator allocator({/*cached_bytes_max=*/0,
                              Device{DeviceType::kCuda, 1},
                              std::make_shared<DeviceOnly>()});
  const Tensor t = *Tensor::Create({2, 3}, DType::kF32, allocator);
  EXPECT_FALSE(t.host_accessible());
  EXPECT_NE(t.device_data(), nullptr);
  EXPECT_EQ(Refusal([&] { t.data<float>(); }),
            "f32[2, 3] on cuda:1 is not memory of the host; copy it there "
            "first (nn/kernels/device_queues.h)");
  EXPECT_EQ(Refusal([&] { t.Slice(0, 1).raw(); }).substr(0, 33),
            "f32[1, 3] on cuda:1 is not memory");
  const Tensor meta = Tensor::Meta({4}, DType::kF32, Device{});
  EXPECT_EQ(Refusal([&] { meta.raw(); }),
            "f32[4] on cpu:0 (meta) has no memory: in a shape-only forward, "
            "ask Context::computes() before touching elements");
}

}  // namespace
}  // namespace troupe::nn
