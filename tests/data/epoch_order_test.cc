#include "data/epoch_order.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> OrderOf(std::int64_t size, std::uint64_t seed,
                                  std::int64_t epoch, bool shuffle = true) {
  std::vector<std::int64_t> order = {77, 77};  // old values are discarded
  EpochOrder(size, seed, epoch, shuffle, order);
  return order;
}

TEST(EpochOrderTest, IsTheIdentityWithoutShuffling) {
  EXPECT_THAT(OrderOf(4, 1, 2, /*shuffle=*/false), ElementsAre(0, 1, 2, 3));
}

TEST(EpochOrderTest, IsAPermutation) {
  for (std::int64_t size : {0, 1, 2, 3, 64, 1000}) {
    std::vector<std::int64_t> order = OrderOf(size, 5, 0);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, OrderOf(size, 5, 0, /*shuffle=*/false));
  }
}

TEST(EpochOrderTest, DependsOnSeedAndEpoch) {
  EXPECT_EQ(OrderOf(100, 1, 1), OrderOf(100, 1, 1));
  EXPECT_NE(OrderOf(100, 1, 1), OrderOf(100, 1, 2));
  // Unlike a generator seeded by seed + epoch.
  EXPECT_NE(OrderOf(100, 1, 1), OrderOf(100, 2, 0));
}

// A change of this order changes every training run.
TEST(EpochOrderTest, IsTheSameAsEver) {
  EXPECT_THAT(OrderOf(10, 0, 0), ElementsAre(9, 6, 1, 2, 4, 7, 8, 5, 0, 3));
}

}  // namespace
}  // namespace troupe::data
