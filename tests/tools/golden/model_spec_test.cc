#include "tools/golden/model_spec.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe::golden {
namespace {

using nlohmann::json;

std::string ModelError(const json& spec) {
  return std::string(MakeSpecModel(spec).status().message());
}

TEST(MakeSpecModel, TakesTheArgumentsOfTheScript) {
  const auto model = MakeSpecModel({{"kind", "gpt2"},
                                    {"layers", 3},
                                    {"heads", 2},
                                    {"width", 8},
                                    {"context", 4},
                                    {"vocab_size", 5}});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->Parameters()[0]->shape, (nn::Shape{5, 8}));
  EXPECT_EQ((*model)->Parameters()[1]->shape, (nn::Shape{4, 8}));

  const auto vgg = MakeSpecModel(
      {{"kind", "vgg"}, {"batch_norm", true}, {"hidden", 7}, {"width", 2}});
  ASSERT_TRUE(vgg.ok()) << vgg.status();
  EXPECT_EQ((*vgg)->Parameters()[2]->name, "features.1.weight");
  EXPECT_EQ((*vgg)->Parameters().back()->shape, (nn::Shape{1000}));

  const auto cifar = MakeSpecModel({{"kind", "resnet"}, {"cifar", true}});
  ASSERT_TRUE(cifar.ok()) << cifar.status();
  EXPECT_EQ((*cifar)->Parameters()[0]->shape, (nn::Shape{64, 3, 3, 3}));

  const auto vit = MakeSpecModel({{"kind", "vit"}, {"patch", 56}});
  ASSERT_TRUE(vit.ok()) << vit.status();
  EXPECT_EQ((*vit)->Parameters()[0]->shape, (nn::Shape{768, 3, 56, 56}));
}

TEST(MakeSpecModel, NamesWhatItDoesNotTake) {
  EXPECT_EQ(ModelError({{"kind", "lstm"}}),
            "there is no model \"lstm\"; choose resnet, vgg, gpt2 or vit");
  EXPECT_EQ(ModelError({{"kind", "vit"}, {"layers", 2}}),
            "\"vit\" does not take {\"layers\":2}; remove it, or add it to "
            "model_spec.cc");
  EXPECT_EQ(ModelError({{"kind", "gpt2"}, {"width", "wide"}}),
            "gpt2: width must be a number, not \"wide\"");
  EXPECT_EQ(ModelError({{"kind", "resnet"}, {"depth", 19}}),
            "there is no ResNet-19; there are 18, 34, 50 and 101");
}

TEST(MakeSpecOptimizer, TakesTheArgumentsOfTheScript) {
  const auto sgd =
      MakeSpecOptimizer({{"kind", "sgd"}, {"lr", 0.5}, {"momentum", 0.9}});
  ASSERT_TRUE(sgd.ok()) << sgd.status();
  EXPECT_EQ((*sgd)->LearningRate(0), 0.5);
  const auto adamw = MakeSpecOptimizer({{"kind", "adamw"}, {"lr", 0.25}});
  ASSERT_TRUE(adamw.ok()) << adamw.status();
  EXPECT_EQ((*adamw)->LearningRate(0), 0.25);
}

TEST(MakeSpecOptimizer, NamesWhatItDoesNotTake) {
  const auto error = [](const json& spec) {
    return std::string(MakeSpecOptimizer(spec).status().message());
  };
  EXPECT_EQ(error({{"kind", "adam"}}),
            "there is no optimizer \"adam\"; choose sgd or adamw");
  EXPECT_EQ(error({{"kind", "adamw"}, {"momentum", 0.5}}),
            "\"adamw\" does not take {\"momentum\":0.5}; remove it, or add it "
            "to model_spec.cc");
  EXPECT_EQ(error(json::array()),
            "there is no optimizer \"\"; choose sgd or adamw");
}

}  // namespace
}  // namespace troupe::golden
