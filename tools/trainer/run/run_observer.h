// Observes a job: shows its progress and passes its metrics to sinks.
//
//   RunObserver observer(loaded.config, /*classification=*/true, display, now);
//   observer.AddSink(&json_log, /*every=*/100);
//   observer.OnFailure([&] { job->RequestStop(); });
//   absl::StatusOr<actors::JobResult> result = actors::RunJob(spec, &observer);
//   observer.status();              // whether its own work succeeded
//
// Threads: one at a time, the supervisor's.

#ifndef TOOLS_TRAINER_RUN_RUN_OBSERVER_H_
#define TOOLS_TRAINER_RUN_RUN_OBSERVER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "actors/job.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/metrics/metric_sink.h"
#include "tools/trainer/run/run_totals.h"
#include "tools/trainer/terminal/display.h"
#include "tools/trainer/terminal/progress.h"
#include "tools/trainer/terminal/summary.h"

namespace troupe::tools {

class RunObserver : public actors::JobObserver {
 public:
  // All arguments must outlive the observer.
  RunObserver(const TrainerConfig& config, bool classification,
              Display& display, std::function<absl::Time()> now)
      : config_(config),
        classification_(classification),
        display_(display),
        now_(std::move(now)) {}

  // Adds a sink, which must outlive the observer. It gets every `every`-th step
  // and the last one. Call it before the job starts.
  void AddSink(MetricSink* sink, std::int64_t every) {
    sinks_.push_back({sink, every});
  }

  // Sets a function that is called when the job's plan is made, before
  // OnStart() of any sink.
  void OnPlanned(std::function<absl::Status(const actors::JobInfo&)> action) {
    on_planned_ = std::move(action);
  }
  // Sets a function that is called once if the observer fails: the log can no
  // longer be written, say.
  void OnFailure(std::function<void()> stop) { stop_ = std::move(stop); }
  // Sets a function that is called with the path of the job's first checkpoint.
  void OnFirstCheckpoint(
      std::function<absl::Status(const std::string&)> action) {
    on_first_checkpoint_ = std::move(action);
  }

  void OnStart(const actors::JobInfo& info) override;
  void OnSteps(absl::Span<const actors::StepReport> steps) override;
  void OnEvaluation(const actors::EvaluationReport& report) override;
  void OnCheckpoint(std::int64_t step, const std::string& path) override;

  const absl::Status& status() const { return status_; }
  // Steps, samples and so on of the job so far.
  const RunTotals& totals() const { return totals_; }
  // Returns an evaluation without an accuracy that the task does not have.
  TestResult ResultOf(const actors::EvaluationReport& report) const;

 private:
  std::optional<double> AccuracyOf(double accuracy) const;
  StepEntry EntryOf(const actors::StepReport& report,
                    const Progress& progress) const;
  // Calls `write` with each sink, until one of them fails.
  void ToSinks(const std::function<absl::Status(MetricSink&)>& write);
  void Keep(const absl::Status& status);

  const TrainerConfig& config_;
  const bool classification_;
  Display& display_;
  const std::function<absl::Time()> now_;
  std::function<absl::Status(const actors::JobInfo&)> on_planned_;
  std::function<void()> stop_;
  std::function<absl::Status(const std::string&)> on_first_checkpoint_;
  absl::Status status_;

  struct Sink {
    MetricSink* to;
    std::int64_t every;  // steps
  };
  std::vector<Sink> sinks_;

  RunTotals totals_;
};

// Returns the first lines of a run. One of them is a warning if the run goes on
// behind the end of its learning rate's schedule.
std::string FormatStart(const TrainerConfig& config,
                        const actors::JobInfo& info);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_RUN_RUN_OBSERVER_H_
