// Runs one job in several processes, or in several threads of the test that
// stand for processes, each with an actor system of its own. Either way they
// connect by TLS on loopback, with certificates made for the run.
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
  std::vector<int> ranks;  // number of ranks of each process
  Transport transport = Transport::kAuto;
  // Changes the job of one process, its ClusterOptions included. May be null.
  std::function<void(int process, JobSpec& spec)> edit;
  // Returns the observer of a process, or null. The observer must outlive the
  // run. May be null.
  std::function<JobObserver*(int process)> observer;
};

struct ProcessEnd {
  absl::StatusOr<JobResult> result = absl::UnknownError("did not end");
};

// Runs the job in threads. Returns how each process has ended.
std::vector<ProcessEnd> RunInThreads(const JobSpec& spec,
                                     const ClusterRun& run);

// Runs the job in real processes, which are children of the test. `edit` and
// `observer` are called in the child.
class ChildProcesses {
 public:
  // Forks; the test must not have other threads at that time.
  ChildProcesses(const JobSpec& spec, const ClusterRun& run);
  // Kills the children that have not been waited for.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  pid_t pid(int process) const { return children_[process].pid; }
  // Waits until a child has been stopped by SIGSTOP; returns whether it was. It
  // may have stopped itself.
  bool WaitStopped(int process) const;
  // Continues a stopped child.
  void Continue(int process) const;
  // Waits for a child; returns its job's status, or an error with the signal
  // that ended it.
  absl::Status Wait(int process);

 private:
  struct Child {
    pid_t pid = -1;
    int words = -1;  // pipe by which it sends the message of its status
    bool waited = false;
  };
  std::vector<Child> children_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_CLUSTER_RUN_H_
