// A run of 20 steps, for tests of what a supervisor does at its boundaries.

#ifndef TESTS_ACTORS_SUPERVISION_TWENTY_STEPS_H_
#define TESTS_ACTORS_SUPERVISION_TWENTY_STEPS_H_

#include <cstdint>
#include <memory>

#include "actors/setup/run_span.h"

namespace troupe::actors {

// Returns a run of 256 samples in steps of 32: an epoch has 8 steps.
inline std::shared_ptr<RunSpan> TwentySteps(std::int64_t first_step) {
  data::SamplerOptions options;
  options.dataset_size = 256;
  options.global_batch_size = 32;
  auto span = std::make_shared<RunSpan>(*data::Sampler::Create(options));
  span->first_step = first_step;
  span->steps = 20;
  return span;
}

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SUPERVISION_TWENTY_STEPS_H_
