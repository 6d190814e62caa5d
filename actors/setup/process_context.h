// State that the actors of one process share: its ranks, the number of cores
// that it may use, its files, observer and outcome.
//
//   TROUPE_ASSIGN_OR_RETURN(JobSetup setup, SetUpJob(spec, observer));
//   SpawnCrew(system, setup.process, std::move(setup.checkpoint));
//   setup.process->outcome.Wait();
//
// Limits per machine count `ranks.size()`: the ranks of this process, on the
// cores that it may run on.
//
// Threads: constant except for the outcome, so any number may read.

#ifndef ACTORS_SETUP_PROCESS_CONTEXT_H_
#define ACTORS_SETUP_PROCESS_CONTEXT_H_

#include <cstdint>
#include <map>
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
  Resume resume;  // the checkpoint that the job is resumed from
  // JobInfo::plan_changes and setting_changes.
  std::vector<std::string> plan_changes, setting_changes;
  // TrainerState::settings of this run.
  std::map<std::string, std::string> settings;

  // The ranks in this process, by ascending rank.
  std::vector<RankContextPtr> ranks;
  int number = 0;  // this process's number
  // All processes of the job, and the links to them; null if this is the only
  // one.
  std::shared_ptr<const Roster> roster;
  std::shared_ptr<comm::Fabric> fabric;
  // Memory of tensors that the ranks here reduce with other processes of the
  // host; null: there are none.
  std::shared_ptr<comm::SharedMemory> shared_memory;
  std::string transports;  // JobInfo::transports
  int cores = 1;           // number of cores that this process may run on

  // File system of the checkpoints: the spec's, or the real disk (own_files).
  base::FileSystem* files = nullptr;
  std::unique_ptr<base::FileSystem> own_files;
  std::shared_ptr<base::FileLock> claim;  // lock on the folder of checkpoints
  // Mark of that folder (actors/checkpoint/claim.h), in process 0 of several;
  // empty: there is no folder.
  std::string folder_mark;

  JobObserver* observer = nullptr;   // may be null
  const TestHooks* hooks = nullptr;  // null in production
  mutable JobOutcome outcome;
};
using ProcessContextPtr = std::shared_ptr<const ProcessContext>;

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_PROCESS_CONTEXT_H_
