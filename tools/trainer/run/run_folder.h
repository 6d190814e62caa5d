// Writes the folder of a run that `trainer report` reads: a description of the
// run (run.json), its plan, its metrics, and the timeline of some steps.
//
//   TROUPE_ASSIGN_OR_RETURN(auto folder, RunFolder::Open(files, "runs/a"));
//   TROUPE_RETURN_IF_ERROR(folder->Begin(facts, plan));
//   observer.AddSink(folder.get(), /*every=*/1);   // and, after the run:
//   TROUPE_RETURN_IF_ERROR(folder->End(trace));
//
// A run that begins at step 0 replaces the files of an earlier run; a resumed
// run appends to the metrics. The metrics of about kMetricPointsMax steps are
// kept, whatever the number of steps.
//
// Threads: one call at a time. Calls block for as long as the disk takes.

#ifndef TOOLS_TRAINER_RUN_RUN_FOLDER_H_
#define TOOLS_TRAINER_RUN_RUN_FOLDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/tracing/trace.h"
#include "base/files/file_system.h"
#include "pipeline/plan.h"
#include "tools/report/run_facts.h"
#include "tools/trainer/metrics/metric_sink.h"
#include "tools/trainer/run/json_log.h"

namespace troupe::tools {

inline constexpr std::int64_t kMetricPointsMax = 2000;

class RunFolder : public MetricSink {
 public:
  // Makes the folder. `files` must outlive the object.
  static absl::StatusOr<std::unique_ptr<RunFolder>> Open(
      base::FileSystem& files, const std::string& dir);

  absl::Status Begin(const RunFacts& facts, const pipeline::Plan& plan);
  absl::Status End(const actors::ChromeTrace& trace);

  // Drops the lines of steps that a resumed run repeats.
  absl::Status OnStart(const StartEntry& entry) override {
    return metrics_->OnStart(entry);
  }
  absl::Status OnStep(const StepEntry& entry) override;
  absl::Status OnEvaluation(const EvaluationEntry& entry) override;

 private:
  RunFolder(base::FileSystem& files, std::string dir)
      : files_(files), dir_(std::move(dir)) {}
  std::string PathOf(const char* name) const {
    return base::JoinPath(dir_, name);
  }

  base::FileSystem& files_;
  const std::string dir_;
  std::optional<JsonLog> metrics_;
  std::int64_t every_ = 1;  // steps between lines
  std::int64_t last_step_ = 0;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_RUN_RUN_FOLDER_H_
