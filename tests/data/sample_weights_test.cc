#include "data/sample_weights.h"

#include <cmath>

#include "base/files/file_system.h"
#include "data/in_memory_dataset.h"
#include "data/sampler.h"
#include "data/subset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> DrawOf(const SampleWeights& weights,
                                 std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order;
  weights.Draw(seed, epoch, order);
  return order;
}

TEST(SampleWeightsTest, InvertsTheCumulativeSums) {
  const SampleWeightsPtr weights = *SampleWeights::Create({0, 1, 2, 0, 1, 0});
  EXPECT_EQ(weights->SampleAt(0), 1);
  EXPECT_EQ(weights->SampleAt(std::nextafter(0.25, 0)), 1);
  EXPECT_EQ(weights->SampleAt(0.25), 2);
  EXPECT_EQ(weights->SampleAt(std::nextafter(0.75, 0)), 2);
  EXPECT_EQ(weights->SampleAt(0.75), 4);
  EXPECT_EQ(weights->SampleAt(std::nextafter(1.0, 0)), 4);
  // The product rounds up to the sum, a subnormal number.
  EXPECT_EQ(
      (*SampleWeights::Create({5e-324, 0}))->SampleAt(std::nextafter(1.0, 0)),
      0);
}

// The numbers of draws of torch.multinomial have the same mean and variance.
TEST(SampleWeightsTest, DrawsInProportion) {
  std::vector<double> weights;
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += weights.emplace_back(i % 5);
  const SampleWeightsPtr made = *SampleWeights::Create(weights);
  std::vector<double> drawn(5);
  for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
    for (std::int64_t i : DrawOf(*made, 7, epoch)) ++drawn[i % 5];
  }
  EXPECT_EQ(drawn[0], 0);
  for (int k = 1; k < 5; ++k) {
    const double part = k * 200 / sum, mean = 40000 * part;
    EXPECT_NEAR(drawn[k], mean, 4 * std::sqrt(mean * (1 - part))) << k;
  }
}

TEST(SampleWeightsTest, FollowsSeedAndEpoch) {
  const SampleWeightsPtr weights = *SampleWeights::Create({1, 2, 3, 4, 5});
  EXPECT_EQ(DrawOf(*weights, 1, 2), DrawOf(*weights, 1, 2));
  EXPECT_NE(DrawOf(*weights, 1, 2), DrawOf(*weights, 1, 3));
  EXPECT_NE(DrawOf(*weights, 1, 2), DrawOf(*weights, 2, 2));
  EXPECT_EQ(DrawOf(*weights, 1, 2).size(), 5u);
}

TEST(SampleWeightsTest, ExplainsBadWeights) {
  EXPECT_EQ(SampleWeights::Create({1, -2}).status().message(),
            "the weight of sample 1 is -2; weights must be at least 0 and have "
            "a finite sum");
  EXPECT_FALSE(SampleWeights::Create({NAN}).ok());
  EXPECT_FALSE(SampleWeights::Create({1e308, 1e308}).ok());
  EXPECT_EQ(SampleWeights::Create({0, 0}).status().message(),
            "all 2 weights are 0; give a sample a weight above 0");
  EXPECT_FALSE(SampleWeights::Create({}).ok());
}

TEST(SampleWeightsTest, ReadsAFile) {
  base::PosixFileSystem files;
  const std::string path = testing::TempDir() + "/weights.txt";
  const auto read = [&](const std::string& text, std::int64_t samples) {
    EXPECT_TRUE(base::WriteWholeFile(files, path, text).ok());
    return ReadSampleWeights(files, path, samples);
  };
  const auto made = read("0.5\r\n\n 2e0\n0", 3);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(*made, ElementsAre(0.5, 2, 0));
  EXPECT_EQ(read("1\ntwo\n", 2).status().message(),
            path + ":2: \"two\" is not a number; write one weight a line");
  // Nothing that a terminal obeys.
  EXPECT_THAT(std::string(read("1\n\x1b[2Jx\n", 2).status().message()),
              HasSubstr(":2: \"\\x1b[2Jx\" is not"));
  EXPECT_EQ(read("1\n2\n", 3).status().message(),
            path +
                " has 2 weights for 3 training samples; write one for each, "
                "in the order of the samples");
}

DatasetPtr OfClasses(const std::vector<std::int64_t>& labels, int classes) {
  nn::CachingAllocator memory;
  const auto rows = static_cast<std::int64_t>(labels.size());
  return *MakeInMemoryDataset(
      nn::Tensor::Of<float>({rows, 1}, std::vector<float>(rows), memory),
      nn::Tensor::Of<std::int64_t>({rows}, labels, memory), classes);
}

TEST(SampleWeightsTest, BalancesClasses) {
  const DatasetPtr dataset = OfClasses({0, 0, 3, 0, 0, 1, 1}, 4);
  EXPECT_THAT(*dataset->Labels(), ElementsAre(0, 0, 3, 0, 0, 1, 1));
  EXPECT_EQ((*ClassBalancedWeights(*dataset))->hash(),
            (*SampleWeights::Create({.25, .25, 1, .25, .25, .5, .5}))->hash());
  const DatasetPtr some = *MakeSubset(dataset, {6, 2, 0});
  EXPECT_THAT(*some->Labels(), ElementsAre(1, 3, 0));
  nn::CachingAllocator memory;
  const DatasetPtr pairs =
      *MakeInMemoryDataset(nn::Tensor::Of<float>({1, 1}, {1}, memory),
                           nn::Tensor::Of<float>({1, 1}, {1}, memory), 0);
  EXPECT_THAT(std::string(ClassBalancedWeights(*pairs).status().message()),
              HasSubstr("have no class each; use data of classes"));
}

TEST(SampleWeightsTest, ASamplerDrawsByThemAndResumes) {
  SamplerOptions options;
  options.dataset_size = 10;
  options.global_batch_size = 4;
  options.drop_last = false;
  options.weights = *SampleWeights::Create({0, 1, 0, 3, 0, 0, 2, 0, 0, 1});
  Sampler sampler = *Sampler::Create(options);
  EXPECT_EQ(sampler.batches_per_epoch(), 3);
  std::vector<std::vector<std::int64_t>> seen;
  for (int n = 0; n < 7; ++n) {
    const auto indices = sampler.Indices(sampler.BatchAt(n));
    seen.emplace_back(indices.begin(), indices.end());
  }
  EXPECT_EQ(seen[2].size(), 2u) << "the short one of the first epoch";
  for (int n = 0; n < 7; ++n) {
    Sampler resumed = *Sampler::Create(options);
    ASSERT_TRUE(resumed.Load(sampler.StateAt(n)).ok());
    const auto indices = resumed.Indices(resumed.BatchAt(0));
    EXPECT_EQ(std::vector<std::int64_t>(indices.begin(), indices.end()),
              seen[n]);
  }
  SamplerOptions others = options;
  others.weights = *SampleWeights::Create(std::vector<double>(10, 1));
  EXPECT_THAT(
      std::string(Sampler::Create(others)->Load(sampler.StateAt(1)).message()),
      HasSubstr("the data were of weights "));
  others.weights = *SampleWeights::Create({1, 2});
  EXPECT_EQ(Sampler::Create(others).status().message(),
            "SamplerOptions.weights has 2 weights for 10 samples; give one for "
            "each");
}

}  // namespace
}  // namespace troupe::data
