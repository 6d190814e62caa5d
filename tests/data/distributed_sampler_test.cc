#include "data/distributed_sampler.h"

#include "data/epoch_order.h"
#include "gtest/gtest.h"

namespace troupe::data {
namespace {

using Order = std::vector<std::int64_t>;

DistributedSampler Make(std::int64_t size, int rank, int world, bool shuffle,
                        bool drop_last) {
  DistributedSamplerOptions options;
  options.dataset_size = size;
  options.rank = rank;
  options.world = world;
  options.shuffle = shuffle;
  options.drop_last = drop_last;
  const auto sampler = DistributedSampler::Create(options);
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return *sampler;
}

struct Case {
  std::int64_t size;
  int world;
  bool drop_last;
  std::vector<Order> ranks;
};

// Printed by golden/distributed_sampler.py with PyTorch 2.
const Case kPyTorch[] = {
    {10, 4, false, {{0, 4, 8}, {1, 5, 9}, {2, 6, 0}, {3, 7, 1}}},
    {10, 4, true, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
    {8, 4, false, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
    {8, 4, true, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
    {3, 8, false, {{0}, {1}, {2}, {0}, {1}, {2}, {0}, {1}}},
    {3, 8, true, {{}, {}, {}, {}, {}, {}, {}, {}}},
    {1, 3, false, {{0}, {0}, {0}}},
    {1, 3, true, {{}, {}, {}}},
    {7, 1, false, {{0, 1, 2, 3, 4, 5, 6}}},
    {7, 1, true, {{0, 1, 2, 3, 4, 5, 6}}},
    {5, 2, false, {{0, 2, 4}, {1, 3, 0}}},
    {5, 2, true, {{0, 2}, {1, 3}}},
};

TEST(DistributedSamplerTest, GivesPyTorchsOrders) {
  for (const Case& c : kPyTorch) {
    for (int rank = 0; rank < c.world; ++rank) {
      const DistributedSampler sampler =
          Make(c.size, rank, c.world, /*shuffle=*/false, c.drop_last);
      EXPECT_EQ(sampler.Indices(), c.ranks[rank])
          << c.size << " samples, rank " << rank << " of " << c.world;
      EXPECT_EQ(sampler.num_samples(),
                static_cast<std::int64_t>(c.ranks[rank].size()));
    }
  }
}

TEST(DistributedSamplerTest, ShardsOfAShuffledEpochInterleaveToItsOrder) {
  for (std::int64_t epoch : {0, 1, 9}) {
    Order order;
    EpochOrder(10, /*seed=*/0, epoch, /*shuffle=*/true, order);
    for (int rank = 0; rank < 4; ++rank) {
      DistributedSampler sampler = Make(10, rank, 4, true, false);
      sampler.SetEpoch(epoch);
      const Order indices = sampler.Indices();
      for (std::size_t i = 0; i < indices.size(); ++i) {
        EXPECT_EQ(indices[i], order[(4 * i + rank) % 10]);
      }
    }
  }
}

TEST(DistributedSamplerTest, AnEmptyDatasetGivesNothing) {
  EXPECT_TRUE(Make(0, 0, 2, true, false).Indices().empty());
}

TEST(DistributedSamplerTest, RefusesImpossibleRanks) {
  DistributedSamplerOptions options;
  options.rank = 2;
  options.world = 2;
  EXPECT_EQ(DistributedSampler::Create(options).status().message(),
            "rank 2 is not one of 2 ranks; count ranks from 0");
  options.rank = -1;
  EXPECT_FALSE(DistributedSampler::Create(options).ok());
  options.rank = 0;
  options.dataset_size = -1;
  EXPECT_FALSE(DistributedSampler::Create(options).ok());
}

}  // namespace
}  // namespace troupe::data
