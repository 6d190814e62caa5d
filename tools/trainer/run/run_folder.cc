#include "tools/trainer/run/run_folder.h"

#include <algorithm>

#include "base/check.h"
#include "pipeline/plan_json.h"

namespace troupe::tools {

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::Open(
    base::FileSystem& files, const std::string& dir) {
  TROUPE_RETURN_IF_ERROR(files.CreateFolder(dir));
  return std::unique_ptr<RunFolder>(new RunFolder(files, dir));
}

absl::Status RunFolder::Begin(const RunFacts& facts,
                              const pipeline::Plan& plan) {
  last_step_ = facts.steps;
  every_ = std::max<std::int64_t>(
      1, (facts.steps - facts.first_step) / kMetricPointsMax);
  TROUPE_RETURN_IF_ERROR(
      base::WriteWholeFile(files_, PathOf(kFactsFile), FactsToJson(facts)));
  TROUPE_RETURN_IF_ERROR(base::WriteWholeFile(files_, PathOf(kRunPlanFile),
                                              pipeline::PlanToJson(plan)));
  // Removes the timeline of another run, which would be taken for this one's.
  if (files_.Exists(PathOf(kRunTraceFile))) {
    TROUPE_RETURN_IF_ERROR(files_.RemoveAll(PathOf(kRunTraceFile)));
  }
  const std::string metrics = PathOf(kRunMetricsFile);
  if (facts.first_step == 0) {
    TROUPE_RETURN_IF_ERROR(base::WriteWholeFile(files_, metrics, ""));
  }
  TROUPE_ASSIGN_OR_RETURN(metrics_, JsonLog::Open(files_, metrics));
  return absl::OkStatus();
}

absl::Status RunFolder::End(const actors::ChromeTrace& trace) {
  if (trace.IsEmpty()) return absl::OkStatus();
  return trace.WriteFile(files_, PathOf(kRunTraceFile));
}

absl::Status RunFolder::OnStep(const StepEntry& entry) {
  const bool due = entry.step % every_ == 0 || entry.step == last_step_;
  return due ? metrics_->OnStep(entry) : absl::OkStatus();
}

absl::Status RunFolder::OnEvaluation(const EvaluationEntry& entry) {
  return metrics_->OnEvaluation(entry);
}

}  // namespace troupe::tools
