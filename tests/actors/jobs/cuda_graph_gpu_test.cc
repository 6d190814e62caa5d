// Recorded steps on a GPU, if there is one, have the bits of eager steps.

#include <memory>
#include <string>
#include <vector>

#include "actors/job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cuda/cuda_kernels.h"
#include "nn/kernels/kernel_choices.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

class CudaGraphGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> gpus = nn::cuda::CountGpus();
    if (!gpus.ok()) GTEST_SKIP() << gpus.status();
    if (*gpus == 0) GTEST_SKIP() << "this process sees no GPU";
  }

  Reports Run(const std::string& graphs, int micro_batch_size) {
    JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/20);
    spec.device = *nn::Device::Parse("cuda:0");
    spec.plan.micro_batch_size = micro_batch_size;
    spec.eval_every = 8;
    spec.cuda_graphs = graphs;
    // Algorithms that each run measured for itself would differ in last bits.
    spec.kernel_choices = choices_;
    notes_.clear();
    spec.note = [this](const std::string& line) { notes_.push_back(line); };
    return ReportsOf(spec);
  }

  const std::shared_ptr<nn::KernelChoices> choices_ =
      std::make_shared<nn::KernelChoices>();
  std::vector<std::string> notes_;
};

TEST_F(CudaGraphGpuTest, EagerAndGraphAreTheSameToTheBit) {
  for (const int micro_batch_size : {0, 8}) {
    const Reports eager = Run("off", micro_batch_size);
    const Reports graph = Run("on", micro_batch_size);
    EXPECT_THAT(notes_, testing::ElementsAre("rank 0: steps run as a graph"));
    EXPECT_EQ(graph.losses(), eager.losses());
    ASSERT_FALSE(eager.evaluations.empty());
    EXPECT_EQ(graph.evaluations.back().loss, eager.evaluations.back().loss);
  }
}

TEST_F(CudaGraphGpuTest, AutoSaysWhatItChose) {
  const Reports eager = Run("off", 0);
  const Reports chosen = Run("auto", 0);
  EXPECT_EQ(chosen.losses(), eager.losses());
  EXPECT_EQ(notes_.size(), 1u);
}

}  // namespace
}  // namespace troupe::actors
