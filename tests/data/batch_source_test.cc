#include "data/batch_source.h"

#include <numeric>

#include "data/in_memory_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;

// A dataset whose sample i is the number i, with target i.
DatasetPtr Numbers(std::int64_t count) {
  nn::CachingAllocator allocator;
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto x = nn::Tensor::Of<float>({count, 1}, values, allocator);
  return *MakeInMemoryDataset(x, x, 0);
}

SamplerOptions Ordered(std::int64_t batch, bool drop_last = true) {
  SamplerOptions options;
  options.global_batch_size = batch;
  options.shuffle = false;
  options.drop_last = drop_last;
  return options;
}

class BatchSourceTest : public testing::Test {
 protected:
  BatchSource Make(std::int64_t size, const SamplerOptions& options,
                   const Share& share) {
    auto source = BatchSource::Create(Numbers(size), options, share, allocator);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  EvaluationSource Evaluate(std::int64_t size, const Share& share) {
    auto source = EvaluationSource::Create(Numbers(size), share, allocator);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }

  nn::CachingAllocator allocator;
  std::vector<Batch> batches;
};

TEST_F(BatchSourceTest, GivesARankItsBlockOfMicroBatches) {
  BatchSource source = Make(16, Ordered(8), {/*rank=*/1, /*world=*/2, 2});
  EXPECT_EQ(source.micro_batches_per_step(), 2);
  ASSERT_TRUE(source.Next(batches).ok());
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_THAT(ToVector<float>(batches[0].inputs), ElementsAre(4, 5));
  EXPECT_THAT(ToVector<float>(batches[1].inputs), ElementsAre(6, 7));
  EXPECT_THAT(ToVector<float>(batches[1].targets), ElementsAre(6, 7));
  EXPECT_EQ(batches[1].position, 6);
  EXPECT_EQ(batches[1].global_batch_size, 8);
  EXPECT_EQ(batches[1].size(), 2);
  ASSERT_TRUE(source.Next(batches).ok());
  EXPECT_THAT(ToVector<float>(batches[0].inputs), ElementsAre(12, 13));
  ASSERT_TRUE(source.Next(batches).ok());
  EXPECT_EQ(batches[0].epoch, 1);
}

TEST_F(BatchSourceTest, TheLastMicroBatchOfAStepHasTheRest) {
  BatchSource source = Make(20, Ordered(10), {/*rank=*/1, /*world=*/2, 2});
  EXPECT_EQ(source.micro_batches_per_step(), 3);
  ASSERT_TRUE(source.At(1, batches).ok());
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_THAT(ToVector<float>(batches[0].inputs), ElementsAre(15, 16));
  EXPECT_THAT(ToVector<float>(batches[1].inputs), ElementsAre(17, 18));
  EXPECT_THAT(ToVector<float>(batches[2].inputs), ElementsAre(19));
  EXPECT_EQ(batches[2].position, 9);
}

TEST_F(BatchSourceTest, AnyNumberOfWorkersMakesTheSameBatches) {
  SamplerOptions options = Ordered(12, /*drop_last=*/false);
  options.shuffle = true;
  Share share = {/*rank=*/0, /*world=*/1, /*micro_batch_size=*/4};
  BatchSource one = Make(50, options, share);
  for (const int workers : {2, 3, 16}) {
    share.workers = workers;
    BatchSource several = Make(50, options, share);
    std::vector<Batch> expected;
    for (int step = 0; step < 6; ++step) {
      ASSERT_TRUE(one.At(step, expected).ok());
      ASSERT_TRUE(several.At(step, batches).ok());
      ASSERT_EQ(batches.size(), expected.size());
      for (std::size_t m = 0; m < batches.size(); ++m) {
        EXPECT_TRUE(nn::BitEqual(batches[m].inputs, expected[m].inputs));
        EXPECT_TRUE(nn::BitEqual(batches[m].targets, expected[m].targets));
        EXPECT_EQ(batches[m].epoch, expected[m].epoch);
      }
    }
    EXPECT_EQ(ToVector<float>(Evaluate(50, share).At(12)->inputs),
              ToVector<float>(Evaluate(50, {0, 1, 4}).At(12)->inputs));
  }
}

// A dataset whose odd samples cannot be read.
class OddFails : public Dataset {
 public:
  OddFails() : Dataset(8, RegressionSpec({1}, 1)) {}

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices, std::int64_t,
                      const nn::Tensor&, const nn::Tensor&) const override {
    for (const std::int64_t index : indices) {
      if (index % 2 == 0) continue;
      return absl::DataLossError("sample " + std::to_string(index));
    }
    return absl::OkStatus();
  }
};

TEST_F(BatchSourceTest, TheFirstErrorIsTheOneThatIsTold) {
  for (const int workers : {1, 4}) {
    auto source = BatchSource::Create(std::make_shared<OddFails>(), Ordered(8),
                                      {0, 1, 4, workers}, allocator);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(source->Next(batches).message(), "sample 1");
  }
  EXPECT_EQ(BatchSource::Create(std::make_shared<OddFails>(), Ordered(8),
                                {0, 1, 4, /*workers=*/0}, allocator)
                .status()
                .message(),
            "workers (0) must be at least 1");
}

TEST_F(BatchSourceTest, BatchesLiveOnWhileTheSourceGoesOn) {
  BatchSource source = Make(16, Ordered(8), {0, 1, 8});
  ASSERT_TRUE(source.Next(batches).ok());
  const Batch kept = batches[0];
  ASSERT_TRUE(source.Next(batches).ok());
  EXPECT_EQ(kept.inputs.data<float>()[0], 0);
  EXPECT_EQ(batches[0].inputs.data<float>()[0], 8);
}

// Returns the samples of the next `steps` steps, over all ranks in order.
std::vector<float> SeenBy(int world, std::int64_t micro,
                          const SamplerState* state, int steps) {
  nn::CachingAllocator allocator;
  SamplerOptions options;
  options.global_batch_size = 12;
  options.drop_last = false;
  std::vector<BatchSource> sources;
  for (int rank = 0; rank < world; ++rank) {
    sources.push_back(*BatchSource::Create(Numbers(50), options,
                                           {rank, world, micro}, allocator));
    if (state) {
      EXPECT_TRUE(sources.back().Load(*state).ok());
    }
  }
  std::vector<float> seen;
  std::vector<Batch> batches;
  for (int step = 0; step < steps; ++step) {
    for (BatchSource& source : sources) {
      EXPECT_TRUE(source.Next(batches).ok());
      for (const Batch& batch : batches) {
        for (float value : batch.inputs.span<float>()) seen.push_back(value);
      }
    }
  }
  return seen;
}

TEST_F(BatchSourceTest, ResumesUnderAnyWidth) {
  const std::vector<float> whole = SeenBy(1, 12, nullptr, 20);
  SamplerOptions options;
  options.global_batch_size = 12;
  options.drop_last = false;
  const BatchSource source = Make(50, options, {0, 1, 12});
  for (int stop : {0, 1, 4, 5, 7}) {
    const SamplerState state = source.StateAt(stop);
    const std::size_t done = SeenBy(1, 12, nullptr, stop).size();
    for (int world : {1, 2, 3, 6}) {
      const std::vector<float> rest = SeenBy(world, 2, &state, 20 - stop);
      EXPECT_EQ(rest, std::vector<float>(whole.begin() + done, whole.end()))
          << world << " ranks from step " << stop;
    }
  }
}

TEST_F(BatchSourceTest, AtDoesNotMoveNext) {
  BatchSource source = Make(16, Ordered(4), {0, 1, 4});
  ASSERT_TRUE(source.At(3, batches).ok());
  EXPECT_THAT(ToVector<float>(batches[0].inputs), ElementsAre(12, 13, 14, 15));
  EXPECT_EQ(source.state(), source.StateAt(0));
  ASSERT_TRUE(source.Next(batches).ok());
  EXPECT_THAT(ToVector<float>(batches[0].inputs), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(source.state(), source.StateAt(1));
}

TEST_F(BatchSourceTest, AShortLastBatchKeepsTheNumberOfMicroBatches) {
  BatchSource source = Make(10, Ordered(8, /*drop_last=*/false), {1, 2, 2});
  ASSERT_TRUE(source.At(1, batches).ok());  // samples 8 and 9
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].size(), 0);
  EXPECT_THAT(ToVector<float>(batches[1].inputs), ElementsAre(9));
  EXPECT_EQ(batches[1].position, 1);
  EXPECT_EQ(batches[1].global_batch_size, 2);
}

TEST_F(BatchSourceTest, RefusesWhatDoesNotFit) {
  const auto create = [&](const SamplerOptions& options, const Share& share) {
    return BatchSource::Create(Numbers(16), options, share, allocator)
        .status()
        .code();
  };
  const auto bad = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(create(Ordered(8), {0, 9, 1}), bad);
  EXPECT_EQ(create(Ordered(8), {2, 2, 2}), bad);
  EXPECT_EQ(create(Ordered(8), {-1, 2, 2}), bad);
  EXPECT_EQ(create(Ordered(8), {0, 1, 0}), bad);
  EXPECT_EQ(create(Ordered(17), {0, 1, 17}), bad);
  EXPECT_EQ(create(Ordered(8), {1, 2, 2}), absl::StatusCode::kOk);
}

TEST_F(BatchSourceTest, EvaluationSeesEverySampleOnceInOrder) {
  for (int world : {1, 2, 3, 4, 13}) {
    std::vector<float> seen;
    for (int rank = 0; rank < world; ++rank) {
      const EvaluationSource source = Evaluate(10, {rank, world, 3});
      for (std::int64_t i = 0; i < source.batch_count(); ++i) {
        const auto batch = source.At(i);
        ASSERT_TRUE(batch.ok()) << batch.status();
        EXPECT_EQ(batch->position, static_cast<std::int64_t>(seen.size()));
        EXPECT_LE(batch->size(), 3);
        EXPECT_GE(batch->size(), 1);
        for (float v : batch->inputs.span<float>()) seen.push_back(v);
      }
    }
    EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
}

// Ranks of 0 and of 1 sample, and of 4 and of 3.
TEST_F(BatchSourceTest, RanksWithFewerSamplesMayHaveAsManyBatches) {
  for (const std::int64_t size : {2, 10}) {
    std::vector<float> seen;
    for (int rank = 0; rank < 3; ++rank) {
      Share share = {rank, /*world=*/3, /*micro_batch_size=*/3};
      share.even_batches = true;
      const EvaluationSource source = Evaluate(size, share);
      ASSERT_EQ(source.batch_count(), size == 2 ? 1 : 2);
      for (std::int64_t i = 0; i < source.batch_count(); ++i) {
        const auto batch = source.At(i);
        ASSERT_TRUE(batch.ok()) << batch.status();
        EXPECT_EQ(batch->global_batch_size, size);
        for (float v : batch->inputs.span<float>()) seen.push_back(v);
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), size);
  }
}

}  // namespace
}  // namespace troupe::data
