// Advice for a file whose weights do not fit: names and shapes of two models,
// of the run and of the file, and what makes the one the other.

#include "tools/trainer/config/weight_advice.h"

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/module.h"
#include "tools/trainer/config/model_builder.h"

namespace troupe::tools {
namespace {

using testing::HasSubstr;

data::SampleSpec Images(std::int64_t size, std::int64_t classes,
                        std::int64_t channels = 3) {
  return data::ClassificationSpec({size, size, channels}, classes);
}

data::SampleSpec Tokens(std::int64_t context, std::int64_t vocabulary) {
  data::SampleSpec spec = data::ClassificationSpec({context}, vocabulary);
  spec.input_dtype = nn::DType::kI64;
  spec.target_shape = nn::Shape{context};
  return spec;
}

struct Trained {
  TrainerConfig config;
  data::SampleSpec sample;
};

Trained Of(const std::string& kind, const data::SampleSpec& sample) {
  Trained run;
  run.config.model.kind = kind;
  run.config.data.kind = "text";
  run.sample = sample;
  return run;
}

using Shapes = std::map<std::string, nn::Shape>;

Shapes ShapesOf(const Trained& run) {
  const auto model = MakeModel(run.config, run.sample);
  EXPECT_TRUE(model.ok()) << model.status();
  Shapes shapes;
  if (!model.ok()) return shapes;
  for (const nn::Parameter* p : (*model)->Parameters()) {
    shapes[p->name] = p->shape;
  }
  return shapes;
}

nn::WeightDifferences Between(const Trained& run, const Trained& file) {
  const auto model = MakeModel(run.config, run.sample);
  Shapes left = ShapesOf(file);
  nn::WeightDifferences differences;
  for (const nn::Parameter* p : (*model)->Parameters()) {
    const auto found = left.find(p->name);
    if (found == left.end()) {
      differences.missing.push_back(p->name);
    } else if (found->second != p->shape) {
      differences.mismatches.push_back({p->name, "", found->second, p->shape});
      differences.mismatched.push_back(p->name);
    }
    left.erase(p->name);
  }
  // Names of a file may have wrappers.
  for (const auto& [name, shape] : left) {
    differences.unexpected.push_back(absl::StrCat("model.", name));
  }
  return differences;
}

std::string Advice(const Trained& run, const Trained& file) {
  return WeightAdvice(run.config, run.sample, Between(run, file));
}

TEST(WeightAdvice, AFileThatFitsNeedsNone) {
  const Trained run = Of("resnet18", Images(32, 10));
  EXPECT_EQ(Advice(run, run), "");
  EXPECT_FALSE(Between(run, run).any());
}

TEST(WeightAdvice, StemsAndClassesOfResNets) {
  const Trained small = Of("resnet18", Images(32, 10));
  const Trained large = Of("resnet18", Images(224, 1000));
  EXPECT_EQ(Advice(small, large),
            "set model.stem = \"imagenet\" (its conv1.weight is 7x7) and "
            "model.num_classes = 1000");
  EXPECT_EQ(Advice(large, small),
            "set model.stem = \"cifar\" (its conv1.weight is 3x3); take data "
            "of its 10 classes (data.path), or give fc.weight a new start "
            "(model.init_strict = false)");
  // The advised model fits.
  Trained advised = small;
  advised.config.model.stem = "imagenet";
  advised.config.model.num_classes = 1000;
  EXPECT_FALSE(Between(advised, large).any());
  EXPECT_EQ(Advice(Of("resnet18", Images(32, 10, 1)), small),
            "take images of 3 channels (data.kind)");
}

TEST(WeightAdvice, DepthsOfResNets) {
  const char* const kinds[] = {"resnet18", "resnet34", "resnet50", "resnet101"};
  for (const char* run : kinds) {
    for (const char* file : kinds) {
      EXPECT_EQ(
          Advice(Of(run, Images(32, 10)), Of(file, Images(32, 10))),
          run == file ? "" : absl::StrCat("set model.kind = \"", file, "\""))
          << run;
    }
  }
}

TEST(WeightAdvice, SizesOfGpt2) {
  Trained run = Of("gpt_mini", Tokens(64, 65));
  Trained file = run;
  file.config.model.width = 384;
  file.config.model.depth = 8;
  file.config.model.context = 128;
  EXPECT_EQ(Advice(run, file),
            "set model.width = 384, model.heads = 6 (if a head has 64 "
            "features), model.context = 128 and model.depth = 8");
  file.config.model.width = 24;
  file.config.model.depth = 3;
  file.config.model.heads = 2;
  file.sample = Tokens(32, 65);
  file.config.model.context = 0;
  EXPECT_EQ(Advice(run, file),
            "set model.width = 24, data.context = 32 and model.depth = 3; set "
            "model.heads to the number that it has");
  file = run;
  file.config.model.tie_head = false;
  EXPECT_EQ(Advice(run, file),
            "set model.tie_head = false (its head has weights of its own)");
}

TEST(WeightAdvice, TablesOfOtherTokens) {
  Trained run = Of("gpt_nano", Tokens(64, 65));
  const Trained large = Of("gpt_nano", Tokens(64, 50257));
  EXPECT_EQ(Advice(run, large),
            "take data of its 50257 tokens (data.path, data.tokenizer), or "
            "set model.vocab_size = 50257 if its first 65 are the data's");
  EXPECT_EQ(Advice(large, run),
            "take data of its 65 tokens (data.path, data.tokenizer)");
  run.config.data.kind = "tokens";
  EXPECT_EQ(Advice(run, large),
            "take data of its 50257 tokens (data.path), or set "
            "model.vocab_size = 50257 if its first 65 are the data's");
  Trained tokens = large;
  tokens.config.data.kind = "tokens";
  EXPECT_EQ(Advice(tokens, run),
            "set data.vocab_size = 65 (if the data have no other tokens)");
}

TEST(WeightAdvice, SizesOfVits) {
  Trained run = Of("vit_tiny", Images(32, 10));
  run.config.data.kind = "images";
  Trained file = Of("vit_small", Images(224, 1000));
  EXPECT_EQ(Advice(run, file),
            "set data.image_size = 224, model.width = 384, model.heads = 6 "
            "(if a head has 64 features) and model.num_classes = 1000");
  file = run;
  file.config.model.depth = 4;
  file.config.model.patch_size = 8;
  EXPECT_EQ(Advice(run, file),
            "set model.patch_size = 8, data.image_size = 32 and model.depth = "
            "4");
}

TEST(WeightAdvice, OtherNetworks) {
  const Trained lenet = Of("lenet", Images(32, 10));
  EXPECT_EQ(Advice(lenet, Of("resnet34", Images(32, 10))),
            "set model.kind = \"resnet34\"");
  EXPECT_EQ(Advice(lenet, Of("vit_tiny", Images(32, 10))),
            "set model.kind = \"vit_base\"");
  EXPECT_EQ(Advice(lenet, Of("gpt_nano", Tokens(32, 10))),
            "set model.kind = \"gpt2\"");
  EXPECT_EQ(Advice(lenet, Of("lenet", Images(32, 100))),
            "set model.num_classes = 100");
  EXPECT_EQ(Advice(lenet, Of("mlp", Images(32, 10))), "");
}

}  // namespace
}  // namespace troupe::tools
