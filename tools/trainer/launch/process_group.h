// Runs the processes of a job on this machine, from their start to the end of
// the last one: hands on what they write and the signals that come, and stops
// the others when one fails.
//
//   std::vector<JobProcess> processes(2);
//   for (JobProcess& process : processes) process.child.command = command;
//   processes[1].number = 1;
//   TROUPE_ASSIGN_OR_RETURN(GroupEnd end, RunProcesses(processes, {}));
//   if (!end.words.empty()) std::cerr << "trainer: " << end.words << "\n";
//   return end.exit_code;
//
// Signals: SIGINT (Ctrl-C), SIGTERM and SIGHUP are handed on, once each;
// Ctrl-Z stops all, and `fg` lets all go on. No time is set to those that were
// told to stop: they may be saving.
//
// Failure: a process has failed that ends with another code than kExitOk and
// kExitStopped, or by a signal. Those of one job tell each other, so the rest
// has `patience` to end by itself; then comes SIGTERM, with SIGCONT for those
// that stand still, and after `last_patience` SIGKILL.
//
// Output: what they write goes on in whole lines, those of process 0 as they
// are, the others' with "[1] " before them; or into a file for each. Process 0
// writes to the standard output itself, so that it sees whether that is a
// terminal.
//
// Threads: the main one, before others are started. It waits without limit.

#ifndef TOOLS_TRAINER_LAUNCH_PROCESS_GROUP_H_
#define TOOLS_TRAINER_LAUNCH_PROCESS_GROUP_H_

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/trainer/launch/child_process.h"

namespace troupe::tools {

struct JobProcess {
  ChildSpec child;  // `out` and `err` are filled in
  int number = 0;   // among all of the job
  // Where everything goes that it writes; empty: to this process's output.
  std::string output_file;
};

struct GroupOptions {
  absl::Duration patience = absl::Seconds(5);       // before SIGTERM
  absl::Duration last_patience = absl::Seconds(5);  // then before SIGKILL
  bool colored = false;
  // Whether process 0 may be drawing a line over and over on a terminal, which
  // lines of others would go into.
  bool on_terminal = false;
  int out = STDOUT_FILENO;
  int err = STDERR_FILENO;
};

struct GroupEnd {
  // That of the first failure (128 and the signal's number, as shells have it);
  // else kExitStopped where one ended so, else kExitOk.
  int exit_code = 0;
  // Of the first failure: who, how, and the last line that it wrote. Empty:
  // none failed, or by the very signal that was handed on.
  std::string words;
};

//   Error: a process could not be started, or a file not be written; none is
//   left then.
absl::StatusOr<GroupEnd> RunProcesses(const std::vector<JobProcess>& processes,
                                      const GroupOptions& options);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_PROCESS_GROUP_H_
