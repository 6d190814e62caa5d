#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "data/epoch_order.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Order = std::vector<std::int64_t>;

SamplerOptions Options(std::int64_t size, std::int64_t batch,
                       bool drop_last = true) {
  SamplerOptions options;
  options.dataset_size = size;
  options.global_batch_size = batch;
  options.seed = 11;
  options.drop_last = drop_last;
  return options;
}

Sampler Make(const SamplerOptions& options) {
  auto sampler = Sampler::Create(options);
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return *std::move(sampler);
}

// The samples of the next `steps` batches.
std::vector<Order> Take(Sampler& sampler, int steps) {
  std::vector<Order> taken;
  for (int i = 0; i < steps; ++i) {
    const auto indices = sampler.Indices(sampler.Next());
    taken.emplace_back(indices.begin(), indices.end());
  }
  return taken;
}

Order Joined(const std::vector<Order>& batches) {
  Order all;
  for (const Order& batch : batches) {
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(BlockOfTest, CutsEvenly) {
  EXPECT_EQ(BlockOf(8, 1, 4), (Range{2, 4}));
  EXPECT_EQ(BlockOf(10, 0, 4), (Range{0, 2}));
  EXPECT_EQ(BlockOf(10, 1, 4), (Range{2, 5}));
  EXPECT_EQ(BlockOf(1, 0, 3), (Range{0, 0}));
  EXPECT_EQ(BlockOf(1, 2, 3), (Range{0, 1}));
  EXPECT_EQ(BlockOf(INT64_MAX, 6, 7).end, INT64_MAX);
  for (std::int64_t count : {0, 1, 5, 64, 1000}) {
    for (std::int64_t parts : {1, 2, 3, 7, 16, 100}) {
      std::int64_t at = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        const Range block = BlockOf(count, part, parts);
        EXPECT_EQ(block.begin, at);
        EXPECT_GE(block.size(), count / parts);
        EXPECT_LE(block.size(), (count + parts - 1) / parts);
        at = block.end;
      }
      EXPECT_EQ(at, count);
    }
  }
}

// The positions of all micro-batches in a global batch of `samples`.
std::vector<Range> Cut(const MicroBatchCuts& cuts, int world,
                       std::int64_t samples) {
  std::vector<Range> ranges;
  for (int rank = 0; rank < world; ++rank) {
    const Range numbers = cuts.NumbersOf(rank);
    EXPECT_EQ(numbers.size(), cuts.per_rank());
    for (std::int64_t m = numbers.begin; m < numbers.end; ++m) {
      ranges.push_back(cuts.PositionsOf(m, samples));
    }
  }
  return ranges;
}

TEST(MicroBatchCutsTest, TheLastOfARankHasTheRest) {
  EXPECT_EQ(MicroBatchCuts::Create(64, 8, 4)->per_rank(), 2);
  const MicroBatchCuts cuts = *MicroBatchCuts::Create(20, 4, 2);
  EXPECT_THAT(Cut(cuts, 2, 20),
              ElementsAre(Range{0, 4}, Range{4, 8}, Range{8, 10}, Range{10, 14},
                          Range{14, 18}, Range{18, 20}));
  // Half a batch is cut at half of each place.
  EXPECT_THAT(Cut(cuts, 2, 10),
              ElementsAre(Range{0, 2}, Range{2, 4}, Range{4, 5}, Range{5, 7},
                          Range{7, 9}, Range{9, 10}));
}

TEST(MicroBatchCutsTest, EveryPositionIsInOneMicroBatch) {
  for (const int world : {1, 2, 3}) {
    for (std::int64_t share = 1; share < 12; ++share) {
      for (std::int64_t micro = 1; micro <= share; ++micro) {
        const std::int64_t whole = share * world;
        const MicroBatchCuts cuts =
            *MicroBatchCuts::Create(whole, micro, world);
        for (std::int64_t samples = 0; samples <= whole; ++samples) {
          std::int64_t at = 0;
          for (const Range& range : Cut(cuts, world, samples)) {
            ASSERT_EQ(range.begin, at);
            ASSERT_LE(range.size(), micro);
            at = range.end;
          }
          ASSERT_EQ(at, samples);
        }
      }
    }
  }
}

TEST(MicroBatchCutsTest, SharesThatDoNotDivideDifferByOneSample) {
  const MicroBatchCuts cuts = *MicroBatchCuts::Create(10, 2, 3);
  EXPECT_EQ(cuts.per_rank(), 2);
  EXPECT_THAT(Cut(cuts, 3, 10),
              ElementsAre(Range{0, 1}, Range{1, 3}, Range{3, 5}, Range{5, 6},
                          Range{6, 8}, Range{8, 10}));
  for (const int world : {2, 3, 5, 7, 16}) {
    for (std::int64_t samples = world; samples < 100; ++samples) {
      for (std::int64_t micro = 1; micro <= samples / world; ++micro) {
        const MicroBatchCuts uneven =
            *MicroBatchCuts::Create(samples, micro, world);
        std::int64_t at = 0;
        for (const Range& range : Cut(uneven, world, samples)) {
          ASSERT_EQ(range.begin, at);
          ASSERT_LE(range.size(), micro);
          at = range.end;
        }
        ASSERT_EQ(at, samples);
        for (int rank = 0; rank < world; ++rank) {
          const Range numbers = uneven.NumbersOf(rank);
          const std::int64_t share =
              uneven.PositionsOf(numbers.end - 1, samples).end -
              uneven.PositionsOf(numbers.begin, samples).begin;
          ASSERT_GE(share, samples / world);
          ASSERT_LE(share, samples / world + 1);
        }
      }
    }
  }
}

TEST(MicroBatchCutsTest, ExplainsWhatDoesNotFit) {
  EXPECT_EQ(MicroBatchCuts::Create(2, 1, 3).status().message(),
            "global_batch_size (2) is less than the data-parallel width (3), "
            "which leaves ranks without a sample; raise it");
  EXPECT_EQ(
      MicroBatchCuts::Create(64, 17, 4).status().message(),
      "micro_batch_size (17) is more than the 16 samples of a rank; lower it");
  EXPECT_FALSE(MicroBatchCuts::Create(0, 1, 1).ok());
  EXPECT_FALSE(MicroBatchCuts::Create(8, 0, 1).ok());
}

TEST(SamplerTest, BatchesFollowTheEpochsOrder) {
  Sampler sampler = Make(Options(10, 4));
  EXPECT_EQ(sampler.batches_per_epoch(), 2);
  for (std::int64_t epoch : {0, 1, 2}) {
    Order order;
    EpochOrder(10, 11, epoch, /*shuffle=*/true, order);
    const Order seen = Joined(Take(sampler, 2));
    EXPECT_EQ(seen, Order(order.begin(), order.begin() + 8));
  }
}

TEST(SamplerTest, TheLastBatchIsShorterWithoutDropLast) {
  Sampler sampler = Make(Options(10, 4, /*drop_last=*/false));
  EXPECT_EQ(sampler.batches_per_epoch(), 3);
  EXPECT_EQ(sampler.BatchAt(2), (GlobalBatch{0, 8, 2}));
  EXPECT_EQ(sampler.BatchAt(3), (GlobalBatch{1, 0, 4}));
  for (int epoch = 0; epoch < 3; ++epoch) {
    Order seen = Joined(Take(sampler, 3));
    std::sort(seen.begin(), seen.end());
    EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
}

TEST(SamplerTest, UnshuffledBatchesAreInOrder) {
  SamplerOptions options = Options(5, 2);
  options.shuffle = false;
  Sampler sampler = Make(options);
  EXPECT_THAT(Joined(Take(sampler, 3)), ElementsAre(0, 1, 2, 3, 0, 1));
}

TEST(SamplerTest, BatchAtAgreesWithNext) {
  for (bool drop_last : {true, false}) {
    Sampler sampler = Make(Options(23, 5, drop_last));
    for (std::int64_t n = 0; n < 30; ++n) {
      EXPECT_EQ(sampler.BatchAt(n), sampler.Next());
    }
  }
}

// The samples of one step as the ranks of a job of `world` see them, joined in
// rank order.
Order StepOf(Sampler& sampler, const GlobalBatch& batch, std::int64_t micro,
             int world) {
  const MicroBatchCuts cuts = *MicroBatchCuts::Create(
      sampler.options().global_batch_size, micro, world);
  Order all;
  for (int rank = 0; rank < world; ++rank) {
    const Range block = cuts.NumbersOf(rank);
    for (std::int64_t m = block.begin; m < block.end; ++m) {
      const auto indices = sampler.MicroBatchIndices(batch, m, cuts);
      if (batch.size == sampler.options().global_batch_size) {
        EXPECT_EQ(indices.size(), static_cast<std::size_t>(micro));
        EXPECT_EQ(indices.data(), sampler.Indices(batch).data() + m * micro);
      }
      all.insert(all.end(), indices.begin(), indices.end());
    }
  }
  return all;
}

TEST(SamplerTest, AnyWidthSeesTheSameGlobalOrder) {
  for (bool drop_last : {true, false}) {
    Sampler sampler = Make(Options(103, 24, drop_last));
    for (std::int64_t n = 0; n < 12; ++n) {
      const GlobalBatch batch = sampler.BatchAt(n);
      const auto whole = sampler.Indices(batch);
      const Order expected(whole.begin(), whole.end());
      for (int world : {1, 2, 3, 4, 6, 8, 12, 24}) {
        EXPECT_EQ(StepOf(sampler, batch, /*micro=*/1, world), expected);
      }
      for (int world : {1, 2, 3, 6}) {
        EXPECT_EQ(StepOf(sampler, batch, /*micro=*/4, world), expected);
      }
      EXPECT_EQ(std::set<std::int64_t>(whole.begin(), whole.end()).size(),
                whole.size());
    }
  }
}

TEST(SamplerTest, AShortBatchIsSpreadOverItsMicroBatches) {
  Sampler sampler = Make(Options(10, 8, /*drop_last=*/false));
  const GlobalBatch last = sampler.BatchAt(1);
  ASSERT_EQ(last.size, 2);
  const MicroBatchCuts cuts = *MicroBatchCuts::Create(8, 2, 1);
  std::vector<std::size_t> sizes;
  for (std::int64_t m = 0; m < 4; ++m) {
    sizes.push_back(sampler.MicroBatchIndices(last, m, cuts).size());
  }
  EXPECT_THAT(sizes, ElementsAre(0, 1, 0, 1));
}

TEST(SamplerTest, ResumesAnywhereAsIfNothingHadHappened) {
  for (bool drop_last : {true, false}) {
    Sampler sampler = Make(Options(23, 5, drop_last));
    const std::vector<Order> whole = Take(sampler, 25);
    for (int stop = 0; stop < 15; ++stop) {
      Sampler before = Make(Options(23, 5, drop_last));
      Take(before, stop);
      EXPECT_EQ(before.state(), sampler.StateAt(stop));
      Sampler after = Make(Options(23, 5, drop_last));
      ASSERT_TRUE(after.Load(before.state()).ok());
      EXPECT_EQ(after.state(), before.state());
      EXPECT_EQ(Take(after, 10), std::vector<Order>(whole.begin() + stop,
                                                    whole.begin() + stop + 10));
      EXPECT_EQ(after.StateAt(10), sampler.StateAt(stop + 10));
    }
  }
}

TEST(SamplerTest, AnotherBatchSizeGoesOnWithTheRest) {
  Sampler before = Make(Options(24, 5, /*drop_last=*/false));
  Order seen = Joined(Take(before, 2));
  Sampler after = Make(Options(24, 7, /*drop_last=*/false));
  ASSERT_TRUE(after.Load(before.state()).ok());
  const Order rest = Joined(Take(after, 2));
  seen.insert(seen.end(), rest.begin(), rest.end());
  Order order;
  EpochOrder(24, 11, /*epoch=*/0, /*shuffle=*/true, order);
  EXPECT_EQ(seen, order);
  EXPECT_EQ(after.Next(), (GlobalBatch{1, 0, 7}));
}

TEST(SamplerTest, CountsTheBatchesUntilAnEpochsEnd) {
  for (bool drop_last : {true, false}) {
    Sampler sampler = Make(Options(23, 5, drop_last));
    EXPECT_EQ(sampler.BatchesUntil(0), 0);
    EXPECT_EQ(sampler.BatchesUntil(3), 3 * sampler.batches_per_epoch());
    // 15 of 23 samples of the second epoch are consumed: 8 are left.
    const SamplerState state = sampler.StateAt(sampler.batches_per_epoch() + 3);
    Sampler after = Make(Options(23, 4, drop_last));
    ASSERT_TRUE(after.Load(state).ok());
    EXPECT_EQ(after.BatchesUntil(1), 0);
    EXPECT_EQ(after.BatchesUntil(2), 2);
    EXPECT_EQ(after.BatchesUntil(4), 2 + 2 * after.batches_per_epoch());
    for (std::int64_t epochs : {2, 3, 4}) {
      const std::int64_t n = after.BatchesUntil(epochs);
      EXPECT_EQ(after.BatchAt(n - 1).epoch, epochs - 1);
      EXPECT_EQ(after.BatchAt(n), (GlobalBatch{epochs, 0, 4}));
    }
  }
}

TEST(SamplerTest, SkipsARestThatIsTooShortForAStep) {
  Sampler sampler = Make(Options(24, 7));
  SamplerState state = sampler.state();
  state.epoch = 4;
  state.samples_consumed = 20;
  ASSERT_TRUE(sampler.Load(state).ok());
  EXPECT_EQ(sampler.state(), state);
  EXPECT_EQ(sampler.Next(), (GlobalBatch{5, 0, 7}));
}

TEST(SamplerTest, RefusesStatesOfOtherJobs) {
  Sampler sampler = Make(Options(24, 7));
  Take(sampler, 2);
  const SamplerState good = sampler.state();
  SamplerState state = good;
  state.dataset_size = 25;
  EXPECT_THAT(std::string(sampler.Load(state).message()),
              HasSubstr("is of 25 samples and seed 11; this job has 24"));
  state = good;
  state.seed = 1;
  EXPECT_FALSE(sampler.Load(state).ok());
  for (std::int64_t bad : {-1, 25}) {
    state = good;
    state.samples_consumed = bad;
    EXPECT_FALSE(sampler.Load(state).ok());
  }
  state = good;
  state.epoch = -1;
  EXPECT_FALSE(sampler.Load(state).ok());
  EXPECT_EQ(sampler.state(), good);
}

TEST(SamplerTest, RefusesStatesOfOtherData) {
  SamplerOptions options = Options(24, 7);
  options.data = {{"kind", "glyphs"}, {"seed", "1"}};
  Sampler sampler = Make(options);
  Take(sampler, 2);
  const SamplerState good = sampler.state();
  EXPECT_EQ(good.data, options.data);
  SamplerState other = good;
  other.data["seed"] = "2";
  EXPECT_EQ(sampler.Load(other).message(),
            "the data were of seed 2, this job's are of 1; go on with the same "
            "data, or start anew");
  other.data.erase("seed");
  EXPECT_EQ(sampler.Load(other).message(),
            "the data were of seed none, this job's are of 1; go on with the "
            "same data, or start anew");
  EXPECT_EQ(sampler.state(), good);
}

TEST(SamplerTest, DataThatAreNotDescribedAreNotCompared) {
  SamplerOptions options = Options(24, 7);
  Sampler silent = Make(options);
  const SamplerState old = silent.state();
  options.data = {{"kind", "glyphs"}};
  Sampler sampler = Make(options);
  ASSERT_TRUE(sampler.Load(old).ok());
  EXPECT_EQ(sampler.state().data, options.data);
  ASSERT_TRUE(silent.Load(sampler.state()).ok());
  EXPECT_EQ(silent.state().data, options.data);  // not forgotten on the way
}

TEST(SamplerTest, RefusesImpossibleOptions) {
  EXPECT_FALSE(Sampler::Create(Options(0, 1)).ok());
  EXPECT_FALSE(Sampler::Create(Options(1, 0)).ok());
  EXPECT_THAT(std::string(Sampler::Create(Options(4, 5)).status().message()),
              HasSubstr("SamplerOptions.global_batch_size = 5 is more than the "
                        "4 samples of an epoch"));
  EXPECT_TRUE(Sampler::Create(Options(4, 5, /*drop_last=*/false)).ok());
}

// Neither numbers of samples nor of batches fit 32 bits.
TEST(SamplerTest, CountsSamplesBeyond32Bits) {
  for (const std::int64_t size :
       {(INT64_C(1) << 31) + 3, (INT64_C(1) << 33) + 5, INT64_C(1) << 40}) {
    SamplerOptions options;
    options.dataset_size = size;
    options.global_batch_size = 7;
    Sampler sampler = *Sampler::Create(options);
    const std::int64_t per_epoch = size / 7;
    EXPECT_EQ(sampler.batches_per_epoch(), per_epoch);
    EXPECT_EQ(sampler.BatchAt(per_epoch - 1),
              (GlobalBatch{0, (per_epoch - 1) * 7, 7}));
    EXPECT_EQ(sampler.BatchAt(3 * per_epoch + 2), (GlobalBatch{3, 14, 7}));
    const SamplerState state = sampler.StateAt(per_epoch - 1);
    EXPECT_EQ(state.epoch, 0);
    EXPECT_EQ(state.samples_consumed, (per_epoch - 1) * 7);
    const SamplerState later = sampler.StateAt(2 * per_epoch + per_epoch / 2);
    EXPECT_EQ(later.epoch, 2);
    EXPECT_EQ(later.samples_consumed, per_epoch / 2 * 7);
    ASSERT_TRUE(sampler.Load(later).ok());
    EXPECT_EQ(sampler.BatchAt(0), (GlobalBatch{2, per_epoch / 2 * 7, 7}));
    EXPECT_EQ(sampler.BatchesUntil(3), per_epoch - per_epoch / 2);
  }
}

// Checkpoints of earlier versions describe the data without hashes.
TEST(SamplerTest, ComparesHashesThatBothHave) {
  SamplerOptions options;
  options.dataset_size = 100;
  options.global_batch_size = 10;
  options.data = {{"kind", "text"}, {"content", "aa"}, {"vocabulary", "bb"}};
  Sampler sampler = *Sampler::Create(options);
  SamplerState state = sampler.StateAt(3);
  EXPECT_TRUE(sampler.Load(state).ok());
  state.data["content"] = "cc";
  EXPECT_EQ(sampler.Load(state),
            absl::InvalidArgumentError(
                "the data were of content cc, this job's are of aa "
                "(hashes); go on with the same data, or start anew"));
  state.data.erase("content");
  EXPECT_TRUE(sampler.Load(state).ok());
  state.data["vocabulary"] = "";
  EXPECT_FALSE(sampler.Load(state).ok());
  state.data = {{"kind", "text"}};
  EXPECT_TRUE(sampler.Load(state).ok());
  state.data = {{"kind", "tokens"}};
  EXPECT_FALSE(sampler.Load(state).ok());
}

}  // namespace
}  // namespace troupe::data
