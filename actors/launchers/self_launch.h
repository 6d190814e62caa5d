// Starts this program again in several processes of this node, as
// torch.multiprocessing.spawn does. Each of them runs main() from its start
// until it comes to the same call, joins the job there, and ends.
//
//   using Part = SelfLaunch::Part;
//   TROUPE_ASSIGN_OR_RETURN(SelfLaunch launch,
//                           SelfLaunch::Begin(/*processes=*/2, /*ranks=*/4));
//   if (launch.part() == Part::kStarter) return launch.RunProcesses();
//   if (launch.part() == Part::kPast) return absl::OkStatus();
//   spec.cluster = launch.cluster();
//   launch.ReportAndExit(RunProgram(spec));      // does not return
//
// The processes get the arguments of this one, its environment with a
// launcher's variables and torchrun's, an empty input, and certificates for
// mutual TLS that no disk holds. Their output is forwarded in whole lines.
//
// Calls are numbered: a process that the second call of its starter has started
// passes over its own first one.
//
// Signals: SIGINT, SIGTERM and others are forwarded
// (base/processes/process_group.h). When this process ends in any way, the
// kernel kills the processes.
//
// Errors of RunProcesses(): the status that the first process to fail reported;
// kUnavailable with process and ranks if it was killed; kCancelled if a
// forwarded signal ended them; kFailedPrecondition if it ended without coming
// to the call.
// Threads: the main one, without others that run.

#ifndef ACTORS_LAUNCHERS_SELF_LAUNCH_H_
#define ACTORS_LAUNCHERS_SELF_LAUNCH_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/spec/cluster_options.h"
#include "base/files/owned_fd.h"

namespace troupe::actors {

// Set for the processes: number of the call that started them, process id of
// the starter, descriptor of the file for the report: "1,4711,8".
inline constexpr char kSelfLaunchVariable[] = "TROUPE_SPAWN";

class SelfLaunch {
 public:
  enum class Part {
    kStarter,  // starts the processes
    kMember,   // was started by this call
    kPast,     // was started by a later call
  };

  // Counts a call. Ranks are spread over the processes as evenly as possible;
  // the first ones may have one more.
  //   kInvalidArgument: fewer ranks than processes.
  //   kFailedPrecondition: the process is one of another launcher's, or has
  //     joined a job already.
  static absl::StatusOr<SelfLaunch> Begin(int processes, int ranks);

  // Whether this process was started by Begin() of another one, and has not
  // come to the call yet.
  static bool IsExpected();

  Part part() const { return part_; }

  // Runs the processes until all have ended. To be called by the starter.
  absl::Status RunProcesses();

  // Returns the place of a member.
  const ClusterOptions& cluster() const { return *cluster_; }
  // Reports the member's status to the starter, and ends the process: with code
  // 0, or 1 for an error.
  [[noreturn]] void ReportAndExit(const absl::Status& status);

 private:
  SelfLaunch(Part part, int call, int processes, int ranks)
      : part_(part), call_(call), processes_(processes), ranks_(ranks) {}

  // Reads the place of a member.
  absl::Status Join(int report);
  // Returns the ranks of a process: "ranks 2 to 3".
  std::string Describe(int process) const;

  Part part_;
  int call_;
  int processes_;
  int ranks_;
  std::optional<ClusterOptions> cluster_;
  // Files in which members report: of all processes, or the member's own.
  std::vector<base::OwnedFd> reports_;
};

}  // namespace troupe::actors

#endif  // ACTORS_LAUNCHERS_SELF_LAUNCH_H_
