// Declares names that the usage comments in tools/profile/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_PROFILE_H_
#define TESTS_USAGE_WORDS_TOOLS_PROFILE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "actors/spec/job_spec.h"
#include "actors/step_seconds.h"
#include "base/files/file_system.h"
#include "tools/profile/process_memory.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::tools::usage {

namespace op_clock_h {
extern actors::JobSpec& spec;
extern absl::Status status;
void Print(const std::string& name, double seconds);
}  // namespace op_clock_h

namespace profile_command_h {
extern const LoadedConfig loaded;
extern base::FileSystem& files;
extern const std::function<bool(absl::string_view)> write;
extern const NoteFn note;
}  // namespace profile_command_h

}  // namespace troupe::tools::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_PROFILE_H_
