#include "nn/kernels/cuda/libraries/choice_text.h"

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::nn::cuda {
namespace {

TEST(LtAlgorithmText, IsReadBack) {
  const LtAlgorithm algorithm = {
      0, 1, 0xfedcba9876543210u, ~std::uint64_t{0}, 5, 6, 7, 8};
  const std::string text = LtAlgorithmText(algorithm);
  EXPECT_EQ(text.size(), 3u + 128u);
  EXPECT_EQ(text.substr(0, 35), "lt.00000000000000000000000000000001");
  LtAlgorithm read = {};
  ASSERT_TRUE(ParseLtAlgorithm(text, read));
  EXPECT_EQ(read, algorithm);
}

TEST(LtAlgorithmText, IsNothingElse) {
  LtAlgorithm read;
  const std::string text = LtAlgorithmText({});
  for (const std::string& wrong :
       {std::string(), std::string("lt."), text.substr(1), text + "0",
        text.substr(0, text.size() - 1), "xx." + text.substr(3)}) {
    EXPECT_FALSE(ParseLtAlgorithm(wrong, read)) << wrong;
  }
  for (char wrong : {'g', 'A', ' ', '-', '/', ':', '`', '\0'}) {
    std::string damaged = text;
    damaged[60] = wrong;
    EXPECT_FALSE(ParseLtAlgorithm(damaged, read)) << wrong;
  }
}

TEST(EngineChoice, IsReadBack) {
  EngineChoice choice;
  choice.engine = 12;
  EXPECT_EQ(choice.ToText(), "plain:12");
  choice.fused = true;
  choice.knobs = {
      {0, -1}, {2, 64}, {43, std::numeric_limits<std::int64_t>::max()}};
  EXPECT_EQ(choice.ToText(), "fused:12:0=-1:2=64:43=9223372036854775807");
  EngineChoice read;
  read.knobs = {{7, 7}};
  ASSERT_TRUE(EngineChoice::Parse(choice.ToText(), read));
  EXPECT_TRUE(read.fused);
  EXPECT_EQ(read.engine, 12);
  EXPECT_EQ(read.knobs, choice.knobs);
}

TEST(EngineChoice, IsNothingElse) {
  EngineChoice read;
  for (const char* wrong : {"",
                            "plain",
                            "plain:",
                            "plain:-1",
                            "plain:x",
                            "plain:01",
                            "plain: 1",
                            "plain:+1",
                            "other:1",
                            "PLAIN:1",
                            "plain:1:",
                            "plain:1:2",
                            "plain:1:2=",
                            "plain:1:=2",
                            "plain:1:2=3=4",
                            "plain:1:-2=3",
                            "plain:1:2=3:2=4",
                            "plain:1:3=3:2=4",
                            "plain:1:2=03",
                            "plain:1:2=3:",
                            "plain:9223372036854775808",
                            "plain:1:2=9223372036854775808"}) {
    EXPECT_FALSE(EngineChoice::Parse(wrong, read)) << wrong;
  }
}

TEST(EngineChoice, HasSoManyKnobsAndNoMore) {
  std::string text = "plain:1";
  for (std::size_t i = 0; i < EngineChoice::kKnobsMax; ++i) {
    absl::StrAppend(&text, ":", i, "=1");
  }
  EngineChoice read;
  EXPECT_TRUE(EngineChoice::Parse(text, read));
  EXPECT_FALSE(EngineChoice::Parse(text + ":1000=1", read));
}

TEST(AttentionChoice, IsReadBack) {
  AttentionChoice choice;
  choice.samples = 8;
  choice.engine.engine = 6;
  choice.engine.knobs = {{2, 64}};
  EXPECT_EQ(choice.ToText(), "cudnn:8:plain:6:2=64");
  AttentionChoice read;
  ASSERT_TRUE(AttentionChoice::Parse(choice.ToText(), read));
  EXPECT_EQ(read.samples, 8);
  EXPECT_EQ(read.engine.ToText(), choice.engine.ToText());
}

TEST(AttentionChoice, IsNothingElse) {
  AttentionChoice read;
  for (const char* wrong :
       {"", "own", "plain:6", "cudnn:", "cudnn:8", "cudnn:8:", "cudnn:plain:6",
        "cudnn:0:plain:6", "cudnn:-8:plain:6", "cudnn:08:plain:6",
        "cudnn:8:plain", "cudnn:8:8:plain:6"}) {
    EXPECT_FALSE(AttentionChoice::Parse(wrong, read)) << wrong;
  }
}

}  // namespace
}  // namespace troupe::nn::cuda
