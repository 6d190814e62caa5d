#include "troupe/trainer_callbacks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "actors/checkpoint/checkpoint.h"
#include "base/files/file_system.h"
#include "base/status_error.h"
#include "data/subset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"
#include "tests/base/fresh_path.h"
#include "tests/troupe/trainer_task.h"

namespace troupe {
namespace {

using actors::FileBytes;
using testing::ElementsAre;
using testing::HasSubstr;

// --- Callbacks ---

TEST(TrainerCallbacksTest, ACallbackOfOnesOwnMayStop) {
  struct StopsAt : Recorder {
    void OnTrainBatchEnd(Trainer& trainer, const StepReport& step) override {
      Recorder::OnTrainBatchEnd(trainer, step);
      if (step.step == 5) trainer.Stop();
    }
  };
  const auto stops = std::make_shared<StopsAt>();
  TrainerOptions options = QuietTrainer();
  options.callbacks = {stops};  // 1000 epochs
  Trainer trainer(options);
  ExpectOk(trainer.Fit(DigitsTask(), Train(10)));
  EXPECT_TRUE(trainer.should_stop());
  EXPECT_TRUE(trainer.result().stopped);
  ASSERT_GE(stops->steps.size(), 5u);
  std::int64_t number = 0;
  for (const std::int64_t step : stops->steps) ASSERT_EQ(step, ++number);
  EXPECT_EQ(trainer.result().steps, number);
  EXPECT_EQ(stops->starts, 1);
  EXPECT_EQ(stops->ends, 1);
}

TEST(TrainerCallbacksTest, ACallbackThatThrowsEndsTheRun) {
  struct Throws : Callback {
    void OnTrainBatchEnd(Trainer&, const StepReport&) override {
      throw base::StatusError(absl::DataLossError("my log is full"));
    }
  };
  TrainerOptions options = QuietTrainer();
  options.callbacks = {std::make_shared<Throws>()};
  EXPECT_THAT(
      std::string(Trainer(options).Fit(DigitsTask(), Train(10)).message()),
      HasSubstr("my log is full"));
}

// A rate of 0 improves nothing: the first evaluation is the best.
TEST(TrainerCallbacksTest, EarlyStoppingStops) {
  Task task = DigitsTask();
  task.optimizer = nn::SgdOptions{/*lr=*/0};
  const auto recorder = std::make_shared<Recorder>();
  TrainerOptions options = QuietTrainer();
  options.val_check_interval = 4;
  options.callbacks = {std::make_shared<EarlyStopping>("val_loss", 2),
                       recorder};
  Trainer trainer(options);
  ExpectOk(trainer.Fit(task, Train(10), Val()));
  EXPECT_THAT(recorder->evaluated, ElementsAre(4, 8, 12));
  EXPECT_EQ(trainer.result().steps, 12);
  EXPECT_THAT(trainer.result().converged, HasSubstr("has not improved in 2"));
}

std::vector<std::string> NamesIn(const std::string& folder) {
  base::PosixFileSystem files;
  const auto paths = actors::ListCheckpoints(files, folder).value();
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    names.push_back(path.substr(folder.size() + 1));
  }
  return names;
}

TEST(TrainerCallbacksTest, ModelCheckpointKeepsTheBest) {
  const std::string folder = base::FreshPath();
  const auto best = std::make_shared<ModelCheckpoint>(folder, "val_loss",
                                                      /*save_top_k=*/2);
  const auto recorder = std::make_shared<Recorder>();
  TrainerOptions options = QuietTrainer();
  options.max_steps = 15;
  options.val_check_interval = 3;
  options.callbacks = {best, recorder};
  // Learns, then destroys what it has learnt.
  Task task = DigitsTask();
  nn::SgdOptions sgd{/*lr=*/0.05};
  sgd.common.schedule = nn::LrSchedule::Exponential(1.9);
  task.optimizer = sgd;
  ExpectOk(Trainer(options).Fit(task, Train(10), Val()));
  EXPECT_THAT(recorder->saved, ElementsAre(3, 6, 9, 12, 15));
  std::vector<std::size_t> order = {0, 1, 2, 3, 4};
  const auto& losses = recorder->val_losses;
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return losses[a] < losses[b]; });
  ASSERT_NE(order[0], 4u) << "the last one is the best";
  ASSERT_NE(order[1], 4u) << "the last one is the second best";
  const auto name = [&](std::size_t i) {
    return absl::StrFormat("step-%08d", recorder->saved[i]);
  };
  std::vector<std::string> want = {name(order[0]), name(order[1]), name(4)};
  std::sort(want.begin(), want.end());
  EXPECT_EQ(NamesIn(folder), want);
  EXPECT_EQ(best->best_model_path(), folder + "/" + name(order[0]));
  EXPECT_EQ(best->best_model_score(), losses[order[0]]);
  EXPECT_EQ(best->last_model_path(), folder + "/" + name(4));
  EXPECT_EQ(best->best_k_models().size(), 2u);
  base::PosixFileSystem files;
  EXPECT_EQ(actors::FindBestCheckpoint(files, folder),
            recorder->saved[order[0]]);
}

TEST(TrainerCallbacksTest, WithoutAMonitorTheNewestAreKept) {
  const std::string folder = base::FreshPath();
  TrainerOptions options = QuietTrainer();
  options.default_root_dir = folder;
  options.max_steps = 10;
  options.callbacks = {std::make_shared<ModelCheckpoint>(
      "", "", /*save_top_k=*/2, /*every_n_train_steps=*/4)};
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10)));
  EXPECT_THAT(NamesIn(folder + "/checkpoints"),
              ElementsAre("step-00000008", "step-00000010"));
  // A run from the beginning would mix with it.
  EXPECT_THAT(
      std::string(Trainer(options).Fit(DigitsTask(), Train(10)).message()),
      HasSubstr("go on from there with ckpt_path = \"last\""));
}

TEST(TrainerCallbacksTest, GoesOnFromACheckpointWithTheSameBits) {
  const std::string folder = base::FreshPath();
  const auto recorder = std::make_shared<Recorder>();
  TrainerOptions options = QuietTrainer();
  options.devices = 2;
  options.max_steps = 12;
  options.callbacks = {recorder, std::make_shared<ModelCheckpoint>(
                                     folder, "val_loss", /*save_top_k=*/-1)};
  options.val_check_interval = 6;
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10), Val()));
  const std::string whole = FileBytes(folder + "/step-00000012" + kModelFile);
  const std::vector<double> losses = recorder->losses;
  for (const std::string& from :
       {folder + "/step-00000006", std::string("last")}) {
    if (from == "last") {
      base::PosixFileSystem files;
      ExpectOk(files.RemoveAll(folder + "/step-00000012"));
    }
    *recorder = Recorder();
    options.ckpt_path = from;
    Trainer trainer(options);
    ExpectOk(trainer.Fit(DigitsTask(), Train(10), Val()));
    EXPECT_EQ(trainer.info().first_step, 6);
    EXPECT_EQ(recorder->losses,
              std::vector<double>(losses.begin() + 6, losses.end()));
    EXPECT_EQ(FileBytes(folder + "/step-00000012" + kModelFile), whole) << from;
  }
}

TEST(TrainerCallbacksTest, AFastDevRunSavesNothing) {
  const std::string folder = base::FreshPath();
  const auto recorder = std::make_shared<Recorder>();
  TrainerOptions options = QuietTrainer();
  options.fast_dev_run = true;
  options.callbacks = {recorder, std::make_shared<EarlyStopping>("val_loss"),
                       std::make_shared<ModelCheckpoint>(folder)};
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10), Val()));
  EXPECT_THAT(recorder->steps, ElementsAre(1));
  EXPECT_THAT(recorder->evaluated, ElementsAre(1));
  EXPECT_FALSE(base::PosixFileSystem().Exists(folder));
}

// --- Evaluations of checkpoints ---

struct TestRecorder : Recorder {
  void OnTestEnd(Trainer&, const EvaluationReport& report) override {
    tests.push_back(report.loss);
  }

  std::vector<double> tests;
};

// The numbers are those of the run's own evaluations, on any mesh.
TEST(TrainerCallbacksTest, EvaluatesTheBestAndTheNewest) {
  const std::string folder = base::FreshPath();
  const auto recorder = std::make_shared<TestRecorder>();
  TrainerOptions options = QuietTrainer();
  options.devices = 2;
  options.max_steps = 8;
  options.val_check_interval = 2;
  options.callbacks = {recorder, std::make_shared<ModelCheckpoint>(
                                     folder, "val_loss", /*save_top_k=*/-1)};
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10), Val()));
  const std::vector<double> losses = recorder->val_losses;
  ASSERT_GE(losses.size(), 4u);
  const FitData test = {Digits().test, /*batch_size=*/10};

  Trainer trainer(options);
  auto metrics = trainer.Test(DigitsTask(), test);
  ExpectOk(metrics.status());
  EXPECT_EQ(metrics->at("test_loss"),
            *std::min_element(losses.begin(), losses.end()));
  EXPECT_EQ(metrics->size(), 2u);  // and the accuracy
  EXPECT_THAT(recorder->tests, ElementsAre(metrics->at("test_loss")));
  EXPECT_EQ(trainer.callback_metrics().at("test_loss"),
            metrics->at("test_loss"));

  metrics = trainer.Validate(DigitsTask(), test, "last");
  ExpectOk(metrics.status());
  EXPECT_EQ(metrics->at("val_loss"), losses.back());
  EXPECT_EQ(recorder->val_losses.size(), losses.size() + 1);
  EXPECT_EQ(trainer.global_step(), 8);

  options.devices = 1;
  metrics =
      Trainer(options).Validate(DigitsTask(), test, folder + "/step-00000004");
  ExpectOk(metrics.status());
  EXPECT_NEAR(metrics->at("val_loss"), losses[1], 1e-6);
}

// Each limit is for its own evaluation, and a run without training is limited
// by the batches of all replicas.
TEST(TrainerCallbacksTest, LimitsTheBatchesOfAnEvaluation) {
  const std::string folder = base::FreshPath();
  TrainerOptions options = QuietTrainer();
  options.devices = 2;
  options.max_steps = 1;
  options.callbacks = {std::make_shared<ModelCheckpoint>(folder)};
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10)));
  const data::DatasetPtr all = Digits().test;
  const auto tested = [&](const data::DatasetPtr& samples) {
    auto metrics =
        Trainer(options).Test(DigitsTask(), {samples, /*batch_size=*/10});
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    return metrics->at("test_loss");
  };
  const auto validated = [&] {
    auto metrics =
        Trainer(options).Validate(DigitsTask(), {all, /*batch_size=*/10});
    EXPECT_TRUE(metrics.ok()) << metrics.status();
    return metrics->at("val_loss");
  };
  const double whole = tested(all);
  // A batch of both ranks.
  const double batch = tested(data::MakeSubset(all, 0, 20).value());
  EXPECT_NE(batch, whole);
  options.limit_val_batches = 1;
  EXPECT_EQ(validated(), batch);
  EXPECT_EQ(tested(all), whole);
  options.limit_val_batches = 1.0;
  options.limit_test_batches = 0.5;  // one of three batches
  EXPECT_EQ(tested(all), batch);
  EXPECT_EQ(validated(), whole);
  options.limit_test_batches = 2;
  EXPECT_EQ(tested(all), tested(data::MakeSubset(all, 0, 40).value()));
  options.fast_dev_run = 1;
  EXPECT_EQ(tested(all), batch);
  EXPECT_EQ(validated(), batch);
}

TEST(TrainerCallbacksTest, EvaluationsNeedACheckpointAndSamples) {
  TrainerOptions options = QuietTrainer();
  const FitData test = {Digits().test, /*batch_size=*/10};
  const auto error = [&](const FitData& data, const std::string& path) {
    return std::string(
        Trainer(options).Test(DigitsTask(), data, path).status().message());
  };
  EXPECT_THAT(error(test, ""), HasSubstr("have no ModelCheckpoint"));
  EXPECT_THAT(error(test, "/nowhere"), HasSubstr("/nowhere"));
  options.callbacks = {nullptr};
  EXPECT_THAT(error(test, "last"), HasSubstr("has a null pointer"));
  const std::string folder = base::FreshPath();
  options.callbacks = {std::make_shared<ModelCheckpoint>(folder)};
  options.max_steps = 1;
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10)));
  EXPECT_THAT(error({}, "last"), HasSubstr("FitData.batch_size = 0"));
  EXPECT_THAT(error({nullptr, 10}, "last"),
              HasSubstr("has no samples to evaluate"));
  options.limit_test_batches = 0;
  EXPECT_THAT(error(test, "last"),
              HasSubstr("TrainerOptions.limit_test_batches = 0 leaves nothing "
                        "to evaluate"));
  options.limit_test_batches = 1.5;
  EXPECT_THAT(error(test, "last"),
              HasSubstr("TrainerOptions.limit_test_batches = 1.5: give a "
                        "number of batches"));
}

}  // namespace
}  // namespace troupe
