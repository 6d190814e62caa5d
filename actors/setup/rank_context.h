// What the actors of one rank work with, and nothing of the other ranks.
//
//   RankContextPtr context = process.ranks[0];   // SetUpJob() makes them
//   context->plan->StageOf(context->rank);
//   context->groups.dp->Start(collective, /*after=*/comm::Event());
//
// `spec` and `plan` are shared by all ranks of the process, and equal in all
// processes; the rest is the rank's own.
//
// Threads: constant, so any number may read. Of what it points at, the
// communicators belong to the rank's communication strand, or to its compute
// strand where it reduces inline (comm/communicator.h).

#ifndef ACTORS_SETUP_RANK_CONTEXT_H_
#define ACTORS_SETUP_RANK_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/engine/rank_groups.h"
#include "actors/engine/step_position.h"
#include "actors/setup/run_span.h"
#include "actors/setup/test_hooks.h"
#include "actors/spec/job_spec.h"
#include "comm/communicator.h"
#include "comm/shm/shared_memory.h"
#include "pipeline/plan.h"

namespace troupe::actors {

struct RankContext {
  int rank = 0;
  int local_rank = 0;  // among those of its host
  pipeline::Mesh::Coords coords;
  std::int32_t generation = 0;

  std::shared_ptr<const JobSpec> spec;
  std::shared_ptr<const pipeline::Plan> plan;
  std::shared_ptr<const RunSpan> span;

  // The rank's table for training: the plan's, unless a test bends it.
  pipeline::StepTable train_table;
  RankGroups groups;
  // Where its compute strand stands. Constant in none of its parts, but safe in
  // any thread.
  std::shared_ptr<StepPosition> position;
  // Number of threads that fill the parameters before the first step.
  int start_threads = 1;
  // Where gradients live that other processes of the host read; null: there are
  // none.
  std::shared_ptr<comm::SharedMemory> shared_memory;

  const TestHooks* hooks = nullptr;  // null in production
};
using RankContextPtr = std::shared_ptr<const RankContext>;

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_RANK_CONTEXT_H_
