// Runs a whole job of many ranks in one thread, under a seeded scheduler with a
// virtual clock: the very actors of production (actors/crew.h), with a seed
// that chooses every interleaving and delay.
//
//   Simulation simulation(spec, {/*seed=*/42});
//   absl::StatusOr<JobResult> result = simulation.Run();
//   simulation.trace_hash();      // equal for equal seed, spec and build
//   simulation.recorder();        // every action, launch and gradient
//
// What the seed chooses: which actor runs its next message; how eager each
// actor is (some are starved for long stretches, so that ranks drift apart);
// and how large windows of granted steps are. A step yields after every action
// and every piece of a backward, a reduction after every chunk.
//
// Time is virtual: it stands still while anything can run, and then jumps to
// the next timer. So a job that hangs meets its deadline at once, and fails
// with the supervisor's account of who stands where.
//
// Threads: one. Cost: about 2 us per message, so thousands of seeds a minute.
// Sources: TigerBeetle's VOPR, FoundationDB's simulator (Zhou et al. 2021,
// SIGMOD, sec. 4) for the method; caf::scheduler::test_coordinator below.

#ifndef ACTORS_SIM_SIMULATION_H_
#define ACTORS_SIM_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "actors/job.h"
#include "actors/sim/recorder.h"
#include "comm/communicator.h"
#include "nn/arena/parameter_arena.h"
#include "pipeline/plan.h"
#include "pipeline/schedule.h"

namespace troupe::actors {

struct SimulationOptions {
  std::uint64_t seed = 0;
  // A job that sends more messages than this has failed to come to an end.
  std::int64_t messages_max = 10'000'000;
  // Bends the table of a rank before the job starts: how tests plant bugs.
  std::function<void(int rank, pipeline::StepTable& table)> edit_table;
  // As TestHooks::wrap_group.
  std::function<std::unique_ptr<comm::Communicator>(
      std::unique_ptr<comm::Communicator> comm)>
      wrap_group;
  // Called after each training step of each rank with its flat arena.
  std::function<void(int rank, std::int64_t step,
                     const nn::ParameterArena& arena)>
      after_step;
};

class Simulation {
 public:
  Simulation(const JobSpec& spec, SimulationOptions options);

  // Runs the job to its end. Once.
  absl::StatusOr<JobResult> Run(JobObserver* observer = nullptr);

  // Over (actor, message) in the order in which they ran.
  std::uint64_t trace_hash() const { return trace_hash_; }
  std::int64_t messages() const { return messages_; }
  const Recorder& recorder() const { return recorder_; }
  const pipeline::Plan& plan() const { return plan_; }

 private:
  JobSpec spec_;
  const SimulationOptions options_;
  Recorder recorder_;
  pipeline::Plan plan_;
  std::uint64_t trace_hash_ = 0;
  std::int64_t messages_ = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_SIMULATION_H_
