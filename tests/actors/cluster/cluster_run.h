// Runs one job in several processes, or as several would run it: in a thread of
// the test for each, with an actor system of its own. Either way over TLS on
// loopback, with certificates made for the run.
//
//   ClusterRun run;
//   run.ranks = {2, 1};                      // two processes, three ranks
//   run.transport = Transport::kTcp;
//   const std::vector<ProcessEnd> ends = RunInThreads(spec, run);
//   EXPECT_TRUE(ends[0].result.ok());

#ifndef TESTS_ACTORS_CLUSTER_CLUSTER_RUN_H_
#define TESTS_ACTORS_CLUSTER_CLUSTER_RUN_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/job.h"

namespace troupe::actors {

struct ClusterRun {
  std::vector<int> ranks;  // of each process
  Transport transport = Transport::kAuto;
  // Changes what one process runs, its ClusterOptions included. May be null.
  std::function<void(int process, JobSpec& spec)> edit;
  // Follows one process; null: none does. Outlives the run.
  std::function<JobObserver*(int process)> observer;
};

struct ProcessEnd {
  absl::StatusOr<JobResult> result = absl::UnknownError("did not end");
};

// By process.
std::vector<ProcessEnd> RunInThreads(const JobSpec& spec,
                                     const ClusterRun& run);

// The same in real processes, which are children of the test. What
// `edit` and `observer` do happens in the child.
class ChildProcesses {
 public:
  // Forks; the test has no thread of its own at that time.
  ChildProcesses(const JobSpec& spec, const ClusterRun& run);
  // Kills those that have not been waited for.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  pid_t pid(int process) const { return children_[process].pid; }
  // How it ended: its job's status, or the signal that it died from.
  absl::Status Wait(int process);

 private:
  struct Child {
    pid_t pid = -1;
    int words = -1;  // pipe from it: the message of its status
    bool waited = false;
  };
  std::vector<Child> children_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_CLUSTER_RUN_H_
