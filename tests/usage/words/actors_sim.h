// Declares names that the usage comments in actors/sim/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_ACTORS_SIM_H_
#define TESTS_USAGE_WORDS_ACTORS_SIM_H_

#include <cstdint>

#include "actors/checkpoint/checkpoint.h"
#include "actors/job.h"
#include "actors/program/program_spec.h"
#include "actors/setup/test_hooks.h"
#include "actors/sim/executed_order.h"
#include "actors/sim/parameter_log.h"
#include "actors/sim/recorder.h"
#include "actors/sim/seeded_scheduler.h"
#include "actors/sim/simulated_channel.h"
#include "actors/sim/simulated_network.h"
#include "actors/spec/job_spec.h"
#include "nn/arena/parameter_arena.h"
#include "nn/tensor/tensor.h"
#include "pipeline/plan.h"

namespace troupe::actors::usage {

namespace executed_order_h {
extern const pipeline::Plan plan;
extern const Recorder recorder;
}  // namespace executed_order_h

namespace parameter_log_h {
extern const int rank;
extern const std::int64_t step;
extern const nn::ParameterArena arena;
extern const ParameterLog other;
}  // namespace parameter_log_h

namespace preemption_points_h {
extern SeededScheduler scheduler;
extern JobSpec spec;
extern JobObserver* observer;
}  // namespace preemption_points_h

namespace recorder_h {
extern const Recorder recorder;
extern const pipeline::Plan plan;
extern const std::int64_t first_step, steps;
}  // namespace recorder_h

namespace seeded_scheduler_h {
void SpawnActors(caf::actor_system& system);
bool ended();
}  // namespace seeded_scheduler_h

namespace simulated_channel_h {
extern caf::actor_system& system;
extern SeededScheduler& scheduler;
extern const SimulatedChannel::Ends ends;
extern SimulatedChannel::Item item;
extern const caf::error reason;
}  // namespace simulated_channel_h

namespace simulated_inference_h {
extern const JobSpec spec;
extern Checkpoint saved;
extern const nn::Tensor x;
}  // namespace simulated_inference_h

namespace simulated_network_h {
extern caf::actor_system& system;
extern SeededScheduler& scheduler;
extern const SimulatedNetworkOptions options;
caf::actor SpawnDesk(caf::actor_system& system);
}  // namespace simulated_network_h

namespace slow_links_h {
extern caf::actor_system& system;
extern SeededScheduler& scheduler;
extern TestHooks hooks;
}  // namespace slow_links_h

namespace simulation_h {
extern const JobSpec spec;
}

namespace simulated_program_h {
extern const ProgramSpec spec;
}

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_SIM_H_
