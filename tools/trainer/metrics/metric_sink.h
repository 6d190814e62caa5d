// What a run measures, and where it is written: a sink is a file or a server
// that takes the metrics of one run, in the order of the run.
//
//   std::vector<MetricSink*> sinks = {&json_log, &tensorboard_log};
//   for (MetricSink* sink : sinks) {
//     TROUPE_RETURN_IF_ERROR(sink->OnStep(entry));
//   }
//
// An error of a sink ends the run: metrics that somebody asked for and that go
// nowhere would be noticed too late.
//
// Threads: one call at a time.

#ifndef TOOLS_TRAINER_METRICS_METRIC_SINK_H_
#define TOOLS_TRAINER_METRICS_METRIC_SINK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace troupe::tools {

struct StartEntry {
  std::int64_t first_step = 0;  // committed before: above 0 when resumed
  std::int64_t steps = 0;       // in all
  int ranks = 1;                // of the job
  absl::Time time;
};

// One committed step.
struct StepEntry {
  std::int64_t step = 0;  // 1 after the first
  std::int64_t epoch = 0;
  double loss = 0;
  std::optional<double> accuracy;  // of classification, 0 to 1
  double samples_per_s = 0;
  double seconds = 0;  // that the step took
  double lr = 0;
  std::optional<double> loss_scale;  // where it is dynamic
  std::int64_t skipped_steps = 0;    // of this run so far
  // Of all gradients, before clipping; where they are clipped by it.
  std::optional<double> grad_norm;
  // Most bytes that the tensors of one rank of this process have held at once.
  std::int64_t peak_bytes = 0;
  absl::Time time;
};

struct EvaluationEntry {
  std::int64_t step = 0;
  double loss = 0;
  std::optional<double> accuracy;
  std::int64_t count = 0;
  absl::Time time;
};

struct CheckpointEntry {
  std::int64_t step = 0;
  std::string path;  // of its folder
  absl::Time time;
};

class MetricSink {
 public:
  virtual ~MetricSink() = default;
  virtual absl::Status OnStart(const StartEntry&) { return absl::OkStatus(); }
  virtual absl::Status OnStep(const StepEntry& entry) = 0;
  virtual absl::Status OnEvaluation(const EvaluationEntry& entry) = 0;
  virtual absl::Status OnCheckpoint(const CheckpointEntry&) {
    return absl::OkStatus();
  }
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_METRICS_METRIC_SINK_H_
