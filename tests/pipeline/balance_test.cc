#include "pipeline/balance.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/models/resnet.h"
#include "nn/models/vit.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"

namespace troupe::pipeline {
namespace {

constexpr nn::Device kCpu;

// Layers 0 to 4: of 4, 1, 1, 1 and 1 squares of 8, with ReLUs behind.
std::unique_ptr<nn::Module> Uneven() {
  auto model = std::make_unique<nn::Sequential>();
  auto& first = model->AppendNamed<nn::Sequential>("first");
  first.Append<nn::Linear>(8, 32);
  first.Append<nn::ReLU>();
  model->AppendNamed<nn::Linear>("narrow", 32, 8);
  for (int i = 0; i < 4; ++i) {
    model->Append<nn::Linear>(8, 8);
    model->Append<nn::ReLU>();
  }
  return model;
}

std::vector<Cut> Cuts(int stages, Balance balance) {
  const auto cuts =
      BalanceCuts(Uneven, {{2, 8}, nn::DType::kF32}, kCpu, stages, balance);
  EXPECT_TRUE(cuts.ok()) << cuts.status();
  return cuts.value_or(std::vector<Cut>());
}

TEST(BalanceTest, TheDearestStageIsAsCheapAsMayBe) {
  EXPECT_EQ(Cuts(1, Balance::kFlops), (std::vector<Cut>{}));
  // 256 and 256 weights, then 64 four times.
  EXPECT_EQ(Cuts(3, Balance::kParameters), (std::vector<Cut>{"narrow", "2"}));
  EXPECT_EQ(Cuts(3, Balance::kFlops), (std::vector<Cut>{"narrow", "2"}));
  EXPECT_EQ(Cuts(2, Balance::kLayers), (std::vector<Cut>{"5"}));
}

TEST(BalanceTest, CutsResolveAndCostWhatTheyShould) {
  const auto begins = ResolveCuts(Uneven, Cuts(3, Balance::kFlops));
  ASSERT_TRUE(begins.ok()) << begins.status();
  const auto costs =
      EstimateCosts(Uneven, *begins, {{2, 8}, nn::DType::kF32}, kCpu);
  ASSERT_TRUE(costs.ok()) << costs.status();
  ASSERT_EQ(costs->stages.size(), 3u);
  EXPECT_GE(costs->stages[0].forward, 2 * 2 * 256);
  EXPECT_GE(costs->stages[1].forward, 2 * 2 * 256);
  EXPECT_EQ(costs->stages[2].activation, 8 * (2 * 8 * 4));
}

TEST(BalanceTest, RealModels) {
  const auto resnet = [] {
    nn::ResNetOptions options;
    options.stem = nn::ResNetStem::kCifar;
    return nn::MakeResNet(18, options).value();
  };
  const auto cuts = BalanceCuts(resnet, {{2, 32, 32, 3}, nn::DType::kF32}, kCpu,
                                4, Balance::kFlops);
  ASSERT_TRUE(cuts.ok()) << cuts.status();
  const auto begins = ResolveCuts(resnet, *cuts);
  ASSERT_TRUE(begins.ok()) << begins.status();
  const auto costs =
      EstimateCosts(resnet, *begins, {{2, 32, 32, 3}, nn::DType::kF32}, kCpu);
  ASSERT_TRUE(costs.ok()) << costs.status();
  double all = 0, most = 0;
  for (const StageCosts& stage : costs->stages) {
    all += stage.forward;
    most = std::max(most, stage.forward);
  }
  EXPECT_LT(most, 0.35 * all);
}

// A layer whose parameters have names of the model's own has none itself, and
// is a part of the layer before it.
TEST(BalanceTest, ALayerWithoutANameIsNoCut) {
  const auto vit = [] {
    nn::VitOptions options = nn::VitPreset("vit_tiny").value();
    options.image_size = 6, options.patch_size = 2, options.depth = 1;
    return nn::MakeVit(options).value();
  };
  const auto places = CutPlaces(vit);
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_EQ(*places, std::vector<std::string>(
                         {"patch_embed", "blocks.0", "norm", "pool", "head"}));
  EXPECT_EQ(BalanceCuts(vit, {{2, 6, 6, 3}, nn::DType::kF32}, kCpu, 6,
                        Balance::kLayers)
                .status()
                .message(),
            "the model has 5 layers in Sequentials, too few for 6 stages; take "
            "fewer");
}

TEST(BalanceTest, AModelWithTooFewLayers) {
  EXPECT_EQ(
      BalanceCuts(Uneven, {{2, 8}, nn::DType::kF32}, kCpu, 12, Balance::kLayers)
          .status()
          .message(),
      "the model has 11 layers in Sequentials, too few for 12 stages; take "
      "fewer");
  EXPECT_EQ(BalanceCuts([]() -> std::unique_ptr<nn::Module> { return nullptr; },
                        {{2, 8}, nn::DType::kF32}, kCpu, 2, Balance::kFlops)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::pipeline
