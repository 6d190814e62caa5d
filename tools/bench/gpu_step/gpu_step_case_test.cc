#include "tools/bench/gpu_step/gpu_step_case.h"

#include <memory>

#include "actors/job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/tensor/dtype.h"

namespace troupe::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GpuStepCase, EachCaseTrainsSomeSteps) {
  EXPECT_THAT(StepCaseNames(), ElementsAre("toy_mlp", "toy_cnn", "mnist_mlp"));
  for (const std::string& name : StepCaseNames()) {
    absl::StatusOr<actors::JobSpec> spec = MakeStepJob(name, {});
    ASSERT_TRUE(spec.ok()) << name << ": " << spec.status();
    EXPECT_EQ(spec->test, nullptr);
    spec->steps = 3;
    const auto result = actors::RunJob(*spec);
    EXPECT_TRUE(result.ok()) << name << ": " << result.status();
  }
}

TEST(GpuStepCase, AllIsAsAskedFor) {
  StepOptions options;
  options.device = "cuda:3";
  options.bf16 = true;
  options.cuda_graphs = "on";
  options.choices = std::make_shared<nn::KernelChoices>();
  const auto spec = MakeStepJob("toy_mlp", options);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->device.ToString(), "cuda:3");
  EXPECT_EQ(spec->dtype, nn::DType::kBF16);
  EXPECT_EQ(spec->cuda_graphs, "on");
  EXPECT_EQ(spec->kernel_choices, options.choices);
  const auto model = spec->model();
  for (const nn::Parameter* parameter : model->Parameters()) {
    EXPECT_EQ(parameter->dtype, nn::DType::kBF16);
  }
}

TEST(GpuStepCase, UnknownNamesAreToldWithThoseThereAre) {
  EXPECT_THAT(MakeStepJob("toy_gpt", {}).status().message(),
              HasSubstr("there are toy_mlp, toy_cnn, mnist_mlp"));
  StepOptions options;
  options.device = "tpu:0";
  EXPECT_THAT(MakeStepJob("toy_mlp", options).status().message(),
              HasSubstr("tpu"));
}

}  // namespace
}  // namespace troupe::bench
