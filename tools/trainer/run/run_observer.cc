#include "tools/trainer/run/run_observer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/state_dict.h"
#include "nn/optim/lr_schedule.h"
#include "tools/trainer/config/optimizer_kinds.h"

namespace troupe::tools {

namespace {

// Limit on the lines about another plan; each bucket may be one.
constexpr std::size_t kPlanChangesShownMax = 20;

// `unit`: what a line of `changes` begins with.
std::string FormatChanges(absl::string_view what, absl::string_view unit,
                          const std::vector<std::string>& changes) {
  if (changes.empty()) return "";
  std::string text = absl::StrCat("\nwhere ", what, " from the checkpoint's (",
                                  unit, ": then, now):");
  const std::size_t shown = std::min(changes.size(), kPlanChangesShownMax);
  for (std::size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, "\n  ", changes[i]);
  }
  if (shown < changes.size()) {
    absl::StrAppend(&text, "\n  and ", changes.size() - shown, " more");
  }
  return text;
}

// Returns the warning of FormatStart(), or nothing.
std::string ScheduleWarning(const TrainerConfig& config,
                            const actors::JobInfo& info) {
  const nn::LrSchedule& schedule = config.optimizer.common.schedule;
  // A schedule whose steps are not set ends with the run.
  if (!schedule.HasEnd() || schedule.steps == 0) return "";
  const std::int64_t end = schedule.End();
  if (end >= info.steps || info.first_step >= info.steps) return "";
  return absl::StrCat(
      "\nwarning: the schedule \"", nn::LrScheduleName(schedule.kind),
      "\" of the learning rate ends after ", FormatCount(end), " of ",
      FormatCount(info.steps), " steps, and the rate then stays at ",
      ScaledLr(config) * schedule.Factor(end),
      "; optimizer.schedule_steps = ", schedule.steps,
      " would have to be larger");
}

}  // namespace

std::string FormatStart(const TrainerConfig& config,
                        const actors::JobInfo& info) {
  const int ranks = info.plan.mesh.size();
  std::string text = absl::StrCat(
      "training ", config.model.Name(), " (",
      FormatCount(info.plan.parameter_elems()), " parameters) on ",
      config.data.kind, ": ", ranks, ranks == 1 ? " rank (" : " ranks (",
      info.plan.mesh.ToString(), "), ", FormatCount(info.steps), " steps of ",
      info.plan.global_batch_size,
      info.sampler
          ? absl::StrCat(" of ",
                         FormatCount(info.sampler->state().dataset_size))
          : "",
      " samples, ", info.plan.kernels);
  if (info.memory.total() > 0) {
    absl::StrAppend(&text, "\nmemory expected: ", info.memory.ToString());
  }
  if (!info.transports.empty()) {
    absl::StrAppend(&text, "\nprocess 0 exchanges tensors with the others by ",
                    info.transports);
  }
  if (!info.resumed_from.empty()) {
    absl::StrAppend(&text, "\ngoing on from ", info.resumed_from);
    if (info.first_step >= info.steps) {
      absl::StrAppend(&text, "; its ", FormatCount(info.first_step),
                      " steps are all that was asked for");
    }
    if (!info.missing.empty()) {
      absl::StrAppend(&text, "\nmissing from it, with initial values: ",
                      actors::ListKeys(info.missing));
    }
    if (!info.unexpected.empty()) {
      absl::StrAppend(&text, "\nunexpected in it, left out: ",
                      actors::ListKeys(info.unexpected));
    }
    text += FormatChanges("settings differ", "key", info.setting_changes);
    text += FormatChanges("the plan differs", "field", info.plan_changes);
  } else if (config.job.checkpoint.resume) {
    absl::StrAppend(&text, "\nno checkpoint in ", config.job.checkpoint.dir,
                    " yet: starting at step 0");
  }
  return text + ScheduleWarning(config, info);
}

void RunObserver::OnStart(const actors::JobInfo& info) {
  totals_.Start(info);
  display_.Print(FormatStart(config_, info));
  if (on_planned_) Keep(on_planned_(info));
  StartEntry entry;
  entry.first_step = info.first_step;
  entry.resumed = !info.resumed_from.empty();
  entry.steps = info.steps;
  entry.ranks = info.plan.mesh.size();
  entry.time = now_();
  ToSinks([&](MetricSink& sink) { return sink.OnStart(entry); });
}

void RunObserver::OnSteps(absl::Span<const actors::StepReport> steps) {
  for (const actors::StepReport& report : steps) {
    totals_.Add(report);
    Progress progress = totals_.ProgressAt(report);
    progress.accuracy = AccuracyOf(report.accuracy);
    display_.ShowStep(progress, report.seconds);
    const StepEntry entry = EntryOf(report, progress);
    for (const Sink& sink : sinks_) {
      const bool due =
          report.step % sink.every == 0 || report.step == totals_.steps();
      if (due && status_.ok()) Keep(sink.to->OnStep(entry));
    }
  }
}

StepEntry RunObserver::EntryOf(const actors::StepReport& report,
                               const Progress& progress) const {
  StepEntry entry;
  entry.step = report.step;
  entry.epoch = progress.epoch;
  entry.loss = report.loss;
  entry.accuracy = progress.accuracy;
  entry.samples_per_s = progress.samples_per_s;
  entry.seconds = report.step_seconds;
  entry.lr = report.lr;
  if (config_.optimizer.common.clip_grad_norm > 0) {
    entry.grad_norm = report.grad_norm;
  }
  entry.peak_bytes = report.peak_bytes;
  entry.loss_scale = progress.loss_scale;
  entry.skipped_steps = progress.skipped_steps;
  entry.time = now_();
  return entry;
}

void RunObserver::OnEvaluation(const actors::EvaluationReport& report) {
  const TestResult result = ResultOf(report);
  display_.Print(FormatEvaluation(result, report.count));
  EvaluationEntry entry;
  entry.step = result.step;
  entry.loss = result.loss;
  entry.accuracy = result.accuracy;
  entry.count = report.count;
  entry.time = now_();
  ToSinks([&](MetricSink& sink) { return sink.OnEvaluation(entry); });
}

TestResult RunObserver::ResultOf(const actors::EvaluationReport& report) const {
  return {report.step, report.loss, AccuracyOf(report.accuracy)};
}

std::optional<double> RunObserver::AccuracyOf(double accuracy) const {
  if (!classification_) return std::nullopt;
  return accuracy;
}

void RunObserver::OnCheckpoint(std::int64_t step, const std::string& path) {
  if (on_first_checkpoint_) Keep(on_first_checkpoint_(path));
  on_first_checkpoint_ = nullptr;
  CheckpointEntry entry;
  entry.step = step;
  entry.path = path;
  entry.time = now_();
  ToSinks([&](MetricSink& sink) { return sink.OnCheckpoint(entry); });
}

void RunObserver::ToSinks(
    const std::function<absl::Status(MetricSink&)>& write) {
  for (const Sink& sink : sinks_) {
    if (status_.ok()) Keep(write(*sink.to));
  }
}

// Keeps the first error, which ends the run.
void RunObserver::Keep(const absl::Status& status) {
  if (status.ok() || !status_.ok()) return;
  status_ = status;
  if (stop_) stop_();
}

}  // namespace troupe::tools
