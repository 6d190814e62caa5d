#include "troupe/trainer.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/exception_text.h"
#include "base/field_error.h"
#include "base/status_error.h"
#include "troupe/trainer/evaluation_job.h"
#include "troupe/trainer/prediction_run.h"
#include "troupe/trainer/trainer_job.h"
#include "troupe/trainer/trainer_placement.h"

namespace troupe {
namespace {

// Begin of the names of an evaluation's metrics.
constexpr char kVal[] = "val_", kTest[] = "test_";

absl::Status CheckCallbacks(const TrainerOptions& options) {
  for (const auto& callback : options.callbacks) {
    if (callback != nullptr) continue;
    return base::FieldError<&TrainerOptions::callbacks>(
        absl::StrCat(base::FieldName<&TrainerOptions::callbacks>(),
                     " has a null pointer; remove it"));
  }
  return absl::OkStatus();
}

}  // namespace

void PrintLine(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

class Trainer::Observer : public actors::JobObserver {
 public:
  explicit Observer(Trainer& trainer) : trainer_(trainer) {}

  void OnStart(const actors::JobInfo& info) override {
    trainer_.info_ = info;
    trainer_.global_step_ = info.first_step;
    Tell([&](Callback& to) { to.OnFitStart(trainer_); });
  }
  void OnSteps(absl::Span<const StepReport> steps) override {
    for (const StepReport& step : steps) {
      trainer_.OnStep(step);
      Tell([&](Callback& to) { to.OnTrainBatchEnd(trainer_, step); });
      const std::int64_t every = trainer_.options_.log_every_n_steps;
      if (every > 0 && step.step % every == 0) {
        trainer_.LogLine(/*prefix=*/nullptr);
      }
      if (EndsEpoch(step.step)) {
        Tell([&](Callback& to) { to.OnTrainEpochEnd(trainer_); });
      }
    }
  }
  void OnEvaluation(const EvaluationReport& evaluation) override {
    trainer_.OnEvaluation(evaluation, kVal);
    Tell([&](Callback& to) { to.OnValidationEnd(trainer_, evaluation); });
  }
  void OnCheckpoint(std::int64_t step, const std::string& path) override {
    Tell([&](Callback& to) { to.OnSaveCheckpoint(trainer_, step, path); });
  }

  template <typename Call>
  void Tell(Call call) {
    for (const auto& callback : trainer_.options_.callbacks) call(*callback);
  }

 private:
  bool EndsEpoch(std::int64_t step) const {
    const std::int64_t next = step - trainer_.info_.first_step;
    return trainer_.info_.sampler->BatchAt(next).epoch > trainer_.epoch_;
  }

  Trainer& trainer_;
};

absl::StatusOr<actors::JobSpec> Trainer::SetUp(const Task& task,
                                               const FitData& train,
                                               const FitData& val) {
  TROUPE_RETURN_IF_ERROR(CheckCallbacks(options_));
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          TrainerJob(options_, task, train, val));
  TROUPE_RETURN_IF_ERROR(SetMonitor(options_.callbacks, spec));
  for (const auto& callback : options_.callbacks) {
    TROUPE_RETURN_IF_ERROR(callback->Setup(*this, spec));
  }
  if (!options_.ckpt_path.empty()) {
    TROUPE_RETURN_IF_ERROR(SetResume(options_.ckpt_path, spec));
  }
  if (options_.edit_job) options_.edit_job(spec);
  return spec;
}

absl::Status Trainer::Fit(const Task& task, const FitData& train,
                          const FitData& val) {
  return FitBy(
      [this](const actors::JobSpec& spec, actors::JobObserver* observer) {
        return RunHere(spec, observer);
      },
      task, train, val);
}

absl::Status Trainer::FitBy(const Runner& run, const Task& task,
                            const FitData& train, const FitData& val) {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = false;
  }
  metrics_.clear();
  info_ = actors::JobInfo();
  result_ = {};
  epoch_ = 0;
  TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec, SetUp(task, train, val));
  is_classification_ = spec.loss && spec.train->spec().is_classification();
  Observer observer(*this);
  TROUPE_ASSIGN_OR_RETURN(result_, run(spec, &observer));
  if (!result_.converged.empty() && options_.logger) {
    options_.logger(absl::StrCat("stopped early: ", result_.converged));
  }
  observer.Tell([&](Callback& to) { to.OnFitEnd(*this); });
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, double>> Trainer::Validate(
    const Task& task, const FitData& data, const std::string& ckpt_path) {
  TROUPE_ASSIGN_OR_RETURN(
      const FitData first,
      LimitedData<&TrainerOptions::limit_val_batches>(options_, data));
  return Evaluate(task, first, ckpt_path, kVal);
}

absl::StatusOr<std::map<std::string, double>> Trainer::Test(
    const Task& task, const FitData& data, const std::string& ckpt_path) {
  TROUPE_ASSIGN_OR_RETURN(
      const FitData first,
      LimitedData<&TrainerOptions::limit_test_batches>(options_, data));
  return Evaluate(task, first, ckpt_path, kTest);
}

absl::StatusOr<std::map<std::string, double>> Trainer::Evaluate(
    const Task& task, const FitData& data, const std::string& ckpt_path,
    const char* prefix) {
  TROUPE_RETURN_IF_ERROR(CheckCallbacks(options_));
  TROUPE_ASSIGN_OR_RETURN(const actors::Checkpoint at,
                          CheckpointAt(options_, ckpt_path));
  TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec,
                          EvaluationJob(options_, task, data, at));
  is_classification_ = spec.loss && spec.test->spec().is_classification();
  TROUPE_ASSIGN_OR_RETURN(const actors::JobResult result,
                          RunHere(spec, /*observer=*/nullptr));
  global_step_ = at.state().step;
  OnEvaluation(result.evaluation, prefix);
  Observer(*this).Tell([&](Callback& to) {
    if (prefix == kVal) to.OnValidationEnd(*this, result.evaluation);
    if (prefix == kTest) to.OnTestEnd(*this, result.evaluation);
  });
  std::map<std::string, double> metrics;
  for (const auto& [name, value] : metrics_) {
    if (absl::StartsWith(name, prefix)) metrics[name] = value;
  }
  return metrics;
}

absl::StatusOr<Predictions> Trainer::Predict(const Task& task,
                                             const FitData& data,
                                             const std::string& ckpt_path,
                                             bool return_predictions) {
  TROUPE_RETURN_IF_ERROR(CheckCallbacks(options_));
  TROUPE_ASSIGN_OR_RETURN(const actors::Checkpoint at,
                          CheckpointAt(options_, ckpt_path));
  global_step_ = at.state().step;
  Observer observer(*this);
  Predictions predictions;
  // Callbacks are the program's code, and may throw.
  try {
    observer.Tell([&](Callback& to) { to.OnPredictStart(*this); });
    TROUPE_RETURN_IF_ERROR(RunPredictions(
        options_, task, data, at, [&](const PredictedBatch& batch) {
          observer.Tell(
              [&](Callback& to) { to.OnPredictBatchEnd(*this, batch); });
          if (return_predictions) predictions.batches.push_back(batch);
        }));
    observer.Tell([&](Callback& to) { to.OnPredictEnd(*this); });
  } catch (const base::StatusError& error) {
    return error.status();
  } catch (...) {
    return absl::InternalError(base::ExceptionText(std::current_exception()));
  }
  return predictions;
}

absl::StatusOr<actors::JobResult> Trainer::RunHere(
    const actors::JobSpec& spec, actors::JobObserver* observer) {
  actors::JobSpec placed = spec;
  TROUPE_ASSIGN_OR_RETURN(placed.cluster, TrainerCluster(options_));
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<actors::Job> job,
                          actors::Job::Start(placed, observer));
  {
    absl::MutexLock lock(&mutex_);
    job_ = job.get();
    if (stop_) job_->RequestStop();
  }
  absl::StatusOr<actors::JobResult> result = job->Wait();
  absl::MutexLock lock(&mutex_);
  job_ = nullptr;
  return result;
}

void Trainer::Stop() {
  absl::MutexLock lock(&mutex_);
  stop_ = true;
  if (job_ != nullptr) job_->RequestStop();
}

bool Trainer::should_stop() const {
  absl::MutexLock lock(&mutex_);
  return stop_;
}

void Trainer::OnStep(const StepReport& step) {
  global_step_ = step.step;
  epoch_ = info_.sampler->BatchAt(step.step - info_.first_step - 1).epoch;
  Log("train_loss", step.loss);
  if (is_classification_) Log("train_accuracy", step.accuracy);
}

void Trainer::OnEvaluation(const EvaluationReport& evaluation,
                           const char* prefix) {
  Log(absl::StrCat(prefix, "loss"), evaluation.loss);
  if (is_classification_) {
    Log(absl::StrCat(prefix, "accuracy"), evaluation.accuracy);
  }
  LogLine(prefix);
}

void Trainer::LogLine(const char* prefix) const {
  if (!options_.logger) return;
  std::string line = absl::StrCat("step ", global_step_, ":");
  for (const auto& [name, value] : metrics_) {
    const bool of_evaluation =
        absl::StartsWith(name, kVal) || absl::StartsWith(name, kTest);
    const bool written =
        prefix == nullptr ? !of_evaluation : absl::StartsWith(name, prefix);
    if (written) absl::StrAppend(&line, " ", name, "=", value);
  }
  options_.logger(line);
}

}  // namespace troupe
