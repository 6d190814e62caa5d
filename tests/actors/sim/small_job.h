// A job small enough to simulate thousands of times: an MLP on 24 samples a
// step, a bucket per layer. It has two variants: floats, and exact numbers, for
// which every order of additions gives the same bits.
//
//   JobSpec spec = SmallJob({/*ranks=*/4, Numbers::kExact});
//
// The exact variant computes in f64 on small integers, with a rate that makes
// the update a multiplication by a power of two (16 of the 24 samples count, so
// that the divisor is one), for the two steps that 53 bits hold.

#ifndef TESTS_ACTORS_SIM_SMALL_JOB_H_
#define TESTS_ACTORS_SIM_SMALL_JOB_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/spec/job_spec.h"
#include "nn/modules/module.h"

namespace troupe::actors {

enum class Numbers { kFloat, kExact };

struct SmallJobOptions {
  int ranks = 1;
  Numbers numbers = Numbers::kFloat;
  std::int64_t steps = 2;  // at most 2 are exact
  // Whether tables are those of inline reductions: reduce and update in one
  // pass.
  bool fused = false;
  double momentum = 0;
  // The width of the hidden layers: with 48 floats, gradients make several
  // chunks.
  std::int64_t width = 6;
  // Whether ranks along tp have pieces of the first layer, cut by columns, of
  // the second, cut by rows, and of the two outputs of the last, which are
  // gathered: of four ranks, two have padding alone.
  bool pieces = false;
};

inline constexpr std::int64_t kSmallJobBatch = 24;

JobSpec SmallJob(const SmallJobOptions& options);

// Returns a model for the exact variant that can be cut into four stages: four
// linear layers in f64, each with a ReLU.
std::unique_ptr<nn::Module> MakeFourLayers();

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SIM_SMALL_JOB_H_
