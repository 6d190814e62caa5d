// Declares names that the usage comments in tools/trainer/metrics/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_TRAINER_METRICS_H_
#define TESTS_USAGE_WORDS_TOOLS_TRAINER_METRICS_H_

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "tools/tensorboard/event.pb.h"
#include "tools/trainer/metrics/prometheus_exporter.h"
#include "tools/trainer/metrics/tensorboard_log.h"
#include "tools/trainer/run/json_log.h"

namespace troupe::tools::usage {

extern base::FileSystem& files;
extern const StartEntry start;
extern const StepEntry entry;

namespace metric_sink_h {
extern JsonLog json_log;
extern TensorBoardLog tensorboard_log;
}  // namespace metric_sink_h

namespace record_file_h {
extern const std::string path;
extern const events::Event event;
}  // namespace record_file_h

namespace tensorboard_log_h {
extern const std::string host;
}

}  // namespace troupe::tools::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_TRAINER_METRICS_H_
