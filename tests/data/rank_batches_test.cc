#include "data/rank_batches.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "data/batch_source.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using Numbers = std::vector<std::int64_t>;

RankBatchesOptions Cut(std::int64_t size, int world, std::int64_t batch_size,
                       bool drop_last = false) {
  RankBatchesOptions options;
  options.dataset_size = size;
  options.world = world;
  options.batch_size = batch_size;
  options.drop_last = drop_last;
  return options;
}

struct GlobalSamples {
  std::int64_t share;  // samples of a rank
  Numbers sorted;      // samples of all ranks
};

struct PyTorchCase {
  std::int64_t size;
  int world;
  std::int64_t batch_size;
  bool drop_last;
  std::vector<GlobalSamples> batches;
};

// Printed by golden/rank_batches.py with PyTorch 2.
const PyTorchCase kPyTorchBatches[] = {
    {10,
     4,
     1,
     false,
     {{1, {0, 1, 2, 3}}, {1, {4, 5, 6, 7}}, {1, {0, 1, 8, 9}}}},
    {10, 4, 1, true, {{1, {0, 1, 2, 3}}, {1, {4, 5, 6, 7}}}},
    {10, 4, 2, false, {{2, {0, 1, 2, 3, 4, 5, 6, 7}}, {1, {0, 1, 8, 9}}}},
    {10, 4, 2, true, {{2, {0, 1, 2, 3, 4, 5, 6, 7}}}},
    {10, 4, 3, false, {{3, {0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}},
    {10, 4, 3, true, {}},
    {16,
     2,
     4,
     false,
     {{4, {0, 1, 2, 3, 4, 5, 6, 7}}, {4, {8, 9, 10, 11, 12, 13, 14, 15}}}},
    {16,
     2,
     4,
     true,
     {{4, {0, 1, 2, 3, 4, 5, 6, 7}}, {4, {8, 9, 10, 11, 12, 13, 14, 15}}}},
    {9, 2, 4, false, {{4, {0, 1, 2, 3, 4, 5, 6, 7}}, {1, {0, 8}}}},
    {9, 2, 4, true, {{4, {0, 1, 2, 3, 4, 5, 6, 7}}}},
    {15,
     2,
     4,
     false,
     {{4, {0, 1, 2, 3, 4, 5, 6, 7}}, {4, {0, 8, 9, 10, 11, 12, 13, 14}}}},
    {15, 2, 4, true, {{4, {0, 1, 2, 3, 4, 5, 6, 7}}}},
    {3, 8, 2, false, {{1, {0, 0, 0, 1, 1, 1, 2, 2}}}},
    {3, 8, 2, true, {}},
    {7, 1, 3, false, {{3, {0, 1, 2}}, {3, {3, 4, 5}}, {1, {6}}}},
    {7, 1, 3, true, {{3, {0, 1, 2}}, {3, {3, 4, 5}}}},
    {7, 3, 2, false, {{2, {0, 1, 2, 3, 4, 5}}, {1, {0, 1, 6}}}},
    {7, 3, 2, true, {{2, {0, 1, 2, 3, 4, 5}}}},
};

TEST(RankBatchesTest, HasPyTorchsGlobalBatches) {
  for (const PyTorchCase& c : kPyTorchBatches) {
    SCOPED_TRACE(testing::Message()
                 << c.size << " samples, " << c.world << " ranks of "
                 << c.batch_size << (c.drop_last ? ", drop_last" : ""));
    std::vector<RankBatches> ranks;
    for (int rank = 0; rank < c.world; ++rank) {
      RankBatchesOptions options =
          Cut(c.size, c.world, c.batch_size, c.drop_last);
      options.rank = rank;
      absl::StatusOr<RankBatches> made = RankBatches::Create(options);
      if (c.batches.empty()) {
        EXPECT_FALSE(made.ok());
        continue;
      }
      ASSERT_TRUE(made.ok()) << made.status();
      ranks.push_back(*std::move(made));
    }
    if (c.batches.empty()) continue;
    for (std::size_t i = 0; i < c.batches.size(); ++i) {
      Numbers all;
      for (RankBatches& rank : ranks) {
        ASSERT_EQ(rank.size(), static_cast<std::int64_t>(c.batches.size()));
        const RankBatch batch = rank.At(static_cast<std::int64_t>(i));
        EXPECT_EQ(static_cast<std::int64_t>(batch.indices.size()),
                  c.batches[i].share);
        // The ranks' shares follow each other.
        EXPECT_EQ(batch.position, static_cast<std::int64_t>(all.size()));
        all.insert(all.end(), batch.indices.begin(), batch.indices.end());
        EXPECT_EQ(batch.global_batch_size, c.batches[i].share * c.world);
      }
      std::sort(all.begin(), all.end());
      EXPECT_EQ(all, c.batches[i].sorted);
    }
  }
}

// Whole batches are those that a job's loader reads.
TEST(RankBatchesTest, HasTheBatchesOfAJob) {
  nn::CachingAllocator allocator;
  constexpr std::int64_t kSamples = 53;
  Numbers values(kSamples);
  for (std::int64_t i = 0; i < kSamples; ++i) values[i] = i;
  const auto x = nn::Tensor::Of<std::int64_t>({kSamples, 1}, values, allocator);
  const DatasetPtr dataset = *MakeInMemoryDataset(x, x, 0);
  for (const bool drop_last : {true, false}) {
    for (int world : {1, 2, 4}) {
      for (int rank = 0; rank < world; ++rank) {
        RankBatchesOptions options = Cut(kSamples, world, 4, drop_last);
        options.rank = rank;
        options.seed = 11;
        options.shuffle = true;
        RankBatches mine = *RankBatches::Create(options);
        SamplerOptions sampler;
        sampler.global_batch_size = 4 * world;
        sampler.seed = 11;
        BatchSource job =
            *BatchSource::Create(dataset, sampler, {rank, world, 4}, allocator);
        const std::int64_t whole = job.sampler().batches_per_epoch();
        EXPECT_EQ(mine.size(), whole + (drop_last ? 0 : 1));
        std::vector<Batch> batches;
        for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
          mine.SetEpoch(epoch);
          for (std::int64_t i = 0; i < whole; ++i) {
            ASSERT_TRUE(job.Next(batches).ok());
            ASSERT_EQ(batches.size(), 1u);
            const RankBatch batch = mine.At(i);
            EXPECT_EQ(batch.indices, ToVector<std::int64_t>(batches[0].inputs));
            EXPECT_EQ(batch.epoch, batches[0].epoch);
            EXPECT_EQ(batch.position, batches[0].position);
            EXPECT_EQ(batch.global_batch_size, batches[0].global_batch_size);
          }
        }
      }
    }
  }
}

TEST(RankBatchesTest, SaysWhatIsWrong) {
  const auto error = [](const RankBatchesOptions& options) {
    return std::string(RankBatches::Create(options).status().message());
  };
  RankBatchesOptions options = Cut(10, 4, 1);
  options.rank = 4;
  EXPECT_EQ(error(options), "rank 4 is not one of 4 ranks; count ranks from 0");
  EXPECT_EQ(error(Cut(10, 4, 0)), "batch_size (0) must be at least 1");
  EXPECT_EQ(error(Cut(0, 1, 1)),
            "the dataset has 0 samples; use one with at least 1");
  EXPECT_EQ(error(Cut(10, 4, std::numeric_limits<std::int64_t>::max() / 2)),
            "batch_size (4611686018427387903) of 4 ranks is more samples than "
            "can be counted; lower it");
  EXPECT_EQ(error(Cut(10, 4, 3, /*drop_last=*/true)),
            "batch_size (3) of 4 ranks is more than the 10 samples of an "
            "epoch, and drop_last leaves none; lower batch_size or unset "
            "drop_last");
}

}  // namespace
}  // namespace troupe::data
