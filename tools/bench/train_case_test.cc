#include "tools/bench/train_case.h"

#include <cstdint>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "actors/job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/recompute.h"
#include "nn/tensor/dtype.h"

namespace troupe::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TrainCase, SmallOnesTrainSomeStepsOnOneRankAndTwo) {
  int ran = 0;
  for (const std::string& name : TrainCaseNames()) {
    if (!absl::StartsWith(name, "toy") && name != "mnist_mlp") continue;
    for (int ranks : {1, 2}) {
      absl::StatusOr<actors::JobSpec> spec = MakeTrainJob(name, ranks);
      ASSERT_TRUE(spec.ok()) << name << ": " << spec.status();
      EXPECT_EQ(spec->test, nullptr);
      spec->steps = 3;
      const auto result = actors::RunJob(*spec);
      EXPECT_TRUE(result.ok()) << name << ": " << result.status();
      ++ran;
    }
  }
  EXPECT_EQ(ran, 6);
}

// The numbers are those of torchvision, timm and Hugging Face at these sizes.
TEST(TrainCase, ModelsHaveTheirNumberOfParameters) {
  const std::map<std::string, std::int64_t> wanted = {
      {"toy_mlp", 165},
      {"toy_cnn", 62'006},
      {"mnist_mlp", 669'706},
      {"mlp_25m", 24'998'480},
      {"resnet18", 11'689'512},
      {"resnet50", 25'557'032},
      {"vgg11", 132'863'336},
      {"vit_tiny", 5'581'480},
      {"gpt", 3'257'856},
      {"gpt8", 6'482'432},
      {"mlp8", 8'396'800},
      {"gpt_w512", 12'872'704},
      {"gpt_w1024", 25'718'784},
      {"gpt12", 9'575'936},
      {"gpt12_recomputed", 9'575'936},
      {"resnet50_224", 25'557'032},
      {"gpt2", 124'475'904}};
  for (const std::string& name : TrainCaseNames()) {
    const absl::StatusOr<actors::JobSpec> spec = MakeTrainJob(name, 1);
    ASSERT_TRUE(spec.ok()) << name << ": " << spec.status();
    const std::unique_ptr<nn::Module> model = spec->model();
    std::int64_t parameters = 0;
    for (const nn::Parameter* parameter : model->Parameters()) {
      parameters += parameter->shape.numel();
    }
    ASSERT_EQ(wanted.count(name), 1u) << name;
    EXPECT_EQ(parameters, wanted.at(name)) << name;
  }
}

TEST(TrainCase, ABatchIsARanksOwn) {
  const auto spec = MakeTrainJob("gpt", /*ranks=*/2);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->plan.global_batch_size, 16);
  EXPECT_EQ(spec->plan.mesh.dp(), 2);
  EXPECT_THAT(spec->train->spec().InputShape(8).dims(), ElementsAre(8, 128));
  EXPECT_THAT(spec->train->spec().TargetShape(8).dims(), ElementsAre(8, 128));
}

TEST(TrainCase, EveryBlockOfGpt12IsRecomputed) {
  for (const bool recomputed : {false, true}) {
    const auto spec = MakeTrainJob(recomputed ? "gpt12_recomputed" : "gpt12",
                                   /*ranks=*/1);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const std::unique_ptr<nn::Module> model = spec->model();
    const std::vector<nn::ModelBlock> blocks = nn::BlocksOf(*model);
    EXPECT_EQ(blocks.size(), 12u);
    for (const nn::ModelBlock& block : blocks) {
      EXPECT_EQ(block.module->recomputes(), recomputed) << block.name;
    }
  }
}

TEST(TrainCase, SettingsComeAfterTheCasesOwn) {
  const auto spec =
      MakeTrainJob("toy_mlp", /*ranks=*/1,
                   {"train.device=cuda:3", "train.precision=bf16",
                    "train.cuda_graphs=on", "data.train_count=40"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->device.ToString(), "cuda:3");
  EXPECT_EQ(spec->dtype, nn::DType::kBF16);
  EXPECT_EQ(spec->cuda_graphs, "on");
  EXPECT_EQ(spec->train->size(), 40);
  const auto model = spec->model();
  for (const nn::Parameter* parameter : model->Parameters()) {
    EXPECT_EQ(parameter->dtype, nn::DType::kBF16);
  }
}

TEST(TrainCase, UnknownNamesAreToldWithThoseThereAre) {
  EXPECT_THAT(MakeTrainJob("toy_gpt", 1).status().message(),
              HasSubstr("choose one of toy_mlp, toy_cnn, mnist_mlp"));
  EXPECT_THAT(
      MakeTrainJob("toy_mlp", 1, {"train.device=tpu:0"}).status().message(),
      HasSubstr("tpu"));
}

}  // namespace
}  // namespace troupe::bench
