// `trainer launch`: starts the processes of a job on this node and ends with
// them.
//
//   TROUPE_ASSIGN_OR_RETURN(LaunchOptions options, ParseLaunch(arguments));
//   LaunchContext context;
//   context.program = "/usr/bin/trainer";
//   context.environment = environ;
//   context.now = absl::Now();
//   TROUPE_ASSIGN_OR_RETURN(GroupEnd end, Launch(options, context));
//   return end.exit_code;
//
// Under another launcher that starts one `trainer launch` on each node (srun,
// an indexed job of Kubernetes), nodes and addresses come from there.

#ifndef TOOLS_TRAINER_LAUNCH_LAUNCH_COMMAND_H_
#define TOOLS_TRAINER_LAUNCH_LAUNCH_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/trainer/launch/process_group.h"

namespace troupe::tools {

struct LaunchOptions {
  bool help = false;
  int processes_per_node = 0;
  int ranks_per_process = 0;  // 0: as the configuration says
  int nodes = 0;              // 0: one, or as another launcher says
  int node = -1;              // -1: likewise
  std::string master;         // host:port; empty: likewise
  std::string output_dir;     // empty: all to the terminal
  std::string certs;          // empty: made for this job, where it is one node
  bool bind = true;           // to cores
  std::vector<std::string> words;  // all of these, as they were written
  // What each process is given: "train", and its options.
  std::vector<std::string> command;
};

// What follows `launch` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<LaunchOptions> ParseLaunch(
    const std::vector<std::string>& arguments);

std::string LaunchHelp();

struct LaunchContext {
  std::string program;    // that is started
  std::string called_by;  // what this one was called by
  const char* const* environment = nullptr;
  absl::Time now;
  GroupOptions group;
};

// Runs the processes until the last has ended.
//   kInvalidArgument: options, and what other launchers say, do not fit
//     together.
//   Others: processes, files or certificates could not be made.
absl::StatusOr<GroupEnd> Launch(const LaunchOptions& options,
                                const LaunchContext& context);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_LAUNCH_COMMAND_H_
