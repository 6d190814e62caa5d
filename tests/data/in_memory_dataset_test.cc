#include "data/in_memory_dataset.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

nn::Tensor Inputs(nn::Allocator& allocator) {
  return nn::Tensor::Of<float>({3, 2}, {0, 1, 10, 11, 20, 21}, allocator);
}

TEST(InMemoryDatasetTest, GathersClasses) {
  nn::CachingAllocator allocator;
  const auto targets = nn::Tensor::Of<std::int64_t>({3}, {2, 0, 1}, allocator);
  const auto dataset = MakeInMemoryDataset(Inputs(allocator), targets, 3);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 3);
  EXPECT_EQ((*dataset)->spec(), ClassificationSpec({2}, 3));
  const Filled batch = FillFrom(**dataset, {2, 0, 2});
  ASSERT_TRUE(batch.status.ok()) << batch.status;
  EXPECT_THAT(ToVector<float>(batch.inputs), ElementsAre(20, 21, 0, 1, 20, 21));
  EXPECT_THAT(ToVector<std::int64_t>(batch.targets), ElementsAre(1, 2, 1));
}

TEST(InMemoryDatasetTest, GathersVectors) {
  nn::CachingAllocator allocator;
  const auto targets = nn::Tensor::Of<float>({3, 1}, {5, 6, 7}, allocator);
  const auto dataset = MakeInMemoryDataset(Inputs(allocator), targets, 0);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec(), RegressionSpec({2}, 1));
  const Filled batch = FillFrom(**dataset, {1});
  EXPECT_THAT(ToVector<float>(batch.inputs), ElementsAre(10, 11));
  EXPECT_THAT(ToVector<float>(batch.targets), ElementsAre(6));
}

TEST(InMemoryDatasetTest, GathersSequencesOfTokens) {
  nn::CachingAllocator allocator;
  const auto tokens =
      nn::Tensor::Of<std::int64_t>({2, 2}, {1, 2, 3, 4}, allocator);
  const auto dataset = MakeInMemoryDataset(tokens, tokens, 5);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().ToString(), "i64[2] -> i64[2] of 5 classes");
  EXPECT_THAT(ToVector<std::int64_t>(FillFrom(**dataset, {1}).targets),
              ElementsAre(3, 4));
}

TEST(InMemoryDatasetTest, RefusesWhatDoesNotFit) {
  nn::CachingAllocator allocator;
  const auto x = Inputs(allocator);
  const auto few = nn::Tensor::Of<std::int64_t>({2}, {0, 1}, allocator);
  const auto high = nn::Tensor::Of<std::int64_t>({3}, {0, 3, 1}, allocator);
  const auto scalar = nn::Tensor::Of<std::int64_t>({}, {0}, allocator);
  EXPECT_EQ(MakeInMemoryDataset(x, few, 2).status().message(),
            "3 rows of inputs but 2 rows of targets; give as many of both");
  EXPECT_EQ(MakeInMemoryDataset(x, high, 3).status().message(),
            "target 1 is 3, not a class below 3; number classes from 0");
  EXPECT_THAT(std::string(MakeInMemoryDataset(x, x, 3).status().message()),
              HasSubstr("must be i64 class numbers"));
  EXPECT_FALSE(MakeInMemoryDataset(x, scalar, 3).ok());
  EXPECT_FALSE(MakeInMemoryDataset(nn::Tensor(), high, 3).ok());
}

}  // namespace
}  // namespace troupe::data
