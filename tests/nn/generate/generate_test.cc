#include "nn/generate/generate.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
#include "nn/generate/stop_sequences.h"
#include "nn/kernels/open_kernels.h"
#include "nn/models/gpt2.h"
#include "nn/modules/embedding.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {
namespace {

using ::testing::ElementsAre;
using Tokens = std::vector<std::int32_t>;

class GenerateTest : public ::testing::Test {
 protected:
  // Gives `model` memory and initial values.
  void Bind(Module& model) {
    arena_ = *ParameterArena::Create({model.Parameters()}, {},
                                     kernels_->allocator());
    ASSERT_TRUE(arena_->Initialize(/*seed=*/7).ok());
  }

  // Generates the likeliest text; returns the message of an error, or "".
  std::string Error(Module& model, const Tokens& prompt) {
    return std::string(
        Generate(model, *kernels_, prompt, options_, [&](std::int32_t token) {
          said_.push_back(token);
          return said_.size() < enough_;
        }).message());
  }
  Tokens Say(Module& model, const Tokens& prompt) {
    said_.clear();
    EXPECT_EQ(Error(model, prompt), "");
    return said_;
  }

  static GenerateOptions Likeliest() {
    GenerateOptions options;
    options.tokens = 6;
    options.sampling.temperature = 0;
    return options;
  }

  const std::unique_ptr<Kernels> kernels_ = *OpenKernels(Device(), {});
  std::unique_ptr<ParameterArena> arena_;
  GenerateOptions options_ = Likeliest();
  std::size_t enough_ = 1000;
  Tokens said_;
};

// Returns a table whose row t is highest at t + 1, for five tokens.
std::unique_ptr<Sequential> Counter() {
  auto model = std::make_unique<Sequential>();
  model->Append<Embedding>(5, 5);
  return model;
}

void FillCounter(Module& model) {
  float* table = model.Parameters()[0]->value.data<float>();
  std::fill(table, table + 25, 0.0f);
  for (int t = 0; t < 5; ++t) table[t * 5 + (t + 1) % 5] = 1;
}

TEST_F(GenerateTest, EachTokenFollowsTheLast) {
  const std::unique_ptr<Sequential> model = Counter();
  Bind(*model);
  FillCounter(*model);
  EXPECT_THAT(Say(*model, {0, 2}), ElementsAre(3, 4, 0, 1, 2, 3));
}

TEST_F(GenerateTest, EndsWhenItIsEnough) {
  const std::unique_ptr<Sequential> model = Counter();
  Bind(*model);
  FillCounter(*model);
  enough_ = 2;
  EXPECT_THAT(Say(*model, {0}), ElementsAre(1, 2));
}

// Compares with forwards of exactly the tokens so far, one for each token.
TEST_F(GenerateTest, SaysWhatTheModelSaysOfEachText) {
  Gpt2Options gpt = *Gpt2Preset("gpt_nano");
  gpt.vocab_size = 17;
  gpt.context = 24;
  const std::unique_ptr<Sequential> model = *MakeGpt2(gpt);
  Bind(*model);
  options_.tokens = 40;  // beyond the context
  options_.context = gpt.context;
  Tokens text = {3, 1, 4};
  const Tokens said = Say(*model, text);
  ASSERT_EQ(said.size(), 40u);
  for (const std::int32_t token : said) {
    const std::int64_t count = std::min<std::int64_t>(gpt.context, text.size());
    Tensor x = Tensor::Empty({1, count}, DType::kI64, kernels_->allocator());
    std::copy(text.end() - count, text.end(), x.data<std::int64_t>());
    Context ctx(*kernels_);
    ctx.set_training(false);
    const Tensor y = (*model)(ctx, x);
    ASSERT_TRUE(ctx.ok()) << ctx.status();
    const float* row = y.data<float>() + (count - 1) * gpt.vocab_size;
    EXPECT_EQ(token, std::max_element(row, row + gpt.vocab_size) - row);
    text.push_back(token);
  }
}

TEST_F(GenerateTest, WhatCannotBeIsSaid) {
  const std::unique_ptr<Sequential> model = Counter();
  Bind(*model);
  EXPECT_EQ(
      Error(*model, {}),
      "Generate(): the prompt is empty; begin it with at least one token");
  options_.context = 0;
  EXPECT_EQ(Error(*model, {1}),
            "GenerateOptions::context must be at least 1, not 0");
  options_ = Likeliest();
  options_.sampling.top_p = 0;
  EXPECT_EQ(Error(*model, {1}),
            "SamplingOptions.top_p = 0: must be above 0 and at most 1");
}

TEST_F(GenerateTest, WhatTheTextHasCountsForThePenalty) {
  const std::unique_ptr<Sequential> model = Counter();
  Bind(*model);
  FillCounter(*model);
  // After 0 the model would say 1, of the prompt, rather than 2.
  float* table = model->Parameters()[0]->value.data<float>();
  for (int t = 0; t < 5; ++t) table[t * 5 + 2] = 0.7f;
  EXPECT_THAT(Say(*model, {1, 3}), ElementsAre(4, 0, 1, 2, 3, 4));
  options_.sampling.repetition_penalty = 2;
  EXPECT_THAT(Say(*model, {1, 3}), ElementsAre(4, 0, 2, 3, 4, 0));
}

TEST(StopSequencesTest, TheTextEndsBeforeTheFirst) {
  StopSequences stop({"\n\n", "", "User:"});
  EXPECT_EQ(stop.Add("Yes.\n"), "Yes.");
  EXPECT_EQ(stop.Add("No. U"), "\nNo. ");
  EXPECT_EQ(stop.Add("se"), "");
  EXPECT_EQ(stop.Add("s"), "Uses");
  EXPECT_EQ(stop.Add("s\nUser: \n\n"), "s\n");
  EXPECT_TRUE(stop.found());
  EXPECT_EQ(stop.Add("more"), "");
  EXPECT_EQ(stop.Rest(), "");
}

TEST(StopSequencesTest, WhatIsHeldBackComesAtTheEnd) {
  StopSequences stop({"aab"});
  EXPECT_EQ(stop.Add("xaa"), "x");
  EXPECT_EQ(stop.Add("a"), "a");  // "aa" may still go on with a "b"
  EXPECT_FALSE(stop.found());
  EXPECT_EQ(stop.Rest(), "aa");
  StopSequences none({});
  EXPECT_EQ(none.Add("aab"), "aab");
}

// Cut into pieces in every way, a text has the same begin.
TEST(StopSequencesTest, PiecesDoNotMatter) {
  const std::string text = "abaababaab";
  for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {
    StopSequences stop({"abab", "bb"});
    std::string said, piece;
    for (std::size_t i = 0; i < text.size(); ++i) {
      piece += text[i];
      if (i + 1 < text.size() && (cuts >> i & 1) == 0) continue;
      said += stop.Add(piece);
      piece.clear();
    }
    EXPECT_EQ(said + stop.Rest(), "aba");
    EXPECT_TRUE(stop.found());
  }
}

// Takes tokens, and returns four numbers for each.
class NoLogits : public Module {
 public:
  NoLogits() : table_(Add<Embedding>("table", 5, 4)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return table_(ctx, x).View({x.numel(), 4});
  }

 private:
  Embedding& table_;
};

TEST_F(GenerateTest, AnotherShapeIsRefused) {
  NoLogits model;
  Bind(model);
  options_.context = 3;
  EXPECT_EQ(Error(model, {1}),
            "the model gives f32 [3, 4] for a text of 3 tokens, not f32 [1, 3, "
            "vocabulary]; give a model of language");
}

}  // namespace
}  // namespace troupe::nn
