// What usage in actors/sim/ leaves to its reader.

#ifndef TESTS_USAGE_WORDS_ACTORS_SIM_H_
#define TESTS_USAGE_WORDS_ACTORS_SIM_H_

#include <cstdint>

#include "actors/job_spec.h"
#include "actors/sim/recorder.h"
#include "pipeline/plan.h"

namespace troupe::actors::usage {

namespace recorder_h {
extern const Recorder recorder;
extern const pipeline::Plan plan;
extern const std::int64_t first_step, steps;
}  // namespace recorder_h

namespace simulation_h {
extern const JobSpec spec;
}

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_SIM_H_
