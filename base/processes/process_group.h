// Runs the processes of a job on this machine, from their start to the end of
// the last one: forwards their output and the signals that this process gets,
// and stops the remaining processes when one fails.
//
//   std::vector<JobProcess> processes(2);
//   for (JobProcess& process : processes) process.child.command = command;
//   processes[1].number = 1;
//   TROUPE_ASSIGN_OR_RETURN(GroupEnd end, RunProcesses(processes, {}));
//   if (!end.words.empty()) std::cerr << end.words << "\n";
//   return end.exit_code;
//
// Signals: SIGINT (Ctrl-C), SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU and SIGHUP are
// forwarded, once each. Ctrl-Z stops all processes, and `fg` continues them.
// There is no time limit after a signal, since the processes may be saving.
//
// Failure: a process has failed if it ends by a signal, with another code than
// 0 and GroupOptions::stopped_code, or with 0 before its work was complete
// (JobProcess::is_complete). The processes of a job notify each other, so the
// rest has `patience` to end by itself. Then each gets SIGTERM (and SIGCONT,
// for stopped ones), and after `last_patience` SIGKILL.
//
// A process that ends without a failure is reported after `patience`, if others
// still run; not with a stopped_code.
//
// Output: it is forwarded in whole lines, those of process 0 unchanged, those
// of the others with "[1] " in front; or each process has a file. Process 0
// writes to the standard output itself, so that it can detect a terminal.
//
// Threads: the main one, before others are started. In another one, the signals
// that the system delivers to the process may have their usual effect. Waits
// without limit.

#ifndef BASE_PROCESSES_PROCESS_GROUP_H_
#define BASE_PROCESSES_PROCESS_GROUP_H_

#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/processes/child_process.h"

namespace troupe::base {

struct JobProcess {
  ChildSpec child;  // RunProcesses() sets `out` and `err`
  int number = 0;   // index in the job
  // Path of a file for its output; empty: forwarded to this process's output.
  std::string output_file;
  // Called when the process has ended with code 0: whether it has done its
  // work. Null: it has.
  std::function<bool()> is_complete;
};

struct GroupOptions {
  // Name of this program, for the lines that it writes itself.
  std::string name = "trainer";
  // Exit code, besides 0, of a process that stopped as it was asked to, which
  // is no failure. None: there is no such code.
  std::optional<int> stopped_code = {};
  // Whether lines of processes other than 0 begin with their number.
  bool marks_lines = true;
  absl::Duration patience = absl::Seconds(5);       // before SIGTERM
  absl::Duration last_patience = absl::Seconds(5);  // then before SIGKILL
  // Time after which output that nobody reads is dropped, once a signal was
  // forwarded.
  absl::Duration reader_patience = absl::Seconds(1);
  bool colored = false;
  // Whether process 0 may draw a progress line on a terminal, which must be
  // erased before lines of other processes.
  bool on_terminal = false;
  int out = STDOUT_FILENO;
  int err = STDERR_FILENO;
};

struct GroupEnd {
  // Exit code of the first failure (for a signal 128 plus its number, as in
  // shells); else the stopped_code if a process ended with it, else 0.
  int exit_code = 0;
  // Description of the first failure: the process, how it ended, the last line
  // that it wrote, and, without a stopped_code, which had ended before without
  // a failure. Empty: none failed, or only by a forwarded signal.
  std::string words;
  // Index of the first process that failed; -1: none.
  int first_failure = -1;
  std::vector<int> statuses;  // statuses of waitpid(), of all processes
  int signal = 0;             // first signal that was forwarded; 0: none
};

// Runs the processes until all have ended.
//   Errors: a process could not be started, or a file not be written. Then no
//     process is left running.
absl::StatusOr<GroupEnd> RunProcesses(const std::vector<JobProcess>& processes,
                                      const GroupOptions& options);

// Returns "SIGTERM".
std::string SignalName(int signal);

}  // namespace troupe::base

#endif  // BASE_PROCESSES_PROCESS_GROUP_H_
