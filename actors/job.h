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

#include <memory>

#include "absl/status/statusor.h"
#include "actors/setup/job_report.h"
#include "actors/spec/job_spec.h"

namespace troupe::actors {

class RunningJob;

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
  ~Job();

  // The steps already granted are finished (about 50 ms of them, or one), a
  // checkpoint is written where a folder is set; then Wait() returns with
  // `stopped` set.
  void RequestStop();

  // Blocks until the job has ended. Once.
  absl::StatusOr<JobResult> Wait();

 private:
  explicit Job(std::unique_ptr<RunningJob> running);

  std::unique_ptr<RunningJob> running_;
};

// Start and Wait in one.
absl::StatusOr<JobResult> RunJob(const JobSpec& spec,
                                 JobObserver* observer = nullptr);

}  // namespace troupe::actors

#endif  // ACTORS_JOB_H_
