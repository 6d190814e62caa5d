// What the actors of one process share: the ranks that live in it, the machine
// as it may use it, and the ways out of it (files, observer, outcome).
//
//   TROUPE_ASSIGN_OR_RETURN(JobSetup setup, SetUpJob(spec, observer));
//   SpawnCrew(system, setup.process, std::move(setup.checkpoint));
//   setup.process->outcome.Wait();
//
// Whatever counts ranks of a machine counts `ranks.size()`: those of this
// process, on the cores that it may run on.
//
// Threads: constant but for the outcome, so any number may read.

#ifndef ACTORS_SETUP_PROCESS_CONTEXT_H_
#define ACTORS_SETUP_PROCESS_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/setup/job_outcome.h"
#include "actors/setup/job_report.h"
#include "actors/setup/rank_context.h"
#include "actors/setup/resume.h"
#include "actors/setup/roster.h"
#include "actors/setup/run_span.h"
#include "actors/setup/test_hooks.h"
#include "actors/spec/job_spec.h"
#include "base/file_system.h"
#include "comm/fabric.h"
#include "comm/shm/shared_memory.h"
#include "pipeline/plan.h"

namespace troupe::actors {

struct ProcessContext {
  std::shared_ptr<const JobSpec> spec;
  std::shared_ptr<const pipeline::Plan> plan;
  std::shared_ptr<const RunSpan> span;
  std::int32_t generation = 0;
  Resume resume;  // what the job goes on from
  // How the plan differs from that of the run that wrote the checkpoint.
  std::vector<std::string> plan_changes;

  // The ranks that live here, by ascending rank.
  std::vector<RankContextPtr> ranks;
  // The job's processes, and the way to them; null where this is the only one.
  int number = 0;  // of this process
  std::shared_ptr<const Roster> roster;
  std::shared_ptr<comm::Fabric> fabric;
  // What the ranks here reduce with others of the host lives there; null: there
  // are none.
  std::shared_ptr<comm::SharedMemory> shared_memory;
  std::string transports;  // of JobInfo
  int cores = 1;           // that this process may run on

  // Where checkpoints are: the spec's files, or the real disk.
  base::FileSystem* files = nullptr;
  std::unique_ptr<base::FileSystem> own_files;
  std::shared_ptr<base::FileLock> claim;  // to the folder of checkpoints

  JobObserver* observer = nullptr;   // may be null
  const TestHooks* hooks = nullptr;  // null in production
  mutable JobOutcome outcome;
};
using ProcessContextPtr = std::shared_ptr<const ProcessContext>;

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_PROCESS_CONTEXT_H_
