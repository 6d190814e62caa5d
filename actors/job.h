// Runs a training job: the entry point of the library.
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
// any. The observer is called from a thread of its own, one call at a time,
// except OnStart(), which the caller of Start() calls before. It may be slow:
// meanwhile the job does up to 65,536 further steps, which are reported later,
// in order.

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
  // Starts the job. `observer` may be null; outlives the job.
  //   kInvalidArgument: the spec is not complete, sizes or shapes do not fit.
  //   kResourceExhausted: the system refuses the threads.
  //   the kernels' error: their device cannot be opened.
  //   the reader's error: `resume` found a checkpoint that cannot be used.
  static absl::StatusOr<std::unique_ptr<Job>> Start(const JobSpec& spec,
                                                    JobObserver* observer);
  // Waits for the job's threads, also after Wait(). Blocks as long as one is in
  // a call of the user's code (a read that never returns).
  ~Job();

  // Stops the job: it finishes the steps already granted (about 50 ms of them,
  // or one), and writes a checkpoint if a folder is set. Then Wait() returns
  // with `stopped` set.
  void RequestStop();

  // Waits until the job has ended. To be called once.
  absl::StatusOr<JobResult> Wait();

 private:
  explicit Job(std::unique_ptr<RunningJob> running);

  std::unique_ptr<RunningJob> running_;
};

// Starts a job and waits for it.
absl::StatusOr<JobResult> RunJob(const JobSpec& spec,
                                 JobObserver* observer = nullptr);

}  // namespace troupe::actors

#endif  // ACTORS_JOB_H_
