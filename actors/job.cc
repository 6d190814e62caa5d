#include "actors/job.h"

#include <exception>
#include <utility>

#include "absl/memory/memory.h"
#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/cluster/cluster_job.h"
#include "actors/protocol/threaded_config.h"
#include "actors/setup/job_setup.h"
#include "actors/setup/running_job.h"
#include "actors/supervision/spawn_crew.h"
#include "base/check.h"
#include "base/exception_text.h"

namespace troupe::actors {
namespace {

class LocalJob : public RunningJob {
 public:
  LocalJob(JobSetup setup, std::unique_ptr<ThreadSupply> threads)
      : process_(std::move(setup.process)),
        threads_(std::move(threads)),
        config_(*threads_),
        system_(config_) {
    supervisor_ = SpawnCrew(system_, process_, std::move(setup.checkpoint));
  }
  ~LocalJob() override {
    // A job that has not ended is cancelled.
    if (!process_->outcome.HasBeenSet()) {
      Failure failure;
      failure.generation = process_->generation;
      failure.actor = "job";
      failure.code = static_cast<int>(absl::StatusCode::kCancelled);
      failure.message = "the job was destroyed before it had ended";
      caf::anon_send(supervisor_, failure);
      process_->outcome.Wait().IgnoreError();
    }
    supervisor_ = nullptr;
  }

  void RequestStop() override { caf::anon_send(supervisor_, halt_atom::value); }
  absl::StatusOr<JobResult> Wait() override { return process_->outcome.Wait(); }

 private:
  ProcessContextPtr process_;
  std::unique_ptr<ThreadSupply> threads_;
  ThreadedConfig config_;
  caf::actor_system system_;
  SupervisorActor supervisor_;
};

absl::StatusOr<std::unique_ptr<RunningJob>> StartLocalJob(
    const JobSpec& spec, JobObserver* observer) {
  TROUPE_ASSIGN_OR_RETURN(JobSetup setup, SetUpJob(spec, observer));
  const ProcessContextPtr& process = setup.process;
  TROUPE_ASSIGN_OR_RETURN(
      std::unique_ptr<ThreadSupply> threads,
      StartActorThreads(JobThreads(static_cast<int>(process->ranks.size()))));
  AnnounceJob(*process, observer);
  return std::make_unique<LocalJob>(std::move(setup), std::move(threads));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Job>> Job::Start(const JobSpec& spec,
                                                JobObserver* observer) {
  // Factories and the observer are the user's code, and may throw.
  try {
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<RunningJob> running,
                            spec.cluster ? StartClusterJob(spec, observer)
                                         : StartLocalJob(spec, observer));
    return absl::WrapUnique(new Job(std::move(running)));
  } catch (...) {
    return absl::InternalError(base::ExceptionText(std::current_exception()));
  }
}

Job::Job(std::unique_ptr<RunningJob> running) : running_(std::move(running)) {}

Job::~Job() = default;

void Job::RequestStop() { running_->RequestStop(); }

absl::StatusOr<JobResult> Job::Wait() { return running_->Wait(); }

absl::StatusOr<JobResult> RunJob(const JobSpec& spec, JobObserver* observer) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Job> job, Job::Start(spec, observer));
  return job->Wait();
}

}  // namespace troupe::actors
