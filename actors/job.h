// Runs a job: the front of the whole house.
//
//   absl::StatusOr<std::unique_ptr<Job>> job = Job::Start(spec, &observer);
//   if (!job.ok()) return job.status();
//   absl::StatusOr<JobResult> result = (*job)->Wait();
//
// Start() makes the plan and checks everything that can be checked before the
// first actor exists; then a supervisor, and per rank a rank actor with its
// loader, compute and communication strands, do the work (actors/README.md).
//
// Errors come back as one Status that names rank, actor and cause; the first
// failure anywhere ends the job.
//
// Threads: Start, Wait and the destructor from one thread; RequestStop() from
// any. The observer is called from a thread of its own, one call at a time
// (OnStart from the caller of Start, before there is one). It may be slow:
// steps go on meanwhile, up to 65,536 of them, and are reported later, in
// order.

#ifndef ACTORS_JOB_H_
#define ACTORS_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/expected_memory.h"
#include "actors/job_spec.h"
#include "data/sampler.h"
#include "pipeline/plan.h"

namespace troupe::actors {

struct JobInfo {
  pipeline::Plan plan;
  std::int64_t first_step = 0;  // above 0 when resumed
  std::int64_t steps = 0;
  // Where the run begins in its data: batch 0 is that of the first step.
  std::optional<data::Sampler> sampler;
  std::string resumed_from;  // path of the checkpoint
  // How the plan differs from that of the run that wrote the checkpoint: a line
  // for each field, with its value then and now, as in "mesh[dp].size: 2, 4"
  // (pipeline/plan_diff.h). One line says why where that plan cannot be read;
  // none where the checkpoint has no plan.
  std::vector<std::string> plan_changes;
  // Tensors that only the job has, and only the checkpoint: where allowed
  // (CheckpointOptions), the former begin with initial values, the latter are
  // left out.
  std::vector<std::string> missing, unexpected;
  // How this process exchanges tensors with the job's others, as in "shm (1
  // link), tcp (2 links)"; empty: there are none.
  std::string transports;
  // What its tensors will hold, by estimate; a total of 0: nobody knows.
  ExpectedMemory memory;
};

// One committed step. Losses and accuracies are means over all counted targets
// of the global batch; a loss is the sum where JobSpec::loss_reduction says so.
struct StepReport {
  std::int64_t step = 0;  // 1 after the first
  double loss = 0;
  double accuracy = 0;  // 0 for regression
  std::int64_t samples = 0;
  bool skipped = false;   // its gradients were not finite; nothing was updated
  double loss_scale = 1;  // what they were multiplied by
  double seconds = 0;     // since the job started, when it was reported
  double step_seconds = 0;  // that it took, a mean over those reported with it
  double lr = 0;            // learning rate of the step
  // Norm of all mean gradients of the step, before clipping; 0 where the
  // optimizer does not clip by it.
  double grad_norm = 0;
  // Most bytes that the tensors of any one rank have held at once so far.
  std::int64_t peak_bytes = 0;
};

struct EvaluationReport {
  std::int64_t step = 0;
  double loss = 0;
  double accuracy = 0;
  std::int64_t count = 0;  // targets
};

struct JobResult {
  std::int64_t steps = 0;  // committed in all
  double loss = 0;         // of the last step
  bool stopped = false;    // by RequestStop, before all steps were done
  // Why the job stopped early, in a sentence; empty: it did not.
  std::string converged;
  EvaluationReport evaluation;  // the last one; count 0: none
  EvaluationReport best;        // of this run's, by best_metric; count 0: none
  std::string checkpoint;       // path of the last one written; may be empty
  double seconds = 0;
};

class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void OnStart(const JobInfo&) {}
  // Consecutive steps, in order, each exactly once.
  virtual void OnSteps(absl::Span<const StepReport>) {}
  virtual void OnEvaluation(const EvaluationReport&) {}
  virtual void OnCheckpoint(std::int64_t /*step*/,
                            const std::string& /*path*/) {}
};

class Job {
 public:
  // `observer` may be null; outlives the job.
  //   kInvalidArgument: the spec is not complete, sizes or shapes do not fit.
  //   kResourceExhausted: the system refuses the threads.
  //   the kernels' error: their device cannot be opened.
  //   the reader's error: `resume` found a checkpoint that cannot be used.
  static absl::StatusOr<std::unique_ptr<Job>> Start(const JobSpec& spec,
                                                    JobObserver* observer);
  // Waits for the job's threads, after Wait() too: one that is stuck in a call
  // of the user's (a read that never returns) holds it up.
  virtual ~Job() = default;

  // The steps already granted are finished (about 50 ms of them, or one), a
  // checkpoint is written where a folder is set; then Wait() returns with
  // `stopped` set.
  virtual void RequestStop() = 0;

  // Blocks until the job has ended. Once.
  virtual absl::StatusOr<JobResult> Wait() = 0;
};

// Start and Wait in one.
absl::StatusOr<JobResult> RunJob(const JobSpec& spec,
                                 JobObserver* observer = nullptr);

}  // namespace troupe::actors

#endif  // ACTORS_JOB_H_
