#include "nn/generate/generate.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
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

// Returns a model of characters: all its sums are single chains.
std::unique_ptr<Sequential> CharGpt(std::int64_t context) {
  Gpt2Options gpt = *Gpt2Preset("gpt_nano");
  gpt.vocab_size = 65;
  gpt.context = context;
  return *MakeGpt2(gpt);
}

Tokens Prompt(std::int64_t length, std::int32_t first = 7) {
  Tokens prompt;
  for (std::int64_t i = 0; i < length; ++i) {
    prompt.push_back(static_cast<std::int32_t>((first + 11 * i) % 65));
  }
  return prompt;
}

TEST_F(GenerateTest, ACacheChangesNoToken) {
  const std::unique_ptr<Sequential> model = CharGpt(/*context=*/320);
  Bind(*model);
  options_.tokens = 256;
  options_.context = 320;
  for (const double temperature : {0.0, 1.3}) {
    options_.sampling.temperature = temperature;
    options_.cache = false;
    const Tokens without = Say(*model, Prompt(64));
    ASSERT_EQ(without.size(), 256u);
    options_.cache = true;
    EXPECT_EQ(Say(*model, Prompt(64)), without) << temperature;
  }
}

// Beyond the context, each token is a forward of the last part of the text.
TEST_F(GenerateTest, ACacheChangesNoTokenBeyondTheContext) {
  const std::unique_ptr<Sequential> model = CharGpt(/*context=*/24);
  Bind(*model);
  options_.tokens = 40;
  options_.context = 24;
  options_.sampling.temperature = 1.3;
  for (const std::int64_t length : {1, 20, 23, 24, 25, 60}) {
    options_.cache = false;
    const Tokens without = Say(*model, Prompt(length));
    options_.cache = true;
    EXPECT_EQ(Say(*model, Prompt(length)), without) << length;
  }
}

// Counts the tokens of each forward.
TEST_F(GenerateTest, AStepIsOneTokenOfEachText) {
  const std::unique_ptr<Sequential> model = CharGpt(/*context=*/128);
  Bind(*model);
  options_.tokens = 100;
  options_.context = 128;
  std::vector<Shape> whole, steps, outputs;
  const LogitsFn logits = LogitsOf(*model, *kernels_);
  const LogitsFn counted = [&](const Tensor& tokens, const TextPlaces& places) {
    (tokens.dim(1) > 1 ? whole : steps).push_back(tokens.shape());
    EXPECT_EQ(places.empty(), whole.size() == 2 && tokens.dim(1) > 1);
    absl::StatusOr<Tensor> output = logits(tokens, places);
    if (tokens.dim(1) > 1) outputs.push_back(output->shape());
    return output;
  };
  EXPECT_TRUE(Generate(counted, kernels_->allocator(), Prompt(17), options_,
                       [](std::int32_t) { return true; })
                  .ok());
  // The prompt, and the text with which the first step is compared.
  EXPECT_THAT(whole, ElementsAre(Shape{1, 32}, Shape{1, 32}));
  // Only the last position of a prompt is asked for.
  EXPECT_THAT(outputs, ElementsAre(Shape{1, 1, 65}, Shape{1, 32, 65}));
  ASSERT_EQ(steps.size(), 99u);
  for (const Shape& step : steps) EXPECT_EQ(step, (Shape{1, 1}));
}

// Keeps the texts apart.
class Texts : public TextListener {
 public:
  explicit Texts(std::size_t count, std::size_t ends_at = 1000)
      : said(count), ends_at_(ends_at) {}
  bool OnToken(std::size_t text, std::int32_t token) override {
    said[text].push_back(token);
    return said[text].size() < ends_at_ + text;
  }
  bool OnEnd(std::size_t text) override {
    ended.push_back(text);
    return ended.size() < enough;
  }

  std::vector<Tokens> said;
  std::vector<std::size_t> ended;
  std::size_t enough = 1000;

 private:
  const std::size_t ends_at_;
};

TEST_F(GenerateTest, ABatchSaysWhatEachPromptSaysAlone) {
  const std::unique_ptr<Sequential> model = CharGpt(/*context=*/48);
  Bind(*model);
  std::vector<Tokens> prompts;
  for (const std::int64_t length : {3, 40, 1, 17, 60, 9, 48, 33, 2, 16}) {
    prompts.push_back(Prompt(length, static_cast<std::int32_t>(length)));
  }
  options_.tokens = 30;  // some go beyond the context
  options_.context = 48;
  options_.sampling.temperature = 1.2;
  options_.sampling.repetition_penalty = 1.1;
  options_.sampling.seed = 4;
  options_.end_token = 5;
  std::vector<Tokens> alone;
  for (const Tokens& prompt : prompts) {
    alone.push_back(Say(*model, prompt));
    ++options_.sampling.seed;
  }
  options_.sampling.seed = 4;
  for (const std::int64_t batch : {1, 2, 3, 8, 16}) {
    options_.batch = batch;
    Texts texts(prompts.size());
    ASSERT_TRUE(GenerateTexts(LogitsOf(*model, *kernels_),
                              kernels_->allocator(), prompts, options_, texts)
                    .ok());
    EXPECT_EQ(texts.said, alone) << batch;
    EXPECT_EQ(texts.ended.size(), prompts.size());
  }
}

TEST_F(GenerateTest, ATextOfABatchEndsAlone) {
  const std::unique_ptr<Sequential> model = Counter();
  Bind(*model);
  FillCounter(*model);
  options_.batch = 2;
  Texts texts(/*count=*/3, /*ends_at=*/1);
  const LogitsFn logits = LogitsOf(*model, *kernels_);
  ASSERT_TRUE(GenerateTexts(logits, kernels_->allocator(), {{0}, {1}, {2}},
                            options_, texts)
                  .ok());
  EXPECT_THAT(texts.said,
              ElementsAre(Tokens{1}, Tokens{2, 3}, Tokens{3, 4, 0}));
  EXPECT_THAT(texts.ended, ElementsAre(0, 1, 2));
  Texts few(/*count=*/3, /*ends_at=*/1);
  few.enough = 1;
  ASSERT_TRUE(GenerateTexts(logits, kernels_->allocator(), {{0}, {1}, {2}},
                            options_, few)
                  .ok());
  EXPECT_THAT(few.ended, ElementsAre(0));
  EXPECT_TRUE(few.said[2].empty());
}

// Goes on after errors, which it keeps.
class TextsAndErrors : public Texts {
 public:
  using Texts::Texts;
  absl::Status OnError(std::size_t text, const absl::Status& status) override {
    errors.emplace_back(text, status.message());
    return absl::OkStatus();
  }

  std::vector<std::pair<std::size_t, std::string>> errors;
};

// The model has no row for token 65.
TEST_F(GenerateTest, AnErrorIsOfItsTextAlone) {
  const std::unique_ptr<Sequential> model = CharGpt(/*context=*/48);
  Bind(*model);
  options_.tokens = 20;
  options_.context = 48;
  options_.batch = 3;
  const std::vector<Tokens> prompts = {Prompt(5),  {1, 65, 2}, Prompt(9, 3),
                                       Prompt(40), {65},       Prompt(2)};
  TextsAndErrors texts(prompts.size());
  const LogitsFn logits = LogitsOf(*model, *kernels_);
  ASSERT_TRUE(
      GenerateTexts(logits, kernels_->allocator(), prompts, options_, texts)
          .ok());
  ASSERT_EQ(texts.errors.size(), 2u);
  EXPECT_EQ(texts.errors[0].first, 1u);
  EXPECT_EQ(texts.errors[1].first, 4u);
  EXPECT_THAT(texts.errors[0].second, testing::HasSubstr("65"));
  EXPECT_EQ(texts.ended.size(), 4u);
  for (const std::size_t text : {0, 2, 3, 5}) {
    EXPECT_EQ(texts.said[text], Say(*model, prompts[text])) << text;
  }
  // Otherwise the first error ends all texts, and is the answer.
  Texts plain(prompts.size());
  const absl::Status status =
      GenerateTexts(logits, kernels_->allocator(), prompts, options_, plain);
  EXPECT_EQ(status.message(), texts.errors[0].second);
  EXPECT_TRUE(plain.said[2].empty());
}

// Each forward in turn fails, and takes the cache with it.
TEST_F(GenerateTest, TextsGoOnAfterAForwardThatFails) {
  const std::unique_ptr<Sequential> model = CharGpt(/*context=*/32);
  Bind(*model);
  options_.tokens = 12;
  options_.context = 32;
  options_.sampling.temperature = 1.2;
  const std::vector<Tokens> prompts = {Prompt(5), Prompt(28), Prompt(9, 3)};
  std::vector<Tokens> alone;
  for (const Tokens& prompt : prompts) {
    alone.push_back(Say(*model, prompt));
    ++options_.sampling.seed;
  }
  options_.sampling.seed = 0;
  options_.batch = 3;
  int failures = 0, forwards = 0;
  for (int failing = 0; failing == 0 || forwards >= failing; ++failing) {
    LogitsFn logits = LogitsOf(*model, *kernels_);
    forwards = 0;
    const LogitsFn faulty = [&](const Tensor& tokens,
                                const TextPlaces& places) {
      if (forwards++ != failing) return logits(tokens, places);
      logits = LogitsOf(*model, *kernels_);
      return absl::StatusOr<Tensor>(absl::ResourceExhaustedError("no memory"));
    };
    TextsAndErrors texts(prompts.size());
    ASSERT_TRUE(
        GenerateTexts(faulty, kernels_->allocator(), prompts, options_, texts)
            .ok());
    // A forward of several texts fails without a loss.
    ASSERT_LE(texts.errors.size(), 1u);
    failures += static_cast<int>(texts.errors.size());
    for (std::size_t text = 0; text < prompts.size(); ++text) {
      if (!texts.errors.empty() && texts.errors[0].first == text) continue;
      ASSERT_EQ(texts.said[text], alone[text]) << text << ", " << failing;
    }
    ASSERT_LT(failing, 100);
  }
  EXPECT_GE(failures, 3);
}

TEST_F(GenerateTest, TheEndTokenIsNotOfTheText) {
  const std::unique_ptr<Sequential> model = Counter();
  Bind(*model);
  FillCounter(*model);
  options_.end_token = 4;
  EXPECT_THAT(Say(*model, {0}), ElementsAre(1, 2, 3));
  EXPECT_THAT(Say(*model, {3}), ElementsAre());
}

// Adds to each token's logits those of the token before, without attention.
class Mixed : public Module {
 public:
  Mixed() : table_(Add<Embedding>("table", 5, 5)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const Tensor y = table_(ctx, x);
    if (!ctx.computes()) return y;
    for (std::int64_t n = 0; n < y.dim(0); ++n) {
      for (std::int64_t t = y.dim(1) - 1; t > 0; --t) {
        float* const row = y.data<float>() + (n * y.dim(1) + t) * 5;
        for (int i = 0; i < 5; ++i) row[i] += 1.5f * row[i - 5];
      }
    }
    return y;
  }

 private:
  Embedding& table_;
};

TEST_F(GenerateTest, AModelThatTheCacheDoesNotFitHasNone) {
  Mixed model;
  Bind(model);
  FillCounter(model);
  options_.cache = false;
  const Tokens without = Say(model, {2, 0});
  options_.cache = true;
  EXPECT_EQ(Say(model, {2, 0}), without);
}

TEST_F(GenerateTest, WhatCannotBeIsSaid) {
  const std::unique_ptr<Sequential> model = Counter();
  Bind(*model);
  EXPECT_EQ(
      Error(*model, {}),
      "Generate(): the prompt is empty; begin it with at least one token");
  options_.batch = 0;
  EXPECT_EQ(Error(*model, {1}),
            "GenerateOptions::batch must be at least 1, not 0");
  options_.batch = 1;
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
