#include "nn/random/philox.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "nn/random/fill_loops.h"

namespace troupe::nn {
namespace {

using Block = std::array<std::uint32_t, 4>;
using KeyWords = std::array<std::uint32_t, 2>;

// Philox4x32-10, written from the paper, sec. 4.3.
Block Philox(Block x, KeyWords key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * x[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<std::uint32_t>(b >> 32) ^ x[1] ^ key[0],
         static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ x[3] ^ key[1],
         static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return x;
}

// The vectors that Random123 publishes (tests/kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(Philox({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsPhiloxAtCounterBlockStepPositionPath) {
  const RandomKey key(42, Purpose::kTest);
  const RandomPosition at = {7, 11, HashName("0.weight")};
  RandomStream stream(key, at);
  for (std::uint32_t block = 0; block < 100; ++block) {
    const Block want =
        Philox({block, at.step, at.position, at.path}, key.words);
    for (std::uint32_t word : want) ASSERT_EQ(stream.Bits32(), word);
  }
}

TEST(FillLoops, DrawWhatAStreamDrawsWithEveryInstructionSet) {
  const RandomKey key(42, Purpose::kTest);
  const RandomPosition at = {7, 11, HashName("0.weight")};
  for (const FillLoops* loops : AvailableFillLoops()) {
    for (std::size_t count : {0, 1, 3, 4, 15, 16, 17, 63, 127, 128, 129, 999}) {
      for (std::uint32_t block : {0u, 1u, 250u, 0xfffffffeu}) {
        const FirstDraw first = {key.words, block, at.step, at.position,
                                 at.path};
        std::vector<std::uint32_t> words(count + 1, 5);
        std::vector<float> values(count + 1, 5.0f);
        loops->bits(first, words.data(), count);
        loops->uniform(first, -0.3, 0x1p-24, values.data(), count);
        for (std::size_t i = 0; i < count; ++i) {
          const auto index = static_cast<std::uint32_t>(i / 4);
          const Block want =
              Philox({block + index, at.step, at.position, at.path}, key.words);
          ASSERT_EQ(words[i], want[i % 4]) << loops->name << ", draw " << i;
          ASSERT_EQ(values[i],
                    static_cast<float>(-0.3 + 0x1p-24 * (want[i % 4] >> 8)))
              << loops->name << ", draw " << i;
        }
        ASSERT_EQ(words[count], 5u) << loops->name;
        ASSERT_EQ(values[count], 5.0f) << loops->name;
      }
    }
  }
}

TEST(FillUniform, DrawsWhatAStreamDraws) {
  const RandomKey key(42, Purpose::kTest);
  const RandomPosition at = {7, 11, HashName("0.weight")};
  RandomStream bits(key, at), numbers(key, at);
  std::vector<std::uint32_t> words(1000);
  std::vector<float> values(1000);
  FillBits32(key, at, 0, absl::MakeSpan(words));
  FillUniformF32(key, at, 0, -2, 2, absl::MakeSpan(values));
  for (std::size_t i = 0; i < words.size(); ++i) {
    ASSERT_EQ(words[i], bits.Bits32());
    ASSERT_EQ(values[i], 4 * numbers.UniformF32() - 2);
  }
}

// These numbers may never change: checkpoints and runs are compared by them.
TEST(RandomStream, GoldenDraws) {
  RandomStream stream(RandomKey(1, Purpose::kInitialize),
                      {0, 0, HashName("0.weight")});
  EXPECT_EQ(stream.Bits32(), 1298319944u);
  EXPECT_EQ(stream.Bits64(), 10897514164106555749u);
  EXPECT_EQ(stream.UniformF32(), 0x9348aap-24f);
  EXPECT_EQ(stream.UniformF64(), 0x1fbc6b074763ccp-53);
  EXPECT_EQ(stream.Below(1000), 824u);
  EXPECT_DOUBLE_EQ(stream.Normal(), 0.92830018248705082);
  std::vector<int> order(8);
  std::iota(order.begin(), order.end(), 0);
  stream.Shuffle(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<int>{1, 7, 4, 0, 2, 3, 5, 6}));
}

TEST(RandomStream, SeedPurposeStepPositionAndPathAllMatter) {
  std::set<std::uint64_t> first;
  auto draw = [&](std::uint64_t seed, Purpose purpose, RandomPosition at) {
    first.insert(RandomStream(RandomKey(seed, purpose), at).Bits64());
  };
  draw(1, Purpose::kTest, {});
  draw(2, Purpose::kTest, {});
  draw(std::uint64_t{1} << 32, Purpose::kTest, {});
  draw(1, Purpose::kData, {});
  draw(1, Purpose::kTest, {1, 0, 0});
  draw(1, Purpose::kTest, {0, 1, 0});
  draw(1, Purpose::kTest, {0, 0, 1});
  EXPECT_EQ(first.size(), 7u);
}

TEST(RandomStream, UniformsLieInTheirRange) {
  RandomStream stream(RandomKey(3, Purpose::kTest), {});
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const float u = stream.UniformF32();
    ASSERT_TRUE(u >= 0 && u < 1);
    const double v = stream.UniformF64();
    ASSERT_TRUE(v >= 0 && v < 1);
    const double w = stream.Uniform(-3, 5);
    ASSERT_TRUE(w >= -3 && w < 5);
    sum += u + v + (w + 3) / 8;
  }
  // Mean of 300,000 uniforms: 0.5 with a deviation of 0.00053.
  EXPECT_NEAR(sum / 300'000, 0.5, 5 * 0.00053);
}

TEST(RandomStream, NormalsHaveTheirMoments) {
  RandomStream stream(RandomKey(4, Purpose::kTest), {});
  constexpr int kDraws = 200'000;
  double m1 = 0, m2 = 0, m4 = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.Normal();
    ASSERT_TRUE(std::isfinite(x));
    m1 += x / kDraws;
    m2 += x * x / kDraws;
    m4 += x * x * x * x / kDraws;
  }
  EXPECT_NEAR(m1, 0, 5 * std::sqrt(1.0 / kDraws));
  EXPECT_NEAR(m2, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(m4, 3, 5 * std::sqrt(96.0 / kDraws));
}

TEST(RandomStream, BelowIsUnbiased) {
  RandomStream stream(RandomKey(5, Purpose::kTest), {});
  EXPECT_EQ(stream.Below(1), 0u);
  constexpr int kBins = 7;
  constexpr int kDraws = 70'000;
  std::array<int, kBins> count{};
  for (int i = 0; i < kDraws; ++i) ++count.at(stream.Below(kBins));
  double chi_squared = 0;
  for (int n : count) {
    const double expected = double{kDraws} / kBins;
    chi_squared += (n - expected) * (n - expected) / expected;
  }
  EXPECT_LT(chi_squared, 22.5);  // 99.9 % quantile of 6 degrees of freedom
}

// Two thirds of 2^64: taking a remainder alone would draw the lower half of
// the range twice as often as the upper.
TEST(RandomStream, BelowIsUnbiasedForALargeBound) {
  RandomStream stream(RandomKey(6, Purpose::kTest), {});
  const std::uint64_t bound = UINT64_MAX / 3 * 2;
  constexpr int kDraws = 20'000;
  int low = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t draw = stream.Below(bound);
    ASSERT_LT(draw, bound);
    low += draw < bound / 2;
  }
  EXPECT_NEAR(low, kDraws / 2, 5 * std::sqrt(kDraws / 4.0));
}

TEST(RandomStream, ShuffleIsAPermutationAndEveryOrderIsAsLikely) {
  RandomStream stream(RandomKey(7, Purpose::kTest), {});
  std::vector<int> order(1000);
  std::iota(order.begin(), order.end(), 0);
  stream.Shuffle(order.begin(), order.end());
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);

  constexpr int kDraws = 24'000;
  std::array<int, 24> count{};
  for (int i = 0; i < kDraws; ++i) {
    std::array<int, 4> four = {0, 1, 2, 3};
    stream.Shuffle(four.begin(), four.end());
    int rank = 0;
    while (std::prev_permutation(four.begin(), four.end())) ++rank;
    ++count.at(rank);
  }
  double chi_squared = 0;
  for (int n : count) chi_squared += (n - 1000.0) * (n - 1000.0) / 1000.0;
  EXPECT_LT(chi_squared, 49.7);  // 99.9 % quantile of 23 degrees of freedom
}

TEST(RandomStreamDeathTest, BelowNeedsAnOutcome) {
  RandomStream stream(RandomKey(8, Purpose::kTest), {});
  EXPECT_DEATH(stream.Below(0), "at least one outcome");
}

TEST(HashName, IsFnv1a) {
  EXPECT_EQ(HashName(""), 0x811c9dc5u);
  EXPECT_EQ(HashName("a"), 0xe40c292cu);
  EXPECT_EQ(HashName("foobar"), 0xbf9cf968u);
}

}  // namespace
}  // namespace troupe::nn
