#include "data/dataset.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Sample i has the inputs (i, epoch) and the class i % 3.
class Counting : public Dataset {
 public:
  explicit Counting(std::int64_t size)
      : Dataset(size, ClassificationSpec({2}, 3)) {}

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    for (std::size_t b = 0; b < indices.size(); ++b) {
      inputs.data<float>()[2 * b] = static_cast<float>(indices[b]);
      inputs.data<float>()[2 * b + 1] = static_cast<float>(epoch);
      targets.data<std::int64_t>()[b] = indices[b] % 3;
    }
    return absl::OkStatus();
  }
};

TEST(DatasetTest, FillsRowsInTheOrderAskedFor) {
  const Filled batch = FillFrom(Counting(10), {7, 0, 7}, /*epoch=*/4);
  ASSERT_TRUE(batch.status.ok()) << batch.status;
  EXPECT_THAT(ToVector<float>(batch.inputs), ElementsAre(7, 4, 0, 4, 7, 4));
  EXPECT_THAT(ToVector<std::int64_t>(batch.targets), ElementsAre(1, 0, 1));
}

TEST(DatasetTest, AnEmptyBatchIsFine) {
  const Filled batch = FillFrom(Counting(10), {});
  EXPECT_TRUE(batch.status.ok()) << batch.status;
  EXPECT_EQ(batch.inputs.shape(), nn::Shape({0, 2}));
}

TEST(DatasetTest, IndicesOutsideAreRefused) {
  for (std::int64_t bad : {std::int64_t{-1}, std::int64_t{10}, INT64_MIN}) {
    const absl::Status status = FillFrom(Counting(10), {3, bad}).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("of a dataset of 10 samples; use 0 to its size() - 1"));
  }
}

TEST(DatasetTest, TensorsThatDoNotFitAreRefused) {
  nn::CachingAllocator allocator;
  const Counting dataset(10);
  const auto good_x = nn::Tensor::Empty({2, 2}, nn::DType::kF32, allocator);
  const auto good_y = nn::Tensor::Empty({2}, nn::DType::kI64, allocator);
  const auto wide = nn::Tensor::Empty({2, 3}, nn::DType::kF32, allocator);
  const auto tall = nn::Tensor::Empty({3, 2}, nn::DType::kF32, allocator);
  const auto f64 = nn::Tensor::Empty({2, 2}, nn::DType::kF64, allocator);
  const auto meta = nn::Tensor::Meta({2, 2}, nn::DType::kF32, nn::Device());
  const auto i32 = nn::Tensor::Empty({2}, nn::DType::kI32, allocator);
  const std::vector<std::int64_t> two = {0, 1};
  EXPECT_TRUE(dataset.Fill(two, 0, good_x, good_y).ok());
  for (const nn::Tensor& bad : {wide, tall, f64, meta, nn::Tensor()}) {
    EXPECT_EQ(dataset.Fill(two, 0, bad, good_y).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(dataset.Fill(two, 0, good_x, i32).message(),
            "a batch of this dataset needs targets i64[2] in host memory, not "
            "i32[2] on cpu:0; make it by spec()");
}

TEST(SampleSpecTest, SaysItself) {
  EXPECT_EQ(ClassificationSpec({28, 28, 1}, 10).ToString(),
            "f32[28, 28, 1] -> class of 10");
  EXPECT_EQ(RegressionSpec({10}, 2).ToString(), "f32[10] -> f32[2]");
}

TEST(SampleSpecTest, AddsTheBatchAxis) {
  const SampleSpec spec = ClassificationSpec({28, 28, 1}, 10);
  EXPECT_EQ(spec.InputShape(5), nn::Shape({5, 28, 28, 1}));
  EXPECT_EQ(spec.TargetShape(5), nn::Shape({5}));
  EXPECT_EQ(RegressionSpec({10}, 2).TargetShape(5), nn::Shape({5, 2}));
}

}  // namespace
}  // namespace troupe::data
