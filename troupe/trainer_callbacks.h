// Callbacks of a Trainer, in the manner of PyTorch Lightning: those of the
// library, and the base class of one's own.
//
//   struct StopsBelow : Callback {
//     void OnTrainBatchEnd(Trainer& trainer, const StepReport& step) override {
//       if (step.loss < 0.1) trainer.Stop();
//     }
//   };
//   TrainerOptions options;
//   options.callbacks = {
//       std::make_shared<StopsBelow>(),
//       std::make_shared<EarlyStopping>("val_loss", /*patience=*/3),
//       std::make_shared<ModelCheckpoint>("checkpoints", "val_loss"),
//       std::make_shared<LearningRateMonitor>()};
//
// Setup() is called first, where Fit() is called. The other calls are about
// what the job reports: each step, evaluation and checkpoint once, in order, in
// a thread of the job's that no rank waits for. Ranks may be some steps ahead
// of it; so a callback sees all steps, and changes none. Under a launcher the
// first process has them alone, except Setup() and OnFitStart().
//
// Errors: a callback that throws ends the job, and its exception is the error
// of Fit(). Threads: one call at a time.

#ifndef TROUPE_TRAINER_CALLBACKS_H_
#define TROUPE_TRAINER_CALLBACKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "actors/setup/job_report.h"
#include "actors/spec/job_spec.h"
#include "troupe/trainer/predictions.h"

namespace troupe {

class Trainer;
struct TrainerOptions;

using actors::EvaluationReport;
using actors::StepReport;

class Callback {
 public:
  virtual ~Callback() = default;

  // Adds to the job what the callback needs. All options of the Trainer are in
  // it already. An error is that of Fit().
  virtual absl::Status Setup(Trainer& /*trainer*/, actors::JobSpec& /*spec*/) {
    return absl::OkStatus();
  }
  // Metric by which the callback compares evaluations, "val_loss" or
  // "val_accuracy"; a job has one, so all callbacks have the same. Empty: none.
  virtual std::string monitor() const { return ""; }

  virtual void OnFitStart(Trainer& /*trainer*/) {}
  virtual void OnTrainBatchEnd(Trainer& /*trainer*/,
                               const StepReport& /*step*/) {}
  virtual void OnTrainEpochEnd(Trainer& /*trainer*/) {}
  virtual void OnValidationEnd(Trainer& /*trainer*/,
                               const EvaluationReport& /*evaluation*/) {}
  // Trainer::Test() has evaluated.
  virtual void OnTestEnd(Trainer& /*trainer*/,
                         const EvaluationReport& /*evaluation*/) {}
  // About Trainer::Predict(), in the thread that calls it: the end of each
  // batch of the replicas in this process, in the order of batches, then
  // replicas.
  virtual void OnPredictStart(Trainer& /*trainer*/) {}
  virtual void OnPredictBatchEnd(Trainer& /*trainer*/,
                                 const PredictedBatch& /*batch*/) {}
  virtual void OnPredictEnd(Trainer& /*trainer*/) {}
  virtual void OnSaveCheckpoint(Trainer& /*trainer*/, std::int64_t /*step*/,
                                const std::string& /*path*/) {}
  // The job has ended without an error; Trainer::result() is set.
  virtual void OnFitEnd(Trainer& /*trainer*/) {}
};

// Ends the run when evaluations improve no more: after `patience` in a row that
// are no better than the best one before them by more than min_delta. All ranks
// stop after that evaluation, and it is the same one in each run; Trainer::
// result().converged says why.
class EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(std::string monitor, int patience = 3,
                         double min_delta = 0)
      : monitor_(std::move(monitor)),
        patience_(patience),
        min_delta_(min_delta) {}

  absl::Status Setup(Trainer& trainer, actors::JobSpec& spec) override;
  std::string monitor() const override { return monitor_; }

 private:
  const std::string monitor_;
  const int patience_;
  const double min_delta_;
};

// Saves checkpoints, which a run goes on from with the same bits
// (TrainerOptions::ckpt_path).
//
//   ModelCheckpoint best("checkpoints", "val_loss", /*save_top_k=*/2);
//   // After Fit():
//   best.best_model_path();           // "checkpoints/step-00000040"
//
// A `monitor` has one made at each evaluation; of those of this run the
// `save_top_k` best are kept, and the newest. Without a monitor, one is made
// every `every_n_train_steps` steps, or as often as evaluations are (each
// epoch, if there are none), and the newest `save_top_k` are kept. -1 keeps
// all, 0 saves nothing. The end of the run has one in any case. A new run in a
// folder with checkpoints is refused.
class ModelCheckpoint : public Callback {
 public:
  // An empty `dirpath` is "checkpoints" in TrainerOptions::default_root_dir.
  explicit ModelCheckpoint(std::string dirpath = "", std::string monitor = "",
                           int save_top_k = 1,
                           std::int64_t every_n_train_steps = 0)
      : dirpath_(std::move(dirpath)),
        monitor_(std::move(monitor)),
        save_top_k_(save_top_k),
        every_n_train_steps_(every_n_train_steps) {}

  // The best of this run by `monitor`; empty, or NaN: there is none.
  std::string best_model_path() const;
  double best_model_score() const;
  // Returns the scores of those that are kept for them, by path.
  std::map<std::string, double> best_k_models() const;
  const std::string& last_model_path() const { return last_path_; }
  // Returns the folder of the checkpoints.
  std::string Folder(const TrainerOptions& options) const;

  absl::Status Setup(Trainer& trainer, actors::JobSpec& spec) override;
  std::string monitor() const override { return monitor_; }
  void OnValidationEnd(Trainer& trainer,
                       const EvaluationReport& evaluation) override;
  void OnSaveCheckpoint(Trainer& trainer, std::int64_t step,
                        const std::string& path) override;

 private:
  struct Saved {
    std::int64_t step;
    std::string path;
  };

  absl::Status CheckArguments(const actors::JobSpec& spec) const;
  absl::Status CheckFolder(const std::string& ckpt_path) const;
  // Whether the first one is kept rather than the second one.
  bool IsBetter(const Saved& a, const Saved& b) const;
  // Returns the evaluation's metric, NaN if there was none after that step.
  double ScoreOf(std::int64_t step) const;
  // Removes what is neither among the best nor the newest.
  void Prune();

  std::string dirpath_;
  const std::string monitor_;
  const int save_top_k_;
  const std::int64_t every_n_train_steps_;
  std::vector<Saved> best_;  // the best one first
  std::string last_path_;
  // Metric of each evaluation, by step.
  std::map<std::int64_t, double> scores_;
};

// Logs the learning rate of each step as "lr".
class LearningRateMonitor : public Callback {
 public:
  void OnTrainBatchEnd(Trainer& trainer, const StepReport& step) override;
};

// Sets the metric by which the job compares evaluations, that of all callbacks.
//   kInvalidArgument: it is none, or two callbacks have two.
absl::Status SetMonitor(const std::vector<std::shared_ptr<Callback>>& callbacks,
                        actors::JobSpec& spec);

}  // namespace troupe

#endif  // TROUPE_TRAINER_CALLBACKS_H_
