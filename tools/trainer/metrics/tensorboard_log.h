// Metrics as an event file of TensorBoard (`tensorboard --logdir=DIR`).
//
//   TROUPE_ASSIGN_OR_RETURN(
//       TensorBoardLog log,
//       TensorBoardLog::Open(files, "runs/a", {absl::Now(), host, getpid()}));
//   TROUPE_RETURN_IF_ERROR(log.OnStart(start));
//   TROUPE_RETURN_IF_ERROR(log.OnStep(entry));
//
// Scalars, each with its step and the time:
//     train/loss  train/accuracy  train/lr  train/samples_per_second
//     eval/loss   eval/accuracy
// A regression has no accuracy.
//
// Each run writes its own file, events.out.tfevents.<time>.<host>.<pid>, so
// that a resumed run can use the folder of the first. A file says at which step
// its run begins. TensorBoard then drops the values that earlier files of the
// folder have for that step and later ones, so steps that are trained again
// after a crash appear once.

#ifndef TOOLS_TRAINER_METRICS_TENSORBOARD_LOG_H_
#define TOOLS_TRAINER_METRICS_TENSORBOARD_LOG_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/files/file_system.h"
#include "tools/trainer/metrics/metric_sink.h"
#include "tools/trainer/metrics/record_file.h"

namespace troupe::tools {

// Parts of the name of an event file.
struct EventFileName {
  absl::Time time;  // start of the run
  std::string host;
  std::int64_t process = 0;

  // "events.out.tfevents.1767323045.node3.4711"
  std::string ToString() const;
};

class TensorBoardLog : public MetricSink {
 public:
  // Makes `folder` if it does not exist, and the file with its first record.
  static absl::StatusOr<TensorBoardLog> Open(base::FileSystem& files,
                                             const std::string& folder,
                                             const EventFileName& name);

  absl::Status OnStart(const StartEntry& entry) override;
  absl::Status OnStep(const StepEntry& entry) override;
  absl::Status OnEvaluation(const EvaluationEntry& entry) override;

 private:
  explicit TensorBoardLog(RecordFile file) : file_(std::move(file)) {}
  RecordFile file_;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_METRICS_TENSORBOARD_LOG_H_
