#include "tests/base/seeds.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

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

}  // namespace

std::vector<std::uint64_t> Seeds(std::uint64_t count) {
  if (const auto only = FromEnvironment("TROUPE_SIM_SEED")) return {*only};
  const std::uint64_t one_in = std::max<std::uint64_t>(
      FromEnvironment("TROUPE_SIM_ONE_IN").value_or(1), 1);
  count *= FromEnvironment("TROUPE_SIM_TIMES").value_or(1);
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < count; seed += one_in) {
    seeds.push_back(seed);
  }
  return seeds;
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
