// Names, sizes and cuts of the models, compared with torchvision, timm and
// Hugging Face.

#include <cstdint>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/models/resnet.h"
#include "nn/models/vgg.h"
#include "nn/models/vit.h"
#include "nn/modules/module.h"
#include "nn/modules/summary.h"
#include "pipeline/partition.h"

namespace troupe::nn {
namespace {

std::int64_t CountParameters(Module& model) {
  std::int64_t count = 0;
  for (const Parameter* p : model.Parameters()) count += p->shape.numel();
  return count;
}

bool HasParameter(Module& model, const std::string& name) {
  for (const Parameter* p : model.Parameters()) {
    if (p->name == name) return true;
  }
  return false;
}

const TensorSpec kPhoto = {{1, 224, 224, 3}, DType::kF32};

TEST(ResNet, HasTorchvisionsParameters) {
  const std::pair<int, std::int64_t> counts[] = {
      {18, 11689512}, {34, 21797672}, {50, 25557032}, {101, 44549160}};
  for (const auto& [depth, count] : counts) {
    auto model = *MakeResNet(depth, {});
    EXPECT_EQ(CountParameters(*model), count) << depth;
    EXPECT_TRUE(HasParameter(*model, "layer4.1.bn2.weight")) << depth;
    EXPECT_TRUE(HasParameter(*model, "layer2.0.downsample.0.weight")) << depth;
    const auto summary = Summary(*model, kPhoto);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->rows[0].output, (Shape{1, 1000}));
  }
  EXPECT_EQ(MakeResNet(19, {}).status(),
            absl::InvalidArgumentError(
                "there is no ResNet-19; there are 18, 34, 50 and 101"));
}

TEST(ResNet, IsCutAtItsLayersAndBlocks) {
  const auto make = [] { return *MakeResNet(18, {}); };
  const auto begins = pipeline::ResolveCuts(make, {"layer2", "layer3.1"});
  ASSERT_TRUE(begins.ok()) << begins.status();
  EXPECT_EQ(*begins, (std::vector<std::string>{"layer2", "layer3.1"}));
  const auto last = pipeline::BuildStage(make, *begins, 2);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ((*last)->Parameters()[0]->name, "layer3.1.conv1.weight");
}

TEST(Vgg, HasTorchvisionsParameters) {
  auto plain = *MakeVgg(11, {});
  EXPECT_EQ(CountParameters(*plain), 132863336);
  EXPECT_EQ(plain->Parameters().back()->name, "classifier.6.bias");
  VggOptions options;
  options.batch_norm = true;
  EXPECT_EQ(CountParameters(**MakeVgg(16, options)), 138365992);
  options.num_classes = 10;
  const auto summary =
      Summary(**MakeVgg(11, options), {{2, 32, 32, 3}, DType::kF32});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->rows[0].output, (Shape{2, 10}));
}

TEST(Gpt2, HasHuggingFacesParameters) {
  const std::pair<const char*, std::int64_t> counts[] = {
      {"gpt2", 124439808}, {"gpt2_medium", 354823168}, {"gpt2_xl", 1557611200}};
  for (const auto& [name, count] : counts) {
    auto model = *MakeGpt2(*Gpt2Preset(name));
    EXPECT_EQ(CountParameters(*model), count) << name;
    EXPECT_EQ(model->Parameters()[0]->name, "wte.weight");
    EXPECT_EQ(model->Parameters()[0]->other_names,
              std::vector<std::string>{"lm_head.weight"});
    for (const char* parameter :
         {"wpe.weight", "h.0.ln_1.weight", "h.0.attn.c_attn.bias",
          "h.11.mlp.c_proj.weight", "ln_f.bias"}) {
      EXPECT_TRUE(HasParameter(*model, parameter)) << parameter;
    }
  }
  EXPECT_FALSE(Gpt2Preset("gpt3").ok());
  Gpt2Options odd;
  odd.heads = 7;
  EXPECT_EQ(MakeGpt2(odd).status(),
            absl::InvalidArgumentError(
                "gpt2: a width of 768 is no multiple of 7 heads; choose a "
                "number that divides it"));
}

TEST(Gpt2, IsCutWithACopyOfItsTableOrAHeadOfItsOwn) {
  Gpt2Options options = *Gpt2Preset("gpt_nano");
  options.vocab_size = 65;
  const auto model = [&] { return *MakeGpt2(options); };
  const auto tied = pipeline::BuildStage(model, {"h.1"}, 1);
  ASSERT_TRUE(tied.ok()) << tied.status();
  EXPECT_TRUE(HasParameter(**tied, "wte.weight"));
  EXPECT_FALSE(HasParameter(**tied, "lm_head.weight"));
  options.tie_head = false;
  const auto last = pipeline::BuildStage(model, {"h.1"}, 1);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_TRUE(HasParameter(**last, "lm_head.weight"));
  ShapeRecord record;
  const auto logits =
      ShapeOnlyForward(**last, {2, 16, 48}, DType::kF32, Device{}, record);
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(logits->shape(), (Shape{2, 16, 65}));
}

TEST(Vit, HasTimmsParameters) {
  const std::pair<const char*, std::int64_t> counts[] = {
      {"vit_tiny", 5717416}, {"vit_small", 22050664}, {"vit_base", 86567656}};
  for (const auto& [name, count] : counts) {
    auto model = *MakeVit(*VitPreset(name));
    EXPECT_EQ(CountParameters(*model), count) << name;
    for (const char* parameter :
         {"cls_token", "pos_embed", "patch_embed.proj.weight",
          "blocks.11.attn.qkv.bias", "norm.weight", "head.bias"}) {
      EXPECT_TRUE(HasParameter(*model, parameter)) << parameter;
    }
    const auto summary = Summary(*model, kPhoto);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->rows[0].output, (Shape{1, 1000}));
  }
  VitOptions options;
  options.image_size = 30;
  EXPECT_FALSE(MakeVit(options).ok());
}

}  // namespace
}  // namespace troupe::nn
