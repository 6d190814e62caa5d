// What usage in tools/trainer/ leaves to its reader.

#ifndef TESTS_USAGE_WORDS_TOOLS_TRAINER_H_
#define TESTS_USAGE_WORDS_TOOLS_TRAINER_H_

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "actors/job.h"
#include "actors/job_spec.h"
#include "base/file_system.h"
#include "tools/trainer/command_line.h"
#include "tools/trainer/config.h"
#include "tools/trainer/display.h"
#include "tools/trainer/help.h"
#include "tools/trainer/json_log.h"
#include "tools/trainer/progress.h"

namespace troupe::tools::usage {

extern base::FileSystem& files;
extern const LoadedConfig loaded;
extern TrainerConfig config;
extern const actors::JobSpec spec;
extern const std::unique_ptr<actors::Job> job;
extern const Progress progress;

namespace command_line_h {
extern int argc;
extern char** argv;
}  // namespace command_line_h

namespace config_h {
extern const std::vector<Setting> settings;
}

namespace config_blame_h {
extern const absl::Status status;
}

namespace display_h {
extern const std::function<int()> columns;
extern const Display::Write write;
}  // namespace display_h

namespace json_log_h {
extern const StepEntry entry;
}

namespace run_observer_h {
extern Display& display;
extern JsonLog log;
extern const std::function<absl::Time()> now;
}  // namespace run_observer_h

}  // namespace troupe::tools::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_TRAINER_H_
