#include "tools/report/run_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/plan_json.h"
#include "tools/report/json_text.h"
#include "tools/report/run_shape.h"

namespace troupe::tools {
namespace {

constexpr std::int64_t kFactsBytesMax = std::int64_t{4} << 20;

// Advice on a file that a report needs, and on one that it can do without.
constexpr char kRepeat[] = "; repeat the run with --run-dir";
constexpr char kLeaveOut[] =
    "; remove this file, to make the report without it";

// Returns the error of a file, with its path before the message.
absl::Status InFile(const std::string& path, const absl::Status& status,
                    const char* advice) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", status.message(), advice));
}

absl::Status CheckBars(const RunTrace& trace, const RunShape& shape) {
  const auto rank_is_wrong = [&](int rank) {
    return WrongPart(
        absl::StrCat("rank ", rank),
        absl::StrCat("is none of ", kRunPlanFile, ", which has ranks 0 to ",
                     shape.ranks() - 1));
  };
  for (const Bar& bar : trace.bars) {
    if (bar.rank >= shape.ranks()) return rank_is_wrong(bar.rank);
    const int chunks = shape.ChunksOf(bar.rank);
    if (bar.chunk < chunks) continue;
    return WrongPart(
        absl::StrCat("rank ", bar.rank),
        absl::StrCat("runs chunk ", bar.chunk, ", and by ", kRunPlanFile,
                     " it has chunks 0 to ", chunks - 1));
  }
  for (const MemorySample& sample : trace.memory) {
    if (sample.rank >= shape.ranks()) return rank_is_wrong(sample.rank);
  }
  return absl::OkStatus();
}

class RunReader {
 public:
  RunReader(base::FileSystem& files, std::string folder)
      : files_(files), folder_(std::move(folder)) {}

  absl::StatusOr<RunRecord> Read() {
    if (!files_.Exists(PathOf(kFactsFile))) {
      return absl::NotFoundError(absl::StrCat(
          folder_, " has no ", kFactsFile,
          ", so it is no run folder; make one by \"trainer train --run-dir=",
          folder_, "\""));
    }
    TROUPE_RETURN_IF_ERROR(ReadFacts());
    TROUPE_RETURN_IF_ERROR(ReadPlan());
    TROUPE_RETURN_IF_ERROR(ReadMetricLines());
    TROUPE_RETURN_IF_ERROR(ReadTimeline());
    return std::move(run_);
  }

 private:
  std::string PathOf(const char* name) const {
    return base::JoinPath(folder_, name);
  }

  absl::Status ReadFacts() {
    const std::string path = PathOf(kFactsFile);
    TROUPE_ASSIGN_OR_RETURN(const std::string text,
                            base::ReadWholeFile(files_, path, kFactsBytesMax));
    absl::StatusOr<RunFacts> facts = FactsFromJson(text);
    if (!facts.ok()) return InFile(path, facts.status(), kRepeat);
    run_.facts = *std::move(facts);
    return absl::OkStatus();
  }

  absl::Status ReadPlan() {
    const std::string path = PathOf(kRunPlanFile);
    TROUPE_ASSIGN_OR_RETURN(
        const std::string text,
        base::ReadWholeFile(files_, path, pipeline::kPlanBytesMax));
    absl::StatusOr<pipeline::Plan> plan = pipeline::PlanFromEarlierJson(text);
    if (!plan.ok()) return InFile(path, plan.status(), kRepeat);
    run_.plan = *std::move(plan);
    if (run_.plan.mesh.size() > kTraceRanksMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": mesh has ", run_.plan.mesh.size(),
          " ranks, and a report at most ", kTraceRanksMax, "; open ",
          kRunTraceFile, " in ui.perfetto.dev instead"));
    }
    const std::size_t costs = run_.facts.costs.stages.size();
    if (costs == 0 || costs == run_.plan.stages.size()) {
      return absl::OkStatus();
    }
    return InFile(
        PathOf(kFactsFile),
        WrongPart("costs",
                  absl::StrCat("are of ", costs, " stages, and ", kRunPlanFile,
                               " has ", run_.plan.stages.size())),
        kRepeat);
  }

  absl::Status ReadMetricLines() {
    const std::string path = PathOf(kRunMetricsFile);
    if (!files_.Exists(path)) {
      run_.notes.push_back(
          absl::StrCat("No curves: there is no ", kRunMetricsFile, "."));
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(
        const std::string text,
        base::ReadWholeFile(files_, path, kMetricsBytesMax));
    absl::StatusOr<RunMetrics> metrics = ReadMetrics(text);
    if (!metrics.ok()) return InFile(path, metrics.status(), kLeaveOut);
    run_.metrics = *std::move(metrics);
    return absl::OkStatus();
  }

  absl::Status ReadTimeline() {
    const std::string path = PathOf(kRunTraceFile);
    if (!files_.Exists(path)) {
      run_.notes.push_back(
          absl::StrCat("No step is drawn: there is no ", kRunTraceFile,
                       ". A run writes it when it ends; where it ended before "
                       "its first traced step, set trace.first_step."));
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(const std::string text,
                            base::ReadWholeFile(files_, path, kTraceBytesMax));
    absl::StatusOr<RunTrace> trace = ReadTrace(text);
    if (!trace.ok()) return InFile(path, trace.status(), kLeaveOut);
    const absl::Status fits = CheckBars(*trace, RunShape(run_.plan));
    if (!fits.ok()) return InFile(path, fits, kLeaveOut);
    run_.trace = *std::move(trace);
    if (run_.trace.dropped > 0) {
      run_.notes.push_back(
          absl::StrCat("The timeline lacks ", run_.trace.dropped,
                       " events, for which it had no room; trace fewer steps "
                       "(trace.steps)."));
    }
    return absl::OkStatus();
  }

  base::FileSystem& files_;
  const std::string folder_;
  RunRecord run_;
};

}  // namespace

absl::StatusOr<RunRecord> ReadRun(base::FileSystem& files,
                                  const std::string& folder) {
  return RunReader(files, folder).Read();
}

}  // namespace troupe::tools
