#include "tests/base/seeds.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

std::optional<std::uint64_t> FromEnvironment(const char* name) {
  std::uint64_t number;
  const char* const text = std::getenv(name);
  if (text == nullptr || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

// Returns one in n of the numbers below `count`, where n is the value of the
// variable. The position within each n varies, so that n = 2 does not keep only
// even numbers.
std::vector<std::uint64_t> OneIn(const char* variable, std::uint64_t count) {
  const std::uint64_t one_in =
      std::max<std::uint64_t>(FromEnvironment(variable).value_or(1), 1);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i * one_in < count; ++i) {
    const std::uint64_t number = i * one_in + i % one_in;
    if (number < count) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

std::vector<std::uint64_t> Seeds(std::uint64_t count) {
  if (const auto only = FromEnvironment("TROUPE_SIM_SEED")) return {*only};
  count *= FromEnvironment("TROUPE_SIM_TIMES").value_or(1);
  return OneIn("TROUPE_SIM_ONE_IN", count);
}

std::vector<std::uint64_t> EverySeed(std::uint64_t count) {
  if (const auto only = FromEnvironment("TROUPE_SIM_SEED")) return {*only};
  std::vector<std::uint64_t> seeds(count);
  absl::c_iota(seeds, 0);
  return seeds;
}

std::vector<std::uint64_t> Cases(std::uint64_t count) {
  return OneIn("TROUPE_CASES_ONE_IN", count);
}

std::string ReplayCommand(std::uint64_t seed) {
  const testing::TestInfo* test =
      testing::UnitTest::GetInstance()->current_test_info();
  const char* target = std::getenv("TEST_TARGET");
  return absl::StrCat("\nreplay: bazel test ",
                      target == nullptr ? "//tests/..." : target,
                      " --test_filter='", test->test_suite_name(), ".",
                      test->name(), "' --test_env=TROUPE_SIM_SEED=", seed);
}

}  // namespace troupe
