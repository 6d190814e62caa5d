// Runs a whole job of many ranks in one thread, under a seeded scheduler with a
// virtual clock (deterministic simulation testing): the actors of production
// (actors/supervision/spawn_crew.h), with a seed that chooses every
// interleaving and delay.
//
//   Simulation simulation(spec, {/*seed=*/42});
//   absl::StatusOr<JobResult> result = simulation.Run();
//   absl::Status status = simulation.Check();   // invariants; equal ranks
//   simulation.trace_hash();      // equal for equal seed, spec and build
//   simulation.recorder();        // every action, launch and gradient
//
// The seed chooses which actor runs its next message; where a handler is
// suspended while others run, at its sends, its reads of samples, its
// operations on files and its calls of the observer; how eager each actor is
// (some are starved for long stretches, so that ranks drift apart), and how
// slow each link between two stages; and how large windows of granted steps
// are. A step yields after every action and every piece of a backward, a
// reduction after every chunk.
//
// Time is virtual: it stands still as long as any actor can run, unless
// `message_time_max` is set, and then jumps to the next timer. So a job that
// hangs meets its deadline at once, and fails with the supervisor's report of
// each rank's position.
//
// Threads: one. Cost: about 2 us per message, so thousands of seeds a minute.
// Sources: TigerBeetle's VOPR, FoundationDB's simulator (Zhou et al. 2021,
// SIGMOD, sec. 4) for the method; built on caf::scheduler::test_coordinator.

#ifndef ACTORS_SIM_SIMULATION_H_
#define ACTORS_SIM_SIMULATION_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/setup/job_report.h"
#include "actors/sim/parameter_log.h"
#include "actors/sim/recorder.h"
#include "actors/spec/job_spec.h"
#include "comm/local/local_group.h"
#include "nn/arena/parameter_arena.h"
#include "pipeline/plan.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

struct SimulationOptions {
  std::uint64_t seed = 0;
  // Limit on the time of a message, which the seed draws; zero: time stands
  // still. With a limit near the job's timeout, answers and timeouts race.
  absl::Duration message_time_max = absl::ZeroDuration();
  // Number of messages after which a stop is requested; below 0: never.
  std::int64_t stop_after_messages = -1;
  // Limit on the messages of the job, beyond which it fails.
  std::int64_t messages_max = 10'000'000;
  // Edits the table of a rank before the job starts, to plant bugs.
  std::function<void(int rank, pipeline::StepTable& table)> edit_table;
  // Makes the groups of ranks, or wraps them; null: comm::MakeLocalGroup.
  comm::GroupFactory make_group;
  // Called after each training step of each rank with its flat arena.
  std::function<void(int rank, std::int64_t step,
                     const nn::ParameterArena& arena)>
      after_step;
};

class Simulation {
 public:
  Simulation(const JobSpec& spec, SimulationOptions options);

  // Runs the job to its end. To be called once.
  absl::StatusOr<JobResult> Run(JobObserver* observer = nullptr);

  // Checks what must hold for every seed: the job came to its end, the
  // invariants of recorder.h hold, and after each step ranks that hold the same
  // parameter had equal bits of it.
  //   kFailedPrecondition: names the broken invariant, its rank and step.
  //   other: the job's error.
  absl::Status Check() const;

  // Returns a hash over (actor, message) in the order in which they ran, and
  // over all parameters after each step.
  std::uint64_t trace_hash() const { return trace_hash_; }
  std::int64_t messages() const { return messages_; }
  const Recorder& recorder() const { return recorder_; }
  // Compare() of two runs' logs returns whether their parameters were equal.
  const ParameterLog& parameters() const { return parameters_; }
  const pipeline::Plan& plan() const { return plan_; }

 private:
  JobSpec spec_;
  const SimulationOptions options_;
  Recorder recorder_;
  ParameterLog parameters_;
  pipeline::Plan plan_;
  std::int64_t first_step_ = 0;
  absl::StatusOr<JobResult> result_ = absl::UnknownError("not run");
  std::uint64_t trace_hash_ = 0;
  std::int64_t messages_ = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_SIMULATION_H_
