#include "data/subset.h"

#include "data/in_memory_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;

// Sample i is the number 10 * i.
DatasetPtr Tens() {
  nn::CachingAllocator allocator;
  const auto x = nn::Tensor::Of<float>({5, 1}, {0, 10, 20, 30, 40}, allocator);
  return *MakeInMemoryDataset(x, x, 0);
}

TEST(SubsetTest, RenumbersSamples) {
  const auto subset = MakeSubset(Tens(), {4, 1, 1});
  ASSERT_TRUE(subset.ok()) << subset.status();
  EXPECT_EQ((*subset)->size(), 3);
  EXPECT_THAT(ToVector<float>(FillFrom(**subset, {0, 2}).inputs),
              ElementsAre(40, 10));
  EXPECT_EQ(FillFrom(**subset, {3}).status.code(),
            absl::StatusCode::kOutOfRange);
}

TEST(SubsetTest, TakesARange) {
  const auto subset = MakeSubset(Tens(), 2, 4);
  ASSERT_TRUE(subset.ok()) << subset.status();
  EXPECT_THAT(ToVector<float>(FillFrom(**subset, {0, 1}).inputs),
              ElementsAre(20, 30));
}

TEST(SubsetTest, RefusesSamplesThatAreNotThere) {
  EXPECT_EQ(MakeSubset(Tens(), {0, 5}).status().message(),
            "a subset asks for sample 5 of a dataset of 5 samples; ask for 0 "
            "to its size() - 1");
  EXPECT_FALSE(MakeSubset(Tens(), {-1}).ok());
  EXPECT_FALSE(MakeSubset(Tens(), 3, 6).ok());
  EXPECT_FALSE(MakeSubset(Tens(), 3, 2).ok());
}

}  // namespace
}  // namespace troupe::data
