// Uneven shares, short last batches and weighted draws have the losses of one
// rank under any mesh, and go on to the bit. Some micro-batches are empty here.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "data/in_memory_dataset.h"
#include "data/registry.h"
#include "data/sample_weights.h"
#include "data/subset.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSamples = 23, kIn = 5, kHidden = 4, kClasses = 3;
constexpr std::int64_t kBatch = 10;

// Losses of golden_short_batches.py: PyTorch's DataLoader with drop_last=False.
const std::vector<double> kTorchLosses = {
    1.0986122886681096, 1.10091887856881,   1.1062964453333641,
    1.1336477644232523, 1.1028123250670185, 0.8684487212289692,
    1.2825107653122108, 1.1516877634992695};

data::DatasetPtr Samples() {
  std::vector<float> inputs;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    for (std::int64_t j = 0; j < kIn; ++j) {
      inputs.push_back(static_cast<float>((7 * i + 3 * j) % 11 / 11.0));
    }
    labels.push_back((i * i + i / 3) % kClasses);
  }
  nn::CachingAllocator memory;
  return *data::MakeInMemoryDataset(
      nn::Tensor::Of<float>({kSamples, kIn}, inputs, memory),
      nn::Tensor::Of<std::int64_t>({kSamples}, labels, memory), kClasses);
}

struct Layout {
  int dp = 1;
  int pp = 1;
  std::int64_t micro_batch_size = 0;
};

JobSpec Job(const Layout& layout) {
  JobSpec spec;
  spec.dtype = nn::DType::kF64;
  spec.train = Samples();
  spec.model = [] {
    const nn::Linear::Options linear = {/*bias=*/true, nn::DType::kF64};
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(kIn, kHidden, linear);
    model->Append<nn::ReLU>();
    model->Append<nn::Linear>(kHidden, kClasses, linear);
    for (nn::Parameter* parameter : model->Parameters()) {
      const bool is_bias = parameter->shape.rank() == 1;
      parameter->init = nn::Initializer::Constant(is_bias ? 0 : 0.125);
    }
    return model;
  };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::SgdOptions{/*lr=*/0.5, /*momentum=*/0.9};
  spec.kernels = [] { return nn::CreateReferenceKernels(); };
  spec.device = nn::Device{nn::DeviceType::kReference, 0};
  spec.shuffle = false;
  spec.drop_last = false;
  spec.seed = 5;
  spec.steps = 8;
  spec.timeout = absl::Seconds(60);
  spec.plan.mesh = pipeline::Mesh(layout.dp, layout.pp);
  if (layout.pp > 1) spec.plan.cuts = {1};
  spec.plan.global_batch_size = kBatch;
  spec.plan.micro_batch_size = layout.micro_batch_size;
  return spec;
}

const std::vector<Layout> kLayouts = {
    {1, 1, 0}, {1, 1, 3}, {2, 1, 2}, {3, 1, 0}, {3, 1, 1},
    {3, 1, 3}, {1, 2, 4}, {2, 2, 2}, {3, 2, 2}, {7, 1, 1},
};

std::string Name(const Layout& layout) {
  return absl::StrCat("dp ", layout.dp, " pp ", layout.pp, " micro-batches of ",
                      layout.micro_batch_size);
}

void ExpectLosses(const std::vector<double>& got,
                  const std::vector<double>& want, const Layout& layout) {
  ASSERT_EQ(got.size(), want.size()) << Name(layout);
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 1e-12 * want[i])
        << Name(layout) << ", step " << i;
  }
}

TEST(SamplingJobTest, ShortBatchesHavePyTorchsLosses) {
  for (const Layout& layout : kLayouts) {
    const Reports reports = ReportsOf(Job(layout));
    ExpectLosses(reports.losses(), kTorchLosses, layout);
    EXPECT_EQ(reports.steps[1].samples, 10);
    EXPECT_EQ(reports.steps[2].samples, 3);
    EXPECT_EQ(reports.steps[5].samples, 3);
  }
}

TEST(SamplingJobTest, EpochsCountTheShortBatch) {
  JobSpec spec = Job({2, 1, 2});
  spec.steps = 0;
  spec.epochs = 2;
  EXPECT_EQ(ReportsOf(spec).steps.size(), 6u);
  spec.drop_last = true;
  EXPECT_EQ(ReportsOf(spec).steps.size(), 4u);
}

JobSpec WeightedJob(const Layout& layout) {
  JobSpec spec = Job(layout);
  std::vector<double> weights(kSamples);
  for (std::int64_t i = 0; i < kSamples; ++i) {
    weights[i] = static_cast<double>(i % 4);
  }
  spec.sample_weights = *data::SampleWeights::Create(weights);
  return spec;
}

// The drawn samples one after the other are a data set of their own.
TEST(SamplingJobTest, WeightedDrawsHaveTheLossesOfTheirSamples) {
  const JobSpec weighted = WeightedJob({});
  JobSpec listed = Job({});
  std::vector<std::int64_t> drawn, epoch;
  for (std::int64_t e = 0; e < 3; ++e) {
    weighted.sample_weights->Draw(weighted.seed, e, epoch);
    // Batches end where an epoch does; a listing has no epochs.
    epoch.resize(kSamples / kBatch * kBatch);
    drawn.insert(drawn.end(), epoch.begin(), epoch.end());
  }
  listed.train = *data::MakeSubset(listed.train, drawn);
  listed.steps = 6;
  const std::vector<double> want = ReportsOf(listed).losses();
  for (const Layout& layout : kLayouts) {
    JobSpec spec = WeightedJob(layout);
    spec.steps = 6;
    spec.drop_last = true;
    ExpectLosses(ReportsOf(spec).losses(), want, layout);
  }
}

// A share of the training samples is held back to test with.
JobSpec SharedJob(const Layout& layout) {
  data::DatasetOptions options;
  options.kind = "synthetic";
  options.input_shape = {kIn};
  options.num_classes = kClasses;
  options.train_count = kSamples + 7;
  options.part.validation_share = 0.25;
  options.seed = 3;
  const auto splits = data::OpenDataset(options);
  EXPECT_TRUE(splits.ok()) << splits.status();
  JobSpec spec = Job(layout);
  spec.train = splits->train;
  spec.test = splits->test;
  return spec;
}

TEST(SamplingJobTest, SharesHaveTheLossesOfOneRank) {
  const Reports want = ReportsOf(SharedJob({}));
  ASSERT_EQ(want.evaluations.size(), 1u);
  EXPECT_EQ(want.evaluations[0].count, 7);
  EXPECT_EQ(want.steps[2].samples, 3);  // the rest of 23
  for (const Layout& layout : kLayouts) {
    const Reports reports = ReportsOf(SharedJob(layout));
    ExpectLosses(reports.losses(), want.losses(), layout);
    ExpectLosses({reports.evaluations[0].loss}, {want.evaluations[0].loss},
                 layout);
  }
}

TEST(SamplingJobTest, ResumesToTheBit) {
  for (const auto& job : {Job, WeightedJob, SharedJob}) {
    for (const Layout& layout : kLayouts) {
      JobSpec spec = job(layout);
      spec.shuffle = true;
      const std::vector<double> whole = ReportsOf(spec).losses();
      // Before, at and behind a short batch.
      for (const std::int64_t until : {2, 3, 4}) {
        JobSpec part = spec;
        part.checkpoint.dir = FreshFolder("sampling");
        part.steps = until;
        std::vector<double> losses = ReportsOf(part).losses();
        part.steps = spec.steps;
        part.checkpoint.resume = true;
        const std::vector<double> rest = ReportsOf(part).losses();
        losses.insert(losses.end(), rest.begin(), rest.end());
        EXPECT_EQ(losses, whole) << Name(layout) << ", until " << until;
      }
    }
  }
}

TEST(SamplingJobTest, OtherWeightsAreRefused) {
  JobSpec spec = WeightedJob({});
  spec.checkpoint.dir = FreshFolder("weights");
  spec.steps = 2;
  ReportsOf(spec);
  spec.checkpoint.resume = true;
  spec.steps = 4;
  spec.sample_weights =
      *data::SampleWeights::Create(std::vector<double>(kSamples, 1));
  const absl::Status status = RunJob(spec, nullptr).status();
  EXPECT_NE(status.message().find("the data were of weights "),
            absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace troupe::actors
