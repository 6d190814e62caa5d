// Starts a program as a child that does not outlive this process.
//
//   ChildSpec spec;
//   spec.command = {"/usr/bin/env", "true"};
//   TROUPE_ASSIGN_OR_RETURN(pid_t pid, StartChild(spec));
//
// The child leads a process group of its own: Ctrl-C at the terminal reaches
// this process alone, which hands it on once. When this process ends, however
// that happens, the kernel kills the child (PR_SET_PDEATHSIG). Its input is
// empty.
//
// Threads: call it in a thread that lives as long as the process, since the
// kernel takes that thread's end for the parent's. Cost: about a millisecond.

#ifndef TOOLS_TRAINER_LAUNCH_CHILD_PROCESS_H_
#define TOOLS_TRAINER_LAUNCH_CHILD_PROCESS_H_

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe::tools {

struct ChildSpec {
  std::vector<std::string> command;      // the path of a program, arguments
  std::vector<std::string> environment;  // all of it, as "NAME=value"
  std::vector<int> cores;                // that it may run on; empty: as here
  std::vector<int> kept_files;           // open files that it gets too
  // What becomes its output and error output.
  int out = STDOUT_FILENO;
  int err = STDERR_FILENO;
};

// Returns when the program has been started, with its id.
//   kInvalidArgument, kNotFound, ...: it cannot be; says which and why.
absl::StatusOr<pid_t> StartChild(const ChildSpec& spec);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_CHILD_PROCESS_H_
