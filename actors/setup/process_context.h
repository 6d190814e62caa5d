// State that the actors of one process share: its ranks and links, the number
// of cores that it may use, its folder of checkpoints, observer and outcome.
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

#include "actors/setup/checkpoint_folder.h"
#include "actors/setup/job_outcome.h"
#include "actors/setup/job_report.h"
#include "actors/setup/process_links.h"
#include "actors/setup/rank_context.h"
#include "actors/setup/resume.h"
#include "actors/setup/run_span.h"
#include "actors/setup/test_hooks.h"
#include "actors/spec/job_spec.h"
#include "pipeline/plan.h"

namespace troupe::actors {

struct ProcessContext {
  std::shared_ptr<const JobSpec> spec;
  std::shared_ptr<const pipeline::Plan> plan;
  std::shared_ptr<const RunSpan> span;
  std::int32_t generation = 0;
  Resume resume;  // the checkpoint that the job is resumed from
  // TrainerState::settings of this run.
  std::map<std::string, std::string> settings;

  // The ranks in this process, by ascending rank.
  std::vector<RankContextPtr> ranks;
  ProcessLinks links;       // this process among those of the job
  int cores = 1;            // number of cores that this process may run on
  CheckpointFolder folder;  // folder of the job's checkpoints
  bool has_folder = true;   // whether it is that of process 0

  JobObserver* observer = nullptr;   // may be null
  const TestHooks* hooks = nullptr;  // null in production
  mutable JobOutcome outcome;
};
using ProcessContextPtr = std::shared_ptr<const ProcessContext>;

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_PROCESS_CONTEXT_H_
