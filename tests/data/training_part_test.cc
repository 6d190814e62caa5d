#include <set>
#include <string>
#include <vector>

#include "base/field_error.h"
#include "data/description/describe_data.h"
#include "data/registry.h"
#include "data/sample_weights.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DatasetOptions Glyphs(std::int64_t train_count) {
  DatasetOptions options;
  options.train_count = train_count;
  return options;
}

// Returns the pixels of a split, a row of each sample.
std::vector<std::vector<float>> PixelsOf(const Dataset& dataset,
                                         std::int64_t epoch) {
  nn::CachingAllocator memory;
  std::vector<std::vector<float>> rows;
  const SampleSpec& spec = dataset.spec();
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const nn::Tensor input =
        nn::Tensor::Empty(spec.InputShape(1), spec.input_dtype, memory);
    const nn::Tensor target =
        nn::Tensor::Empty(spec.TargetShape(1), spec.target_dtype, memory);
    EXPECT_TRUE(dataset.Fill({i}, epoch, input, target).ok());
    const auto values = input.span<float>();
    rows.emplace_back(values.begin(), values.end());
  }
  return rows;
}

TEST(TrainingPartTest, AShareOfTheTrainingSamplesIsHeldBack) {
  DatasetOptions options = Glyphs(40);
  const auto all = OpenDataset(options);
  options.part.validation_share = 0.25;
  options.seed = 0;
  const auto cut = OpenDataset(options);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(cut->notes,
              ElementsAre("10 of 40 training samples are held back to test "
                          "with, drawn by seed 0; the 2048 test samples of the "
                          "data are not used"));
  const auto train = PixelsOf(*cut->train, 0), test = PixelsOf(*cut->test, 0);
  EXPECT_EQ(train.size(), 30u);
  EXPECT_EQ(test.size(), 10u);
  std::set<std::vector<float>> both(train.begin(), train.end());
  both.insert(test.begin(), test.end());
  const auto whole = PixelsOf(*all->train, 0);
  EXPECT_EQ(both, std::set<std::vector<float>>(whole.begin(), whole.end()))
      << "each sample is in one part";
  EXPECT_EQ(PixelsOf(*OpenDataset(options)->test, 0), test);
  EXPECT_EQ(DescribeData(options).at("validation_share"), "0.25");
  options.part.validation_share = 0.01;
  EXPECT_EQ(
      OpenDataset(options).status().message(),
      "TrainingPartOptions.validation_share = 0.01 of 40 samples leaves none "
      "to test with; give more samples or another share");
  options.part.validation_share = 1;
  EXPECT_EQ(
      OpenDataset(options).status().message(),
      "TrainingPartOptions.validation_share = 1: must be at least 0 and less "
      "than 1");
  options.part.validation_share = 0.5;
  options.test_count = 3;
  EXPECT_EQ(
      OpenDataset(options).status().message(),
      "TrainingPartOptions.validation_share and DatasetOptions.test_count are "
      "both set; remove one");
  options.kind = "text";
  EXPECT_THAT(std::string(OpenDataset(options).status().message()),
              HasSubstr("windows of a text overlap; use "
                        "DatasetOptions.val_fraction"));
}

TEST(TrainingPartTest, WeighsTheTrainingSamples) {
  DatasetOptions options = Glyphs(8);
  EXPECT_EQ(OpenDataset(options)->weights, nullptr);
  const std::string folder = MakeTempFolder(), text = "1\n2\n3\n4\n5\n6\n7\n8";
  options.part.sample_weights =
      WriteFile(folder, "w.txt", {text.begin(), text.end()});
  auto splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->weights->hash(),
            (*SampleWeights::Create({1, 2, 3, 4, 5, 6, 7, 8}))->hash());
  options.part.validation_share = 0.5;  // the weights are those of all samples
  splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->weights->size(), 4);
  options.part.balance_classes = true;
  EXPECT_EQ(OpenDataset(options).status().message(),
            "TrainingPartOptions.sample_weights and "
            "TrainingPartOptions.balance_classes "
            "are both set; remove one");
  options.part.sample_weights.clear();
  splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->weights->hash(),
            (*ClassBalancedWeights(*splits->train))->hash());
  options.part.balance_classes = false;
  options.train_count = 9;
  options.part.sample_weights = folder + "/w.txt";
  const absl::Status few = OpenDataset(options).status();
  EXPECT_THAT(std::string(few.message()),
              HasSubstr("w.txt has 8 weights for 9 training samples"));
  EXPECT_THAT(base::FieldsOf(few),
              ElementsAre("TrainingPartOptions.sample_weights"));
}

}  // namespace
}  // namespace troupe::data
