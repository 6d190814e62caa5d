#include "tests/actors/sim/simulated_run.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

// Where losses or evaluations of `run` are others; empty: nowhere.
std::string ReportDifference(const Reports& run, const Reports& want) {
  // A run that went on, or was stopped, has some of the steps.
  for (const StepReport& step : run.steps) {
    for (const StepReport& other : want.steps) {
      if (step.step != other.step || step.loss == other.loss) continue;
      return absl::StrFormat("the loss of step %d is %.17g, not %.17g",
                             step.step, step.loss, other.loss);
    }
  }
  for (const EvaluationReport& evaluation : run.evaluations) {
    for (const EvaluationReport& other : want.evaluations) {
      if (evaluation.step != other.step || evaluation.loss == other.loss) {
        continue;
      }
      return absl::StrFormat("the evaluation after step %d is %.17g, not %.17g",
                             evaluation.step, evaluation.loss, other.loss);
    }
  }
  return "";
}

std::optional<std::uint64_t> FromEnvironment(const char* name) {
  std::uint64_t number;
  const char* const text = std::getenv(name);
  if (text == nullptr || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

}  // namespace

SimulatedRun Simulate(const JobSpec& spec, const SimulationOptions& options) {
  SimulatedRun run;
  Simulation simulation(spec, options);
  run.result = simulation.Run(&run.reports);
  run.check = simulation.Check();
  run.parameters = simulation.parameters();
  run.hash = simulation.trace_hash();
  run.messages = simulation.messages();
  return run;
}

std::string Difference(const SimulatedRun& run, const SimulatedRun& want) {
  if (!run.check.ok()) return run.check.ToString();
  const absl::Status same = Compare(run.parameters, want.parameters);
  if (!same.ok()) return same.ToString();
  return ReportDifference(run.reports, want.reports);
}

std::vector<std::uint64_t> Seeds(std::uint64_t count) {
  if (const auto only = FromEnvironment("TROUPE_SIM_SEED")) return {*only};
  const std::uint64_t one_in = std::max<std::uint64_t>(
      FromEnvironment("TROUPE_SIM_ONE_IN").value_or(1), 1);
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
                      target == nullptr ? "//tests/actors/sim/..." : target,
                      " --test_filter='", test->test_suite_name(), ".",
                      test->name(), "' --test_env=TROUPE_SIM_SEED=", seed);
}

}  // namespace troupe::actors
