// The metrics of a run, and the interface of sinks: files or servers that
// receive the metrics of one run, in the order of the run.
//
//   std::vector<MetricSink*> sinks = {&json_log, &tensorboard_log};
//   for (MetricSink* sink : sinks) {
//     TROUPE_RETURN_IF_ERROR(sink->OnStep(entry));
//   }
//
// An error of a sink ends the run, since a user would notice missing metrics
// too late.
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
  std::int64_t first_step = 0;  // steps committed before
  bool resumed = false;         // whether a checkpoint had them
  std::int64_t steps = 0;       // total number
  int ranks = 1;                // ranks of the job
  absl::Time time;
};

// One committed step.
struct StepEntry {
  std::int64_t step = 0;  // 1 after the first
  std::int64_t epoch = 0;
  double loss = 0;
  std::optional<double> accuracy;  // 0 to 1; classification only
  double samples_per_s = 0;
  double seconds = 0;  // duration of the step
  double lr = 0;
  std::optional<double> loss_scale;  // none if constant
  std::int64_t skipped_steps = 0;    // number so far, also before a resume
  // Norm of all gradients before clipping; none unless they are clipped by
  // norm.
  std::optional<double> grad_norm;
  // Peak bytes of tensors on any one rank of this process.
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
  std::string path;  // path of the checkpoint's folder
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
