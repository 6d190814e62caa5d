#include "nn/models/layer_list.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
#include "nn/autograd/kv_cache.h"
#include "nn/kernels/open_kernels.h"
#include "nn/modules/module.h"

namespace troupe::nn {
namespace {

const TensorSpec kDigit = {{28, 28, 1}, DType::kF32};

std::string ErrorOf(const std::vector<std::string>& layers) {
  return std::string(MakeLayers(layers, kDigit, {}).status().message());
}

TEST(MakeLayers, MakesANetwork) {
  auto model = MakeLayers(
      {"conv 32 3 stride=2 pad=1", "relu", "maxpool 2", " avgpool  3 stride=2 ",
       "dropout 0.5", "flatten", "linear 10"},
      kDigit, {});
  ASSERT_TRUE(model.ok()) << model.status();
  std::string names;
  for (const Parameter* p : (*model)->Parameters()) {
    absl::StrAppend(&names, p->name, p->shape.ToString(), " ");
  }
  EXPECT_EQ(names,
            "0.weight[32, 1, 3, 3] 0.bias[32] 6.weight[10, 288] 6.bias[10] ");
  ShapeRecord record;
  EXPECT_EQ(
      ShapeOnlyForward(**model, {5, 28, 28, 1}, DType::kF32, Device{}, record)
          ->shape(),
      (Shape{5, 10}));
}

TEST(MakeLayers, KnowsEveryNormAndActivation) {
  auto model = MakeLayers(
      {"conv 8 3 pad=1 groups=1 bias=0", "batchnorm", "gelu", "groupnorm 4",
       "conv 8 3 pad=2 dilation=2 groups=8", "silu", "rmsnorm",
       "leakyrelu slope=0.2", "adaptiveavgpool 2", "flatten", "linear 6 bias=0",
       "batchnorm", "tanh", "layernorm", "sigmoid", "gelu tanh=1"},
      kDigit, {});
  ASSERT_TRUE(model.ok()) << model.status();
  std::string names;
  for (const Parameter* p : (*model)->Parameters()) {
    absl::StrAppend(&names, p->name, p->shape.ToString(), " ");
  }
  EXPECT_EQ(names,
            "0.weight[8, 1, 3, 3] 1.weight[8] 1.bias[8] 3.weight[8] 3.bias[8] "
            "4.weight[8, 1, 3, 3] 4.bias[8] 6.weight[8] 10.weight[6, 32] "
            "11.weight[6] 11.bias[6] 13.weight[6] 13.bias[6] ");
}

TEST(MakeLayers, TakesTokens) {
  auto model =
      MakeLayers({"embedding 100 8", "linear 100"}, {{16}, DType::kI64}, {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->Parameters()[1]->shape, (Shape{100, 8}));
}

TEST(MakeLayers, SkipsLayers) {
  auto model =
      MakeLayers({"conv 4 3 pad=1", "stash 1", "maxpool 2", "conv 8 3 pad=1",
                  "stash 2", "conv 8 3 pad=1", "popadd 2",
                  "convtranspose 6 2 stride=2", "popconcat 1", "conv 2 1"},
                 kDigit, {});
  ASSERT_TRUE(model.ok()) << model.status();
  // Concatenates 4 stashed channels and 6.
  EXPECT_EQ((*model)->Parameters()[8]->name, "9.weight");
  EXPECT_EQ((*model)->Parameters()[8]->shape, (Shape{2, 10, 1, 1}));
  EXPECT_EQ(ErrorOf({"relu", "popadd 1"}),
            "layer 1, \"popadd 1\": pops \"1\", which no module before it has "
            "stashed; stash it there");
  EXPECT_EQ(ErrorOf({"stash 1", "relu"}),
            "another module stashes \"1\", and no module pops it; pop it, or "
            "leave it out");
}

TEST(MakeLayers, NamesTheLayerThatIsWrong) {
  EXPECT_EQ(ErrorOf({"relu", "conv 32"}),
            "layer 1, \"conv 32\": it takes 2 numbers, and has 1; write conv "
            "OUT KERNEL [stride=1] [pad=0] [dilation=1] [groups=1] [bias=1]");
  EXPECT_EQ(ErrorOf({"conv 32 three"}),
            "layer 0, \"conv 32 three\": \"three\" has no number that it "
            "takes; write conv OUT KERNEL [stride=1] [pad=0] [dilation=1] "
            "[groups=1] [bias=1]");
  EXPECT_EQ(ErrorOf({"conv 32 3 padding=1"}),
            "layer 0, \"conv 32 3 padding=1\": it has no option \"padding\"; "
            "write conv OUT KERNEL [stride=1] [pad=0] [dilation=1] [groups=1] "
            "[bias=1]");
  EXPECT_EQ(ErrorOf({"conv 4 40"}).substr(0, 22), "layer 0, \"conv 4 40\": ");
  for (const char* layer : {"",
                            "convolution 3",
                            "linear 0",
                            "linear -1",
                            "linear 1.5",
                            "linear 1e9",
                            "linear nan",
                            "dropout 1",
                            "relu 2",
                            "maxpool 2 stride=0",
                            "linear 10 10",
                            "conv 1e8 100",
                            "linear 1 =",
                            "maxpool 2 pad=",
                            "linear 10 bias=2",
                            "gelu tanh=0.5",
                            "leakyrelu slope=1",
                            "groupnorm 3",
                            "conv 4 3 groups=3",
                            "conv 4 3 dilation=0"}) {
    EXPECT_FALSE(MakeLayers({layer}, kDigit, {}).ok()) << layer;
  }
  EXPECT_EQ(ErrorOf({}), "a network must have 1 to 10000 layers, not 0");
}

// The last layer of a list is the head of a language model, too.
TEST(MakeLayers, TheLastLayerLeavesOutWhatIsNotAskedFor) {
  const auto model =
      *MakeLayers({"embedding 65 8", "linear 8", "gelu", "linear 65"},
                  {{16}, DType::kI64}, {});
  const auto kernels = *OpenKernels(Device(), {});
  const auto arena =
      *ParameterArena::Create({model->Parameters()}, {}, kernels->allocator());
  ASSERT_TRUE(arena->Initialize(/*seed=*/7).ok());
  Tensor tokens = Tensor::Empty({1, 16}, DType::kI64, kernels->allocator());
  for (int i = 0; i < 16; ++i) tokens.data<std::int64_t>()[i] = 4 * i;
  KvCache cache;
  TextPlaces places;
  places.texts = 1, places.context = 16;
  places.rows = {{/*text=*/0, /*past=*/0}};
  const auto logits = [&](std::int64_t wanted) {
    places.wanted = wanted;
    EXPECT_TRUE(cache.Begin(places).ok());
    Context ctx(*kernels);
    ctx.set_training(false);
    ctx.set_kv_cache(&cache);
    Tensor output = (*model)(ctx, tokens);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return output;
  };
  const Tensor all = logits(-1);
  EXPECT_EQ(all.shape(), (Shape{1, 16, 65}));
  for (const std::int64_t wanted : {0, 9, 15}) {
    EXPECT_TRUE(BitEqual(logits(wanted), all.FlatView(wanted * 65, {1, 1, 65})))
        << wanted;
  }
}

}  // namespace
}  // namespace troupe::nn
