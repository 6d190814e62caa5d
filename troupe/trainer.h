// PyTorch Lightning's Trainer: trains a task as options say, on the actors of a
// job, so that pipelines, evaluations, checkpoints and equal bits on any number
// of ranks come with it.
//
//   Task task;
//   task.model = [] { return nn::MakeMlp({784, 512, 10}, {}); };
//   task.loss = nn::ops::CrossEntropyLoss();
//   task.optimizer = nn::AdamOptions{/*lr=*/1e-3};
//   TrainerOptions options;
//   options.devices = 2;
//   options.max_epochs = 10;
//   options.callbacks = {std::make_shared<EarlyStopping>("val_loss"),
//                        std::make_shared<ModelCheckpoint>()};
//   Trainer trainer(options);
//   absl::Status status =
//       trainer.Fit(task, {train, /*batch_size=*/32, /*shuffle=*/true}, {val});
//   trainer.callback_metrics().at("val_loss");
//   if (trainer.is_global_zero()) Upload("checkpoints");
//   trainer.Test(task, {test, /*batch_size=*/32})->at("test_loss");
//   trainer.Predict(task, {test, /*batch_size=*/32})->InOrder();
//
// An epoch's last batch is left out if it is not whole, and losses are means
// over all counted targets of a step, also of its accumulated batches: both are
// so in any job.
//
// Errors: kInvalidArgument names the option; those of actors/job.h, and of
// callbacks. Threads: Fit() from one; it returns when the job has ended. Stop()
// from any. The rest from that thread, and in callbacks.
// Source of names: PyTorch Lightning 2.5, lightning.pytorch.Trainer.

#ifndef TROUPE_TRAINER_H_
#define TROUPE_TRAINER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "actors/job.h"
#include "actors/setup/job_report.h"
#include "actors/spec/job_spec.h"
#include "troupe/program.h"
#include "troupe/trainer/predictions.h"
#include "troupe/trainer/process_ranks.h"
#include "troupe/trainer_callbacks.h"
#include "troupe/trainer_options.h"

namespace troupe {

class Trainer {
 public:
  explicit Trainer(const TrainerOptions& options = {})
      : options_(options), ranks_(RanksOfProcess(options)) {}
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains from the beginning, or from TrainerOptions::ckpt_path. `val` without
  // a dataset: nothing is evaluated.
  absl::Status Fit(const Task& task, const FitData& train,
                   const FitData& val = {});

  // Runs a job to its end, as actors::RunJob() or a simulation does.
  using Runner = std::function<absl::StatusOr<actors::JobResult>(
      const actors::JobSpec& spec, actors::JobObserver* observer)>;
  // Does the same with all ranks where `run` has them. Stop() only makes
  // should_stop() true.
  absl::Status FitBy(const Runner& run, const Task& task, const FitData& train,
                     const FitData& val = {});

  // Evaluates a checkpoint on `data`, or on the batches of it that
  // limit_val_batches or limit_test_batches lets through: trains and saves
  // nothing. `ckpt_path` is
  // a path, "last", or "best"; if it is empty, it is the best one of the
  // ModelCheckpoint, or its newest one if that has no monitor. The task and the
  // seed are those of its run; the mesh may be another. Returns the metrics,
  // "val_loss", "test_loss" and their like, which callback_metrics() has from
  // then on, too; callbacks have OnValidationEnd() or OnTestEnd().
  //   kInvalidArgument: there are no samples, or no ModelCheckpoint has a
  //   folder. kNotFound: there is no checkpoint.
  absl::StatusOr<std::map<std::string, double>> Validate(
      const Task& task, const FitData& data, const std::string& ckpt_path = "");
  absl::StatusOr<std::map<std::string, double>> Test(
      const Task& task, const FitData& data, const std::string& ckpt_path = "");

  // Computes the outputs of a checkpoint's model for the samples of `data`: of
  // its forward, or of Task::predict_step. `ckpt_path` and `task` are those of
  // Validate(). Replica r of n has samples r, r + n, r + 2 n, ..., each once,
  // as under Lightning, and the last batch may be smaller; targets are not
  // used. Under a launcher each process returns the outputs of its own
  // replicas. Callbacks have OnPredictStart(), OnPredictBatchEnd() and
  // OnPredictEnd(). `return_predictions`: whether outputs are kept; if not, the
  // result is empty, and memory does not grow.
  //   kInvalidArgument: there are no samples, or no ModelCheckpoint has a
  //   folder. kNotFound: there is no checkpoint.
  absl::StatusOr<Predictions> Predict(const Task& task, const FitData& data,
                                      const std::string& ckpt_path = "",
                                      bool return_predictions = true);

  // Ends the run after the steps that ranks are granted already, about 50 ms of
  // them or one; callbacks see these, too.
  void Stop();
  bool should_stop() const;

  // Adds a number to callback_metrics(), and to the lines of steps.
  void Log(const std::string& name, double value) { metrics_[name] = value; }
  // The newest numbers: "train_loss", "train_accuracy" (of classes),
  // "val_loss", "val_accuracy", those of Test(), and those of Log().
  const std::map<std::string, double>& callback_metrics() const {
    return metrics_;
  }
  std::int64_t global_step() const { return global_step_; }  // updates
  // Number of the epoch of the last step, from 0.
  std::int64_t current_epoch() const { return epoch_; }
  // Updates of the whole run, with the part before ckpt_path. Valid from
  // OnFitStart() on.
  std::int64_t estimated_stepping_batches() const { return info_.steps; }

  // Options and launcher say which ranks this process has, before Fit(), too.
  // It may have several, as threads: the numbers are those of the first one.
  // is_global_zero() is true in one process of a job, rank 0's, which also has
  // what the job reports.
  bool is_global_zero() const { return ranks_.global_rank == 0; }
  int global_rank() const { return ranks_.global_rank; }
  int local_rank() const { return ranks_.local_rank; }  // on its node
  int node_rank() const { return ranks_.node_rank; }
  int world_size() const { return ranks_.world_size; }  // devices * num_nodes
  // Writes the line and its end to standard output if is_global_zero().
  void Print(const std::string& line) const {
    if (is_global_zero()) PrintLine(line);
  }

  const TrainerOptions& options() const { return options_; }
  // Valid from OnFitStart() on.
  const actors::JobInfo& info() const { return info_; }
  const actors::JobResult& result() const { return result_; }

 private:
  class Observer;

  absl::StatusOr<actors::JobSpec> SetUp(const Task& task, const FitData& train,
                                        const FitData& val);
  absl::StatusOr<actors::JobResult> RunHere(const actors::JobSpec& spec,
                                            actors::JobObserver* observer);
  // `prefix`: begin of the metrics' names, "val_" or "test_".
  absl::StatusOr<std::map<std::string, double>> Evaluate(
      const Task& task, const FitData& data, const std::string& ckpt_path,
      const char* prefix);
  void OnStep(const StepReport& step);
  void OnEvaluation(const EvaluationReport& evaluation, const char* prefix);
  // Writes a line with the metrics whose names begin with `prefix`; null: with
  // those of no evaluation.
  void LogLine(const char* prefix) const;

  const TrainerOptions options_;
  const ProcessRanks ranks_;
  actors::JobInfo info_;
  actors::JobResult result_;
  std::map<std::string, double> metrics_;
  std::int64_t global_step_ = 0;
  std::int64_t epoch_ = 0;
  bool is_classification_ = false;
  mutable absl::Mutex mutex_;
  // The job under way; null: there is none.
  actors::Job* job_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe

#endif  // TROUPE_TRAINER_H_
