// `trainer profile`: breaks down the time of a training step by op.
//
//   ProfileRequest request;
//   request.seconds = 3;
//   TROUPE_RETURN_IF_ERROR(ProfileSteps(loaded, request, files, write, note));
//
// prints
//
//     a step takes 1.84 ms: 34,745 samples/s on 1 rank, timed op by op
//
//     op                           calls a step  ms a step  of the step
//     Conv2dBackwardWeight                    2      0.512        27.8%
//     ...
//     outside ops                                    0.103         5.6%

#ifndef TOOLS_PROFILE_PROFILE_COMMAND_H_
#define TOOLS_PROFILE_PROFILE_COMMAND_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "tools/profile/op_clock.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::tools {

struct ProfileRequest {
  bool help = false;
  // The same as the options of trainer train.
  std::string config, ranks;
  std::vector<std::string> sets;
  double seconds = 5;  // duration of the timing
};

// Parses the arguments after `profile` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<ProfileRequest> ParseProfile(
    const std::vector<std::string>& arguments);

std::string ProfileHelp();

// Trains with the configuration `loaded` for `request.seconds`, without
// checkpoints, evaluations or logs, and prints the profile.
//   kInvalidArgument: `loaded` trains on a GPU, whose kernels are asynchronous;
//     or the same as BuildSpec().
absl::Status ProfileSteps(const LoadedConfig& loaded,
                          const ProfileRequest& request,
                          base::FileSystem& files,
                          const std::function<bool(absl::string_view)>& write,
                          const NoteFn& note);

// The result of a profile.
struct StepProfile {
  double steps_per_second = 0;
  std::int64_t batch = 0;  // number of samples per step
  int ranks = 1;
  double seconds = 0;                // duration in which ops counted
  std::vector<OpClock::Time> times;  // sums over all ranks
};
std::string FormatProfile(const StepProfile& profile);

}  // namespace troupe::tools

#endif  // TOOLS_PROFILE_PROFILE_COMMAND_H_
