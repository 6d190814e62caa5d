// Helpers of the tests of configuration files: they parse a text as the file
// "run.toml", with settings of the command line.
//
//   Parsed(kShort, {Set("train.seed", "2")}).job.seed;       // 2
//   ErrorOf("[scheduler]\n");  // "run.toml:1: unknown section [scheduler] ..."

#ifndef TESTS_TOOLS_CONFIG_CONFIG_FIXTURE_H_
#define TESTS_TOOLS_CONFIG_CONFIG_FIXTURE_H_

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

using Settings = std::vector<Setting>;

// The smallest valid file.
inline constexpr char kShort[] = "[train]\nsteps = 10\n";

inline Setting Set(const std::string& key, const std::string& value) {
  return {key, value, "--set " + key};
}

// Returns the configuration of a valid file; fails the test on an error.
inline TrainerConfig Parsed(const std::string& toml,
                            const Settings& settings = {}) {
  const auto loaded = ParseConfig(toml, "run.toml", settings);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? loaded->config : TrainerConfig();
}

// Returns the message of the error, which is one line; empty if there is none.
inline std::string ErrorOf(const std::string& toml,
                           const Settings& settings = {}) {
  const absl::Status status = ParseConfig(toml, "run.toml", settings).status();
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  return std::string(status.message());
}

}  // namespace troupe::tools

#endif  // TESTS_TOOLS_CONFIG_CONFIG_FIXTURE_H_
