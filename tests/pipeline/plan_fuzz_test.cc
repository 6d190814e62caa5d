// Damages the text of a plan in 20,000 seeded ways: the reader must return an
// error, or a plan whose parts fit together. Sanitizers check the memory.

#include <cstdint>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "pipeline/plan_diff.h"
#include "pipeline/plan_json.h"
#include "tests/pipeline/plan_fixture.h"

namespace troupe::pipeline {
namespace {

constexpr int kRounds = 20000;

// Fragments that damage inserts into a text.
constexpr const char* kPieces[] = {"{",          "}",
                                   "[",          "]",
                                   ",",          ":",
                                   "\"",         "-1",
                                   "1e308",      "1e999",
                                   "null",       "true",
                                   "0",          "1",
                                   "4294967296", "2147483647",
                                   "1048576",    "{}",
                                   "[]",         "\"\"",
                                   "\\u0000",    "\\ud800",
                                   "\xff",       "[[[[[[[[[[",
                                   "\"name\":",  "\"pp\":",
                                   "LR ",        "1F0 ",
                                   "AR1048576 ", "1023F0 ",
                                   "UP0 ",       "RU0 ",
                                   "\"size\":",  "18446744073709551615",
                                   "\"0.1\",",   "\"cuts\":",
                                   "\"a y\",",   "\"choices\":"};

void Damage(nn::RandomStream& draws, std::string& text) {
  const std::size_t at = draws.Below(text.size());
  switch (draws.Below(6)) {
    case 0:
      text[at] = static_cast<char>(draws.Below(256));
      break;
    case 1:  // a digit, so that more of them stay JSON
      for (std::size_t i = at; i < text.size(); ++i) {
        if (text[i] < '0' || text[i] > '9') continue;
        text[i] = static_cast<char>('0' + draws.Below(10));
        break;
      }
      break;
    case 2:
      text.erase(at, 1 + draws.Below(16));
      break;
    case 3:
      text.insert(at, kPieces[draws.Below(std::size(kPieces))]);
      break;
    case 4:
      text.resize(at + 1);
      break;
    default:  // a piece of itself somewhere else
      text.insert(draws.Below(text.size()), text.substr(at, draws.Below(32)));
  }
}

// Returns whether the text is still a plan.
bool Read(const std::string& text) {
  const absl::StatusOr<Plan> plan = PlanFromJson(text);
  if (!plan.ok()) {
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(plan.status().message().find('\n'), absl::string_view::npos);
    EXPECT_LT(plan.status().message().size(), 800u);
    return false;
  }
  EXPECT_EQ(plan->Check(), absl::OkStatus());
  const std::string again = PlanToJson(*plan);
  EXPECT_EQ(PlanToJson(PlanFromJson(again).value()), again);
  EXPECT_FALSE(plan->ToString().empty());
  EXPECT_EQ(Diff(*plan, SmallPlan()).empty(),
            PlanHash(*plan) == PlanHash(SmallPlan()));
  return true;
}

TEST(PlanFuzz, DamagedTextsAreAnsweredInWords) {
  PlanOptions chosen = SmallOptions();
  chosen.algorithms = {{"GPU 1", {{"conv:a", "x:1"}, {"matmul:b", "lt.02"}}},
                       {"GPU 2", {{"conv:a", "x:2"}}}};
  const std::string goods[] = {PlanToJson(SmallPlan()),
                               PlanToJson(NestedPlan()),
                               PlanToJson(SmallPlan(chosen))};
  int plans = 0;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    nn::RandomStream draws(nn::RandomKey(/*seed=*/1, nn::Purpose::kTest),
                           {round, 0, 0});
    std::string text = goods[round % std::size(goods)];
    const std::uint64_t times = 1 + draws.Below(3);
    for (std::uint64_t i = 0; i < times && !text.empty(); ++i) {
      Damage(draws, text);
    }
    plans += Read(text);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(plans, 0) << "some damage is between the fields";
}

TEST(PlanFuzz, EveryTruncation) {
  const std::string good = PlanToJson(SmallPlan());
  for (std::size_t size = 0; size + 2 < good.size(); ++size) {
    ASSERT_FALSE(Read(good.substr(0, size))) << size;
  }
  EXPECT_TRUE(Read(good));
}

}  // namespace
}  // namespace troupe::pipeline
