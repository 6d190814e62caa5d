// State that the actors of one rank share, without any of other ranks.
//
//   RankContextPtr context = process.ranks[0];   // SetUpJob() makes them
//   context->plan->StageOf(context->rank);
//   context->groups.Of(GroupId::kDp).Start(collective, comm::Event());
//
// `spec` and `plan` are shared by all ranks of the process, and equal in all
// processes; the rest is the rank's own.
//
// Threads: constant, so any number may read. The communicators in `groups` may
// be used by the rank's communication strand, or by its compute strand for
// inline reductions (comm/communicator.h).

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
  int local_rank = 0;  // number among the ranks of its host
  pipeline::Mesh::Coords coords;
  std::int32_t generation = 0;

  std::shared_ptr<const JobSpec> spec;
  std::shared_ptr<const pipeline::Plan> plan;
  std::shared_ptr<const RunSpan> span;

  // Table of a training step: the plan's, unless a test edits it.
  pipeline::StepTable train_table;
  RankGroups groups;
  // Position of its compute strand within the step. The object changes, but may
  // be read in any thread.
  std::shared_ptr<StepPosition> position;
  // Number of threads that fill the parameters before the first step.
  int start_threads = 1;
  // Memory of gradients that other processes of the host read; null: there are
  // none.
  std::shared_ptr<comm::SharedMemory> shared_memory;

  const TestHooks* hooks = nullptr;  // null in production
};
using RankContextPtr = std::shared_ptr<const RankContext>;

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_RANK_CONTEXT_H_
