#include "nn/generate/token_choice.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::Gt;

constexpr int kDraws = 20'000;

// Returns the share of each token in kDraws draws.
std::vector<double> Shares(const SamplingOptions& options,
                           const std::vector<float>& logits) {
  TokenChoice choice(options);
  std::vector<double> shares(logits.size());
  for (int i = 0; i < kDraws; ++i) shares[*choice.Next(logits)] += 1.0 / kDraws;
  return shares;
}

// Expects `share` within five standard deviations of `probability`.
void ExpectShare(double share, double probability) {
  EXPECT_NEAR(share, probability,
              5 * std::sqrt(probability * (1 - probability) / kDraws));
}

TEST(TokenChoiceTest, TokensComeAsOftenAsTheirSoftmax) {
  SamplingOptions options;
  options.temperature = 0.5;
  const std::vector<double> shares =
      Shares(options, {0, std::log(2.0f), std::log(3.0f)});
  // 1 : 2 : 3 at temperature 1, their squares at a half.
  ExpectShare(shares[0], 1 / 14.0);
  ExpectShare(shares[1], 4 / 14.0);
  ExpectShare(shares[2], 9 / 14.0);
}

TEST(TokenChoiceTest, TopKLeavesTheLikeliest) {
  SamplingOptions options;
  options.top_k = 2;
  const std::vector<double> shares =
      Shares(options, {std::log(3.0f), 0, std::log(2.0f), 0});
  ExpectShare(shares[0], 0.6);
  ExpectShare(shares[2], 0.4);
  EXPECT_EQ(shares[1] + shares[3], 0);
}

TEST(TokenChoiceTest, TopPLeavesTheFewestThatSuffice) {
  const std::vector<float> logits = {0, std::log(5.0f), std::log(4.0f)};
  SamplingOptions options;
  options.top_p = 0.4;  // the likeliest alone has half
  EXPECT_THAT(Shares(options, logits), ElementsAre(0, Gt(0.999), 0));
  options.top_p = 0.6;
  const std::vector<double> shares = Shares(options, logits);
  EXPECT_EQ(shares[0], 0);
  ExpectShare(shares[1], 5 / 9.0);
  options.top_p = 1e-9;
  EXPECT_THAT(Shares(options, logits), ElementsAre(0, Gt(0.999), 0));
}

TEST(TokenChoiceTest, MinPLeavesOutTheUnlikely) {
  const std::vector<float> logits = {0, std::log(5.0f), std::log(4.0f)};
  SamplingOptions options;
  options.min_p = 0.21;  // the first is 0.2 times as likely as the likeliest
  const std::vector<double> shares = Shares(options, logits);
  EXPECT_EQ(shares[0], 0);
  ExpectShare(shares[1], 5 / 9.0);
  options.min_p = 0.19;
  ExpectShare(Shares(options, logits)[0], 0.1);
  options.min_p = 1;
  EXPECT_THAT(Shares(options, logits), ElementsAre(0, Gt(0.999), 0));
}

// The numbers are those of Hugging Face's RepetitionPenaltyLogitsProcessor.
TEST(TokenChoiceTest, RepetitionPenaltyMakesTokensOfTheTextLessLikely) {
  SamplingOptions options;
  options.temperature = 0;
  options.repetition_penalty = 2;
  TokenChoice choice(options);
  EXPECT_EQ(*choice.Next({1, 3, 2}, {}), 1);
  // 3 / 2 is below 2; once more divides nothing.
  EXPECT_EQ(*choice.Next({1, 3, 2}, {1, 1}), 2);
  EXPECT_EQ(*choice.Next({1, 3, 2}, {1, 2, 1}), 1);
  // -1 * 2 is below -1.5. Tokens that the model does not have count for none.
  EXPECT_EQ(*choice.Next({-1, -1.5f, -4}, {0, 9, -1}), 1);
  options.repetition_penalty = 1;
  EXPECT_EQ(*TokenChoice(options).Next({1, 3, 2}, {1, 1}), 1);
}

TEST(TokenChoiceTest, TemperatureZeroTakesTheFirstOfTheLikeliest) {
  SamplingOptions options;
  options.temperature = 0;
  EXPECT_EQ(*TokenChoice(options).Next({1, 3, 2, 3}), 1);
}

TEST(TokenChoiceTest, TheSeedDecides) {
  const std::vector<float> logits(100, 0.0f);
  const auto draw = [&](std::uint64_t seed) {
    SamplingOptions options;
    options.seed = seed;
    TokenChoice choice(options);
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back(*choice.Next(logits));
    return tokens;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(TokenChoiceTest, LogitsFarApartOverflowNothing) {
  SamplingOptions options;
  options.temperature = 1e-6;
  TokenChoice choice(options);
  EXPECT_EQ(*choice.Next({-3e38f, 3e38f, 0}), 1);
}

TEST(TokenChoiceTest, LogitsThatAreNoNumbersAreNamed) {
  TokenChoice choice((SamplingOptions()));
  EXPECT_EQ(choice.Next({0, std::numeric_limits<float>::quiet_NaN()})
                .status()
                .message(),
            "the model's logit of token 1 is nan; use an earlier checkpoint of "
            "the run");
  EXPECT_FALSE(choice.Next({std::numeric_limits<float>::infinity()}).ok());
}

TEST(TokenChoiceTest, OptionsThatCannotBeAreNamed) {
  const auto error = [](double temperature, std::int64_t top_k, double top_p) {
    SamplingOptions options;
    options.temperature = temperature;
    options.top_k = top_k;
    options.top_p = top_p;
    return std::string(options.Validate().message());
  };
  EXPECT_EQ(error(0, 0, 1), "");
  EXPECT_EQ(error(-1, 0, 1),
            "SamplingOptions.temperature = -1: must be at least 0");
  EXPECT_NE(error(std::nan(""), 0, 1), "");
  EXPECT_EQ(error(1, -1, 1), "SamplingOptions.top_k = -1: must be at least 0");
  EXPECT_EQ(error(1, 0, 0),
            "SamplingOptions.top_p = 0: must be above 0 and at most 1");
  EXPECT_NE(error(1, 0, 1.5), "");
}

}  // namespace
}  // namespace troupe::nn
