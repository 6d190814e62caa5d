#include "troupe/trainer_callbacks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/layout.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/files/file_system.h"
#include "base/status_error.h"
#include "troupe/trainer.h"
#include "troupe/trainer/trainer_job.h"

namespace troupe {
namespace {

using actors::JobSpec;

constexpr char kValLoss[] = "val_loss";
constexpr char kValAccuracy[] = "val_accuracy";
// Begin of the name of a checkpoint that is being removed. It is none of a
// checkpoint's, so that the job looks at it no more.
constexpr char kRemoved[] = "removed-";

absl::Status RefuseWithoutValidation(absl::string_view callback) {
  return absl::InvalidArgumentError(
      absl::StrCat(callback,
                   " compares evaluations, and there are none; give Fit() "
                   "validation data, and limit_val_batches above 0"));
}

}  // namespace

absl::Status SetMonitor(const std::vector<std::shared_ptr<Callback>>& callbacks,
                        JobSpec& spec) {
  std::string first;
  for (const auto& callback : callbacks) {
    const std::string monitor = callback->monitor();
    if (monitor.empty()) continue;
    if (monitor != kValLoss && monitor != kValAccuracy) {
      return absl::InvalidArgumentError(absl::StrCat(
          "monitor \"", monitor, "\" of a callback: must be \"", kValLoss,
          "\" or \"", kValAccuracy,
          "\"; what else is to be compared, a Callback of your own compares in "
          "OnValidationEnd()"));
    }
    if (first.empty()) first = monitor;
    if (monitor != first) {
      return absl::InvalidArgumentError(absl::StrCat(
          "callbacks have the monitors \"", first, "\" and \"", monitor,
          "\", and a run has one; give all of them the same"));
    }
  }
  if (!first.empty()) {
    spec.checkpoint.best_metric =
        first == kValLoss ? actors::kEvalLoss : actors::kEvalAccuracy;
  }
  return absl::OkStatus();
}

// --- EarlyStopping ---

absl::Status EarlyStopping::Setup(Trainer& trainer, JobSpec& spec) {
  if (trainer.options().fast_dev_run > 0) return absl::OkStatus();
  if (monitor_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("EarlyStopping has no monitor; give it \"", kValLoss,
                     "\" or \"", kValAccuracy, "\""));
  }
  if (patience_ < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "EarlyStopping: patience = ", patience_, ": must be at least 1"));
  }
  if (spec.test == nullptr) return RefuseWithoutValidation("EarlyStopping");
  spec.early_stop_patience = patience_;
  spec.early_stop_min_delta = min_delta_;
  return absl::OkStatus();
}

// --- ModelCheckpoint ---

absl::Status ModelCheckpoint::CheckArguments(const JobSpec& spec) const {
  if (save_top_k_ < -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("ModelCheckpoint: save_top_k = ", save_top_k_,
                     ": must be at least -1, which keeps all"));
  }
  if (every_n_train_steps_ < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ModelCheckpoint: every_n_train_steps = ", every_n_train_steps_,
        ": must be at least 0"));
  }
  if (monitor_.empty()) return absl::OkStatus();
  if (spec.test == nullptr) return RefuseWithoutValidation("ModelCheckpoint");
  if (every_n_train_steps_ == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "ModelCheckpoint: every_n_train_steps = ", every_n_train_steps_,
      " and monitor = \"", monitor_,
      "\" are both set, and a monitor saves at each evaluation; remove one"));
}

absl::Status ModelCheckpoint::CheckFolder(const std::string& ckpt_path) const {
  base::PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> saved,
                          actors::ListCheckpoints(files, dirpath_));
  if (saved.empty() || !ckpt_path.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      dirpath_, " has checkpoints of an earlier run, up to ", saved.back(),
      "; go on from there with ckpt_path = \"last\", or give ModelCheckpoint "
      "another dirpath"));
}

std::string ModelCheckpoint::Folder(const TrainerOptions& options) const {
  return dirpath_.empty()
             ? absl::StrCat(options.default_root_dir, "/checkpoints")
             : dirpath_;
}

absl::Status ModelCheckpoint::Setup(Trainer& trainer, JobSpec& spec) {
  best_.clear();
  scores_.clear();
  last_path_.clear();
  TROUPE_RETURN_IF_ERROR(CheckArguments(spec));
  const TrainerOptions& options = trainer.options();
  if (options.fast_dev_run > 0 || save_top_k_ == 0) return absl::OkStatus();
  dirpath_ = Folder(options);
  TROUPE_RETURN_IF_ERROR(CheckFolder(options.ckpt_path));
  actors::CheckpointOptions& saving = spec.checkpoint;
  if (!saving.dir.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "two ModelCheckpoints save into ", saving.dir, " and ", dirpath_,
        ", and a run has one folder; remove one of them"));
  }
  saving.dir = dirpath_;
  saving.every_time = absl::ZeroDuration();
  saving.every = every_n_train_steps_ > 0 ? every_n_train_steps_
                 : spec.eval_every > 0    ? spec.eval_every
                                          : StepsPerEpoch(spec);
  saving.keep_best = !monitor_.empty();
  // The job keeps the newest; the best are kept here.
  saving.keep = monitor_.empty() ? std::max(save_top_k_, 0) : 0;
  return absl::OkStatus();
}

double ModelCheckpoint::ScoreOf(std::int64_t step) const {
  const auto at = scores_.find(step);
  return at == scores_.end() ? std::numeric_limits<double>::quiet_NaN()
                             : at->second;
}

bool ModelCheckpoint::IsBetter(const Saved& a, const Saved& b) const {
  const double sign = monitor_ == kValLoss ? 1 : -1;
  const double of_a = sign * ScoreOf(a.step), of_b = sign * ScoreOf(b.step);
  if (std::isnan(of_a) || std::isnan(of_b)) return std::isnan(of_b);
  return of_a < of_b;
}

void ModelCheckpoint::OnValidationEnd(Trainer&,
                                      const EvaluationReport& evaluation) {
  if (monitor_.empty()) return;
  scores_[evaluation.step] =
      monitor_ == kValLoss ? evaluation.loss : evaluation.accuracy;
}

void ModelCheckpoint::OnSaveCheckpoint(Trainer&, std::int64_t step,
                                       const std::string& path) {
  last_path_ = path;
  if (monitor_.empty()) return;
  // A checkpoint of the same step, as at the end of a run, replaces the first.
  best_.erase(
      std::remove_if(best_.begin(), best_.end(),
                     [&](const Saved& saved) { return saved.step == step; }),
      best_.end());
  best_.push_back({step, path});
  // Equal scores stay in the order of the steps: the job calls the first best.
  std::stable_sort(
      best_.begin(), best_.end(),
      [&](const Saved& a, const Saved& b) { return IsBetter(a, b); });
  Prune();
}

void ModelCheckpoint::Prune() {
  if (save_top_k_ < 0) return;
  base::PosixFileSystem files;
  std::vector<Saved> kept;
  for (const Saved& saved : best_) {
    const bool is_best = static_cast<int>(kept.size()) < save_top_k_;
    if (is_best || saved.path == last_path_) {
      kept.push_back(saved);
      continue;
    }
    const std::string removed = absl::StrCat(
        dirpath_, "/", kRemoved, actors::CheckpointName(saved.step));
    base::OrThrow(files.RemoveAll(removed));  // left by a crash in here
    base::OrThrow(files.Rename(saved.path, removed));
    base::OrThrow(files.RemoveAll(removed));
  }
  best_ = std::move(kept);
}

std::string ModelCheckpoint::best_model_path() const {
  return best_.empty() ? "" : best_.front().path;
}

double ModelCheckpoint::best_model_score() const {
  return best_.empty() ? std::numeric_limits<double>::quiet_NaN()
                       : ScoreOf(best_.front().step);
}

std::map<std::string, double> ModelCheckpoint::best_k_models() const {
  std::map<std::string, double> models;
  for (const Saved& saved : best_) {
    if (save_top_k_ >= 0 && static_cast<int>(models.size()) == save_top_k_) {
      break;
    }
    models[saved.path] = ScoreOf(saved.step);
  }
  return models;
}

// --- LearningRateMonitor ---

void LearningRateMonitor::OnTrainBatchEnd(Trainer& trainer,
                                          const StepReport& step) {
  trainer.Log("lr", step.lr);
}

}  // namespace troupe
