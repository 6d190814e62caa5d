// Helpers of the tests of layers that communicate along dp: they compare a job
// whose ranks have parts of a batch with a job of one rank that has all of it.
//
//   const TrainedValues one = TrainedValuesOf(NormedJob(/*ranks=*/1));
//   const TrainedValues many = TrainedValuesOf(NormedJob(/*ranks=*/4));
//   ExpectNear(many, one, /*tolerance=*/1e-9);

#ifndef TESTS_ACTORS_JOBS_BATCH_SPLIT_FIXTURE_H_
#define TESTS_ACTORS_JOBS_BATCH_SPLIT_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/actors/sim/simulated_run.h"

namespace troupe::actors {

// Losses of all steps, and parameters after the last.
struct TrainedValues {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> parameters;
};

// Simulates a job whose parameters are f64.
inline TrainedValues TrainedValuesOf(const JobSpec& spec) {
  TrainedValues values;
  SimulationOptions options;
  options.after_step = [&](int, std::int64_t, const nn::ParameterArena& arena) {
    for (const nn::ArenaSlot& slot : arena.slots()) {
      const auto span = slot.parameter->value.span<double>();
      values.parameters[slot.parameter->name].assign(span.begin(), span.end());
    }
  };
  values.losses = Simulate(spec, options).reports.losses();
  return values;
}

// `tolerance` is relative for losses and absolute for parameters.
inline void ExpectNear(const TrainedValues& got, const TrainedValues& want,
                       double tolerance) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (std::size_t i = 0; i < want.losses.size(); ++i) {
    EXPECT_NEAR(got.losses[i], want.losses[i], tolerance * want.losses[i]);
  }
  for (const auto& [name, values] : want.parameters) {
    const std::vector<double>& others = got.parameters.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(others[i], values[i], tolerance) << name;
    }
  }
}

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_JOBS_BATCH_SPLIT_FIXTURE_H_
