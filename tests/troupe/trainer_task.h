// A small task for a Trainer, on generated digits, and a callback that keeps
// what it hears.
//
//   const auto recorder = std::make_shared<Recorder>();
//   TrainerOptions options = QuietTrainer();
//   options.callbacks = {recorder};
//   ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10), Val()));
//   recorder->losses;                              // of all steps

#ifndef TESTS_TROUPE_TRAINER_TASK_H_
#define TESTS_TROUPE_TRAINER_TASK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "data/registry.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "troupe/trainer.h"

namespace troupe {

inline constexpr std::int64_t kTrain = 200, kTest = 50;
inline constexpr char kModelFile[] = "/model.safetensors";
inline constexpr char kStatesFile[] = "/optimizer.safetensors";

inline data::DataSplits Digits() {
  data::DatasetOptions options;
  options.train_count = kTrain;
  options.test_count = kTest;
  return data::OpenDataset(options).value();
}

inline Task DigitsTask() {
  Task task;
  task.model = [] { return nn::MakeMlp({784, 12, 10}, {}); };
  task.loss = nn::ops::CrossEntropyLoss();
  task.optimizer = nn::SgdOptions{/*lr=*/0.05, /*momentum=*/0.9};
  return task;
}

inline FitData Train(std::int64_t batch_size) {
  return {Digits().train, batch_size, /*shuffle=*/true};
}
inline FitData Val() { return {Digits().test}; }

// Returns options that log nothing.
inline TrainerOptions QuietTrainer() {
  TrainerOptions options;
  options.logger = nullptr;
  options.seed = 3;
  return options;
}

// A callback that keeps all reports.
struct Recorder : Callback {
  void OnFitStart(Trainer&) override { ++starts; }
  void OnTrainBatchEnd(Trainer& trainer, const StepReport& step) override {
    EXPECT_EQ(trainer.global_step(), step.step);
    steps.push_back(step.step);
    losses.push_back(step.loss);
  }
  void OnTrainEpochEnd(Trainer& trainer) override {
    EXPECT_EQ(trainer.current_epoch(),
              static_cast<std::int64_t>(epoch_ends.size()));
    epoch_ends.push_back(trainer.global_step());
  }
  void OnValidationEnd(Trainer&, const EvaluationReport& report) override {
    evaluated.push_back(report.step);
    val_losses.push_back(report.loss);
  }
  void OnSaveCheckpoint(Trainer&, std::int64_t step,
                        const std::string&) override {
    saved.push_back(step);
  }
  void OnFitEnd(Trainer&) override { ++ends; }

  int starts = 0, ends = 0;
  std::vector<std::int64_t> steps, evaluated, saved, epoch_ends;
  std::vector<double> losses, val_losses;
};

inline void ExpectOk(const absl::Status& status) {
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace troupe

#endif  // TESTS_TROUPE_TRAINER_TASK_H_
