// Metrics as JSON lines: one object a line, in the order of the run.
//
//   TROUPE_ASSIGN_OR_RETURN(JsonLog log, JsonLog::Open(files, "runs/a.jsonl"));
//   absl::Status s = log.Write(FormatStepJson(entry));
//
// A line of training:
//     {"kind":"train","step":100,"epoch":2,"loss":0.5,"accuracy":0.9,
//      "samples_per_s":1234.5,"lr":0.1,"time":"2026-01-02T03:04:05.678Z"}
// of an evaluation:
//     {"kind":"evaluation","step":100,"loss":0.5,"accuracy":0.9,"count":2048,
//      "time":"..."}
// JSON has no NaN and no infinity: such a loss is null, with "loss_text"
// beside it ("nan", "inf", "-inf"). A regression has no "accuracy".
//
// The file is appended to, each line in one write, so that a resumed run goes
// on in it and a crash loses nothing.

#ifndef TOOLS_TRAINER_JSON_LOG_H_
#define TOOLS_TRAINER_JSON_LOG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file_system.h"

namespace troupe::tools {

struct StepEntry {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  double loss = 0;
  std::optional<double> accuracy;
  double samples_per_s = 0;
  double lr = 0;
  absl::Time time;
};
std::string FormatStepJson(const StepEntry& entry);

struct EvaluationEntry {
  std::int64_t step = 0;
  double loss = 0;
  std::optional<double> accuracy;
  std::int64_t count = 0;
  absl::Time time;
};
std::string FormatEvaluationJson(const EvaluationEntry& entry);

class JsonLog {
 public:
  // Makes the folder of `path` where there is none.
  static absl::StatusOr<JsonLog> Open(base::FileSystem& files,
                                      const std::string& path);
  // One line; `json` without its end.
  absl::Status Write(const std::string& json);

 private:
  explicit JsonLog(std::unique_ptr<base::WritableFile> file)
      : file_(std::move(file)) {}
  std::unique_ptr<base::WritableFile> file_;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_JSON_LOG_H_
