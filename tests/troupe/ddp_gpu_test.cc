// Hand-written loops on a GPU, if there is one, have the bits of their job.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
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

  void ExpectTheBitsOfTheJob(Rule rule, int ranks, const std::string& name,
                             const std::string& order = "tree") {
    const nn::Device device = *nn::Device::Parse(name);
    actors::JobSpec job = DigitsJob(rule, ranks);
    job.device = device;
    job.plan.reduction_order = order;
    // Algorithms that each run measured for itself would differ in last bits.
    job.kernel_choices = choices_;
    const std::vector<double> losses = DigitsJobLosses(job);
    SpawnOptions options = Ranks(ranks);
    options.device = device;
    options.reduction_order = order;
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
  ExpectTheBitsOfTheJob(Rule::kSgd, 2, "cuda", "any");
}

// One rank needs no NCCL, which the program has all the same.
TEST_F(DdpGpuTest, OneRankWithNccl) {
  ExpectTheBitsOfTheJob(Rule::kSgd, 1, "cuda", "any");
}

// NCCL before 2.30 refuses two ranks on one GPU. Later ones may take them, and
// the groups then work.
TEST_F(DdpGpuTest, NcclWithTwoRanksOnOneGpuDoesNotHang) {
  SpawnOptions options = Ranks(2);
  options.device = *nn::Device::Parse("cuda:0");
  options.reduction_order = "any";
  options.timeout = absl::Minutes(1);
  std::vector<float> sum;
  const absl::Status status = Spawn(
      [&](Rank& rank) {
        Var x = rank.Ones({3});
        AllReduce(x);
        if (rank.number() == 0) sum = ValuesOn(rank, x);
      },
      options);
  EXPECT_NE(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  if (status.ok()) {
    EXPECT_EQ(sum, std::vector<float>(3, 2));
  } else {
    EXPECT_NE(std::string(status.message()).find("NCCL"), std::string::npos)
        << status;
  }
}

}  // namespace
}  // namespace troupe
