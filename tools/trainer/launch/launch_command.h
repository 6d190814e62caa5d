// `trainer launch`: starts the processes of a job on this node and waits until
// they end. They run `trainer train`, or a program of the user's.
//
//   TROUPE_ASSIGN_OR_RETURN(LaunchOptions options, ParseLaunch(arguments));
//   LaunchContext context;
//   context.program = "/usr/bin/trainer";
//   context.environment = environ;
//   context.now = absl::Now();
//   TROUPE_ASSIGN_OR_RETURN(base::GroupEnd end, Launch(options, context));
//   return end.exit_code;
//
// Under another launcher that starts one `trainer launch` on each node (srun,
// an indexed job of Kubernetes), nodes and addresses are those that it sets.

#ifndef TOOLS_TRAINER_LAUNCH_LAUNCH_COMMAND_H_
#define TOOLS_TRAINER_LAUNCH_LAUNCH_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/processes/process_group.h"

namespace troupe::tools {

struct LaunchOptions {
  bool help = false;
  int processes_per_node = 0;
  int ranks_per_process = 0;  // 0: from the configuration
  int nodes = 0;              // 0: from another launcher, or 1
  int node = -1;              // -1: from another launcher, or 0
  std::string master;         // host:port; empty: from another launcher
  std::string output_dir;     // empty: output to the terminal
  std::string certs;          // empty: made for the job, if it has one node
  bool bind = true;           // whether to bind processes to cores
  std::vector<std::string> words;  // all options above, as written
  // Path or name of a program to start; empty: this one.
  std::string program;
  // Arguments of each process: "train" and its options, or those of `program`.
  std::vector<std::string> command;
};

// Parses what follows `launch` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<LaunchOptions> ParseLaunch(
    const std::vector<std::string>& arguments);

std::string LaunchHelp();

struct LaunchContext {
  std::string program;    // path of the program that has `train`
  std::string called_by;  // path that this program was called by
  const char* const* environment = nullptr;
  absl::Time now;
  base::GroupOptions group;
};

// Runs the processes until the last has ended.
//   kInvalidArgument: options and variables of other launchers contradict each
//     other; LaunchOptions::program cannot be executed.
//   Others: processes, files or certificates could not be made.
absl::StatusOr<base::GroupEnd> Launch(const LaunchOptions& options,
                                      const LaunchContext& context);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_LAUNCH_COMMAND_H_
