// Tests of the keys of section [model], with the whole text of their errors.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "data/registry.h"
#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/modules/module.h"
#include "tests/tools/config/config_fixture.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/model_builder.h"

namespace troupe::tools {
namespace {

TEST(ModelConfig, ANetworkOfLayers) {
  const TrainerConfig config = Parsed(absl::StrCat(
      kShort,
      "[model]\nlayers = [\"conv 8 3 pad=1\", \"relu\", \"flatten\",\n"
      "          \"linear 10\"]\nfreeze = [\"0.*\"]\n"));
  EXPECT_EQ(config.model.layers,
            (std::vector<std::string>{"conv 8 3 pad=1", "relu", "flatten",
                                      "linear 10"}));
  EXPECT_EQ(config.model.Name(), "layers");
  EXPECT_EQ(
      Parsed(kShort, {Set("model.layers", "flatten, linear 10")}).model.layers,
      (std::vector<std::string>{"flatten", "linear 10"}));
  EXPECT_EQ(ErrorOf(absl::StrCat(kShort, "[model]\nlayers = [1, \"relu\"]\n")),
            "run.toml:4: model.layers = [1, \"relu\"]: must be a list of "
            "texts, such as [\"conv 32 3 pad=1\", \"relu\", \"maxpool 2\", "
            "\"flatten\", \"linear 10\"]");
  EXPECT_EQ(
      ErrorOf(absl::StrCat(kShort, "[model]\nlayers = [\"linear 10\"]\n")),
      "run.toml:4: model.layers does not take the samples of data.kind = "
      "\"glyphs\", whose samples are f32[28, 28, 1] -> class of 10: of a batch "
      "of one it "
      "makes [1, 28, 28, 10]; add layers that make [1, 10] of it");
  EXPECT_EQ(ErrorOf(absl::StrCat(kShort, "[model]\nlayers = [\"linear\"]\n")),
            "run.toml:4: model.layers does not take the samples of data.kind = "
            "\"glyphs\", whose samples are f32[28, 28, 1] -> class of 10: "
            "layer 0, \"linear\": it "
            "takes 1 numbers, and has 0; write linear OUT [bias=1]");
  EXPECT_EQ(ErrorOf(kShort, {Set("model.layers", "flatten, linear 10"),
                             Set("model.kind", "mlp")}),
            "--set model.layers: model.layers and model.kind are both set, and "
            "each is a network; leave one out");
}

TEST(ModelConfig, HeadsAndFrozenParameters) {
  EXPECT_EQ(
      Parsed(kShort, {Set("model.num_classes", "1000")}).model.num_classes,
      1000);
  EXPECT_EQ(ErrorOf(kShort, {Set("model.num_classes", "9")}),
            "--set model.num_classes: model.num_classes = 9, but the targets "
            "of data.kind = \"glyphs\", whose samples are f32[28, 28, 1] -> "
            "class of 10 need "
            "10; set it to that, or remove it");
  EXPECT_EQ(ErrorOf(kShort, {Set("model.freeze", "features.*")}),
            "--set model.freeze: model.freeze: no parameter is called "
            "\"features.*\" (* stands for any text); choose among 0.weight "
            "0.bias 3.weight 3.bias 7.weight 7.bias 9.weight 9.bias and "
            "others");
}

TEST(ModelConfig, SomethingIsLeftToTrain) {
  const auto all = [](int parameters) {
    return "--set model.freeze: model.freeze: all " +
           std::to_string(parameters) +
           " parameters are frozen, and nothing is left to train; leave some "
           "out, such as those of the last layer";
  };
  EXPECT_EQ(ErrorOf(kShort, {Set("model.freeze", "*")}), all(10));
  EXPECT_EQ(ErrorOf(kShort, {Set("model.freeze", "*.bias,*.weight")}), all(10));
  EXPECT_EQ(ErrorOf(kShort, {Set("model.kind", "linear"),
                             Set("model.freeze", "*bias,*weight")}),
            all(2));
  EXPECT_EQ(ErrorOf(kShort, {Set("model.freeze", "*.weight")}), "");
}

TEST(ModelConfig, WhatRunsAgainInBackward) {
  const ModelConfig model =
      Parsed(kShort, {Set("model.recompute", "0,3"),
                      Set("model.recompute_budget", "64MiB")})
          .model;
  EXPECT_EQ(model.recompute, (std::vector<std::string>{"0", "3"}));
  EXPECT_EQ(model.recompute_budget_bytes, 64 << 20);
  EXPECT_EQ(
      ErrorOf(kShort, {Set("model.recompute", "blocks.*")}),
      "--set model.recompute: model.recompute: no module of the model is "
      "called \"blocks.*\"; choose among 0 1 2 3 4 5 6 7 or those in them");
  const std::string small =
      ErrorOf(kShort, {Set("model.recompute_budget", "9")});
  EXPECT_NE(small.find("the budget is 9"), std::string::npos) << small;
}

// Returns the mesh axes along which the model's layers communicate.
std::vector<std::string> AxesOf(const TrainerConfig& config) {
  const auto sample = data::KnownSampleSpec(config.data);
  const auto model = MakeModel(config, *sample);
  EXPECT_TRUE(model.ok()) << model.status();
  nn::ShapeRecord record;
  const auto output = nn::ShapeOnlyForward(
      **model, sample->InputShape(2), nn::DType::kF32, nn::Device(), record);
  EXPECT_TRUE(output.ok()) << output.status();
  return record.axes;
}

TEST(ModelConfig, BatchNormsOverAllReplicas) {
  const Settings resnet = {Set("model.kind", "resnet18"),
                           Set("data.kind", "synthetic"),
                           Set("data.input_shape", "32,32,3")};
  EXPECT_EQ(AxesOf(Parsed(kShort, resnet)), std::vector<std::string>());
  Settings synchronised = resnet;
  synchronised.push_back(Set("model.sync_batch_norm", "true"));
  EXPECT_EQ(AxesOf(Parsed(kShort, synchronised)),
            std::vector<std::string>({"dp"}));
  EXPECT_EQ(ErrorOf(kShort, {Set("model.sync_batch_norm", "dp")}),
            "--set model.sync_batch_norm: model.sync_batch_norm = \"dp\": must "
            "be true or false, such as true");
}

TEST(ModelConfig, KindsTakeWhatTheyAreMadeFor) {
  for (const char* kind : {"resnet18", "vgg11_bn", "vit_tiny"}) {
    Parsed(kShort, {Set("model.kind", kind), Set("data.kind", "synthetic"),
                    Set("data.input_shape", "32,32,3")});
    EXPECT_EQ(ErrorOf(kShort,
                      {Set("model.kind", kind), Set("data.kind", "synthetic")}),
              absl::StrCat("--set model.kind: model.kind = \"", kind,
                           "\" does not take the samples of data.kind = "
                           "\"synthetic\", whose samples are f32[10] -> class "
                           "of 10: it takes images (H, W, C); use model.kind = "
                           "\"mlp\""));
  }
  EXPECT_EQ(ErrorOf(kShort, {Set("model.kind", "gpt2")}),
            "--set model.kind: model.kind = \"gpt2\" does not take the samples "
            "of data.kind = \"glyphs\", whose samples are f32[28, 28, 1] -> "
            "class of 10: it takes tokens (T); use model.kind = \"mlp\"");
}

}  // namespace
}  // namespace troupe::tools
