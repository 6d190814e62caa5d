#include "data/text/token_windows.h"

#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/ops/loss.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

static_assert(kPaddingTarget == nn::ops::kIgnoreIndex,
              "losses do not count the padding");

// Token i is i.
TokenSourcePtr Counting(std::int64_t count) {
  std::vector<Token> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  return *MakeTokenSource(std::move(tokens), count);
}

DatasetPtr Windows(std::int64_t count, const WindowOptions& options) {
  auto windows = MakeTokenWindows(Counting(count), {0, count}, options);
  EXPECT_TRUE(windows.ok()) << windows.status();
  return *windows;
}

WindowOptions Options(std::int64_t context, WindowOrder order) {
  WindowOptions options;
  options.context = context;
  options.order = order;
  return options;
}

TEST(TokenSourceTest, ReadsAndChecks) {
  const auto tokens = MakeTokenSource({5, 0, 3}, 6);
  ASSERT_TRUE(tokens.ok());
  std::vector<std::int64_t> two(2);
  ASSERT_TRUE((*tokens)->Read(1, absl::MakeSpan(two)).ok());
  EXPECT_THAT(two, ElementsAre(0, 3));
  EXPECT_EQ(MakeTokenSource({5, 6}, 6).status().message(),
            "token 1 is 6, which a vocabulary of 6 does not have; give its "
            "real size");
}

TEST(TokenWindowsTest, TargetsAreShiftedByOne) {
  const DatasetPtr windows = Windows(11, Options(3, WindowOrder::kSequential));
  EXPECT_EQ(windows->size(), 3);
  EXPECT_EQ(windows->spec().ToString(), "i64[3] -> i64[3] of 11 classes");
  const Filled batch = FillFrom(*windows, {2, 0});
  ASSERT_TRUE(batch.status.ok()) << batch.status;
  EXPECT_EQ(batch.inputs.shape(), nn::Shape({2, 3}));
  EXPECT_THAT(ToVector<std::int64_t>(batch.inputs),
              ElementsAre(6, 7, 8, 0, 1, 2));
  EXPECT_THAT(ToVector<std::int64_t>(batch.targets),
              ElementsAre(7, 8, 9, 1, 2, 3));
}

TEST(TokenWindowsTest, PaddedWindowsHaveEveryTargetOnce) {
  for (std::int64_t count = 2; count < 20; ++count) {
    WindowOptions options = Options(4, WindowOrder::kSequential);
    options.pad_last = true;
    const DatasetPtr windows = Windows(count, options);
    std::vector<std::int64_t> all(windows->size());
    std::iota(all.begin(), all.end(), 0);
    const Filled batch = FillFrom(*windows, all);
    std::vector<std::int64_t> counted;
    for (const std::int64_t target : ToVector<std::int64_t>(batch.targets)) {
      if (target != kPaddingTarget) counted.push_back(target);
    }
    std::vector<std::int64_t> expected(count - 1);
    std::iota(expected.begin(), expected.end(), 1);
    EXPECT_EQ(counted, expected) << count;
  }
}

TEST(TokenWindowsTest, PaddingIsAtTheEnd) {
  WindowOptions options = Options(4, WindowOrder::kSequential);
  options.pad_last = true;
  const Filled last = FillFrom(*Windows(7, options), {1});
  EXPECT_THAT(ToVector<std::int64_t>(last.inputs), ElementsAre(4, 5, 0, 0));
  EXPECT_THAT(ToVector<std::int64_t>(last.targets),
              ElementsAre(5, 6, kPaddingTarget, kPaddingTarget));
}

TEST(TokenWindowsTest, PaddingIsWhatTheLossIgnores) {
  WindowOptions options = Options(4, WindowOrder::kSequential);
  options.pad_last = true;
  for (const std::int64_t ignored : {-1, 0, 3}) {
    options.padding_target = ignored;
    const Filled last = FillFrom(*Windows(7, options), {1});
    EXPECT_THAT(ToVector<std::int64_t>(last.targets),
                ElementsAre(5, 6, ignored, ignored));
  }
}

TEST(TokenWindowsTest, RandomWindowsFollowFromSeedEpochAndSample) {
  WindowOptions options = Options(5, WindowOrder::kRandom);
  const DatasetPtr windows = Windows(106, options);
  EXPECT_EQ(windows->size(), 21);
  const auto begin = [&](std::int64_t index, std::int64_t epoch) {
    const Filled batch = FillFrom(*windows, {index}, epoch);
    const auto x = ToVector<std::int64_t>(batch.inputs);
    const auto y = ToVector<std::int64_t>(batch.targets);
    for (int t = 0; t < 5; ++t) {
      EXPECT_EQ(x[t], x[0] + t);
      EXPECT_EQ(y[t], x[0] + t + 1);
    }
    return x[0];
  };
  std::set<std::int64_t> begins;
  for (std::int64_t index = 0; index < 21; ++index) {
    for (std::int64_t epoch = 0; epoch < 100; ++epoch) {
      begins.insert(begin(index, epoch));
    }
  }
  // Every position at which a window fits, first and last included.
  EXPECT_EQ(begins.size(), 101u);
  EXPECT_EQ(begin(3, 7), begin(3, 7));
  options.seed = 1;
  EXPECT_NE(ToVector<std::int64_t>(
                FillFrom(*Windows(106, options), {0, 1, 2}).inputs),
            ToVector<std::int64_t>(FillFrom(*windows, {0, 1, 2}).inputs));
}

TEST(TokenWindowsTest, StaysInsideItsRange) {
  const WindowOptions options = Options(4, WindowOrder::kRandom);
  const auto one = MakeTokenWindows(Counting(50), {20, 25}, options);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ((*one)->size(), 1);
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    EXPECT_THAT(ToVector<std::int64_t>(FillFrom(**one, {0}, epoch).inputs),
                ElementsAre(20, 21, 22, 23));
  }
}

TEST(TokenWindowsTest, SaysWhatDoesNotFit) {
  const auto error = [](std::int64_t context, const Range& range, bool pads) {
    WindowOptions options = Options(context, WindowOrder::kSequential);
    options.pad_last = pads;
    return std::string(
        MakeTokenWindows(Counting(10), range, options).status().message());
  };
  EXPECT_EQ(error(5, {0, 5}, false),
            "a window of 5 tokens and their targets needs 6 tokens, there are "
            "5; give more, or make windows smaller");
  EXPECT_EQ(error(5, {9, 10}, true),
            "a window of 5 tokens and their targets needs 2 tokens, there are "
            "1; give more, or make windows smaller");
  EXPECT_THAT(error(0, {0, 10}, false), HasSubstr("1 to 1048576"));
  EXPECT_THAT(error(2, {0, 11}, false), HasSubstr("there are only 10"));
}

}  // namespace
}  // namespace troupe::data
