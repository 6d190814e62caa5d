// Starts a program as a child that does not outlive this process.
//
//   ChildSpec spec;
//   spec.command = {"/usr/bin/env", "true"};
//   TROUPE_ASSIGN_OR_RETURN(pid_t pid, StartChild(spec));
//
// The child leads its own process group, so Ctrl-C at the terminal reaches only
// this process, which forwards it once. When this process ends in any way, the
// kernel kills the child (PR_SET_PDEATHSIG). The child's input is empty.
//
// Threads: call it in a thread that lives as long as the process, since the
// kernel treats the end of that thread as the end of the parent. Cost: about a
// millisecond.

#ifndef BASE_PROCESSES_CHILD_PROCESS_H_
#define BASE_PROCESSES_CHILD_PROCESS_H_

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe::base {

struct ChildSpec {
  std::vector<std::string> command;  // path of a program, arguments
  std::string program;  // path of another file to execute; empty: command[0]
  std::vector<std::string> environment;  // entries "NAME=value"
  std::vector<int> cores;       // cores to run on; empty: as this process
  std::vector<int> kept_files;  // open files that it inherits
  // Descriptors of its output and error output.
  int out = STDOUT_FILENO;
  int err = STDERR_FILENO;
};

// Returns the process id once the program has been started.
//   kInvalidArgument, kNotFound, ...: it cannot be started; names it and says
//     why.
absl::StatusOr<pid_t> StartChild(const ChildSpec& spec);

}  // namespace troupe::base

#endif  // BASE_PROCESSES_CHILD_PROCESS_H_
