// The first and last step of a run, and its place in the data at each step.
// Equal in all processes of the job, and constant.
//
//   const RunSpan& span = process.span;             // SetUpJob() makes it
//   span.sampler->BatchAt(step - span.first_step);
//   state.sampler = span.SamplerStateAt(step);      // into a checkpoint
//
// Threads: any number may read.

#ifndef ACTORS_SETUP_RUN_SPAN_H_
#define ACTORS_SETUP_RUN_SPAN_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "data/sampler.h"

namespace troupe::actors {

struct RunSpan {
  // A run without steps, which evaluates the model that `step` steps gave.
  explicit RunSpan(std::int64_t step) : first_step(step), steps(step) {}
  explicit RunSpan(data::Sampler sampler) : sampler(std::move(sampler)) {}

  std::int64_t first_step = 0;  // above 0 when resumed
  std::int64_t steps = 0;       // number of all: the spec's, or its epochs'
  // Its batch 0 is that of first_step. None: the run trains nothing.
  std::optional<data::Sampler> sampler;

  // Returns the sampler's state after `step` committed steps. There must be a
  // sampler.
  data::SamplerState SamplerStateAt(std::int64_t step) const {
    return sampler.value().StateAt(step - first_step);
  }
  // Returns the step after `step` at which an epoch ends first; the largest
  // number if the run trains nothing.
  std::int64_t EpochEndAfter(std::int64_t step) const {
    if (!sampler) return std::numeric_limits<std::int64_t>::max();
    const std::int64_t epoch = sampler->BatchAt(step - first_step).epoch;
    return first_step + sampler->BatchesUntil(epoch + 1);
  }
};

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_RUN_SPAN_H_
