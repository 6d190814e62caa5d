// Metrics as JSON lines: one object a line, in the order of the run.
//
//   TROUPE_ASSIGN_OR_RETURN(JsonLog log, JsonLog::Open(files, "runs/a.jsonl"));
//   absl::Status s = log.OnStep(entry);
//
// A line of training:
//     {"kind":"train","step":100,"epoch":2,"loss":0.5,"accuracy":0.9,
//      "samples_per_s":1234.5,"lr":0.1,"peak_bytes":73400320,
//      "time":"2026-01-02T03:04:05.678Z"}
// with "loss_scale":32768.0,"skipped_steps":3 where the scale is dynamic;
// of an evaluation:
//     {"kind":"evaluation","step":100,"loss":0.5,"accuracy":0.9,"count":2048,
//      "time":"..."}
// With optimizer.clip_grad_norm a line of training has "grad_norm" behind "lr":
// the norm of all gradients before clipping.
// JSON has no NaN and no infinity: such a loss is null, with "loss_text"
// beside it ("nan", "inf", "-inf"). A regression has no "accuracy".
//
// Each line is appended in one write, so that a crash loses nothing. A resumed
// run continues the file behind the last line of its first step or an earlier
// one: lines of steps that it repeats, which a run wrote between its last
// checkpoint and a crash, are dropped. So is a last line without an end.

#ifndef TOOLS_TRAINER_RUN_JSON_LOG_H_
#define TOOLS_TRAINER_RUN_JSON_LOG_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "tools/trainer/metrics/metric_sink.h"

namespace troupe::tools {

std::string FormatStepJson(const StepEntry& entry);
std::string FormatEvaluationJson(const EvaluationEntry& entry);

class JsonLog : public MetricSink {
 public:
  // Makes the folder of `path` if there is none.
  static absl::StatusOr<JsonLog> Open(base::FileSystem& files,
                                      const std::string& path);
  // Writes one line. `json` has no line end.
  absl::Status Write(const std::string& json);

  // Drops the lines of steps that the run repeats.
  absl::Status OnStart(const StartEntry& entry) override;
  absl::Status OnStep(const StepEntry& entry) override;
  absl::Status OnEvaluation(const EvaluationEntry& entry) override;

 private:
  JsonLog(base::FileSystem& files, std::string path,
          std::unique_ptr<base::WritableFile> file)
      : files_(&files), path_(std::move(path)), file_(std::move(file)) {}

  base::FileSystem* files_;
  std::string path_;
  std::unique_ptr<base::WritableFile> file_;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_RUN_JSON_LOG_H_
