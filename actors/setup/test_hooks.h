// Hooks by which tests and the simulator reach into a job. Production passes
// none.
//
//   TestHooks hooks;
//   hooks.after_step = [&](int rank, std::int64_t step, const auto& arena) {
//     seen[rank] = CopyOf(arena.values());
//   };
//   SetUpJob(spec, /*observer=*/nullptr, &hooks);   // hooks outlive the job
//
// A hook that is not set does nothing.
//
// Threads: edit_table and make_group are called in the caller of SetUpJob(),
// wrap_link in the spawner of the ranks, at_boundary on the supervisor's
// strand, the others on each rank's compute strand, so on several at once
// unless the job is simulated.

#ifndef ACTORS_SETUP_TEST_HOOKS_H_
#define ACTORS_SETUP_TEST_HOOKS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "comm/local/local_group.h"
#include "nn/arena/parameter_arena.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

class StageLink;  // stage_link.h

struct TestHooks {
  // Edits a rank's table of a training step, to plant bugs.
  std::function<void(int rank, pipeline::StepTable& table)> edit_table;
  // Makes the groups of ranks, or wraps them; null: comm::MakeLocalGroup.
  comm::GroupFactory make_group;
  // Wraps a rank's link to the stages of its replica in this process.
  std::function<std::shared_ptr<StageLink>(std::shared_ptr<StageLink> link)>
      wrap_link;
  // Called after each training step of each rank, once for each chunk.
  std::function<void(int rank, std::int64_t step,
                     const nn::ParameterArena& arena)>
      after_step;
  // Called whenever all ranks wait at a boundary: they have done `step` steps.
  std::function<void(std::int64_t step)> at_boundary;
  // Returns how often a yielding strand looks into its mailbox before it goes
  // on.
  std::function<int()> mailbox_rounds;
  // Limit on the steps granted ahead of the slowest rank; 0: production's.
  std::int64_t window_max = 0;
  // Number of checkpoint writers, as if the ranks were in that many processes;
  // 0: one.
  int checkpointers = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_TEST_HOOKS_H_
