// Hand-written loops on a GPU, if there is one, have the bits of their job.

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/cuda/cuda_kernels.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/open_kernels.h"
#include "tests/troupe/digits_loop.h"
#include "tests/troupe/ranks.h"

namespace troupe {
namespace {

class DdpGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> gpus = nn::cuda::CountGpus();
    if (!gpus.ok()) GTEST_SKIP() << gpus.status();
    if (*gpus == 0) GTEST_SKIP() << "this process sees no GPU";
    gpus_ = *gpus;
  }

  void ExpectTheBitsOfTheJob(Rule rule, int ranks, const std::string& name) {
    const nn::Device device = *nn::Device::Parse(name);
    actors::JobSpec job = DigitsJob(rule, ranks);
    job.device = device;
    job.plan.reduction_order = "tree";
    // Algorithms that each run measured for itself would differ in last bits.
    job.kernel_choices = choices_;
    const std::vector<double> losses = DigitsJobLosses(job);
    SpawnOptions options = Ranks(ranks);
    options.device = device;
    if (device.index != nn::Device::kOneForEach) {
      options.kernels = [device, choices = choices_] {
        nn::KernelOptions kernels;
        kernels.choices = choices;
        return nn::OpenKernels(device, kernels);
      };
    }
    DigitsRun run;
    const absl::Status status = Spawn(DigitsLoop(rule, &run), options);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(run.losses.size(), losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (options.kernels) {
        EXPECT_EQ(run.losses[i], losses[i]) << i;
      } else {
        EXPECT_NEAR(run.losses[i], losses[i], 1e-5) << i;
      }
    }
  }

  const std::shared_ptr<nn::KernelChoices> choices_ =
      std::make_shared<nn::KernelChoices>();
  int gpus_ = 0;
};

TEST_F(DdpGpuTest, RanksOfOneGpu) {
  for (const int ranks : {1, 2, 4}) {
    ExpectTheBitsOfTheJob(Rule::kSgd, ranks, "cuda:0");
    ExpectTheBitsOfTheJob(Rule::kAdamW, ranks, "cuda:0");
  }
}

TEST_F(DdpGpuTest, AGpuForEachRank) {
  if (gpus_ < 2) GTEST_SKIP() << "this process sees one GPU";
  ExpectTheBitsOfTheJob(Rule::kSgd, 2, "cuda");
}

}  // namespace
}  // namespace troupe
