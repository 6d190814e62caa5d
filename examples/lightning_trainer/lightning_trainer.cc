// An autoencoder that a Trainer trains, in the shape of PyTorch Lightning's
// first example: the model has a training step of its own, and callbacks watch
// the run, end it and keep its best checkpoint, which is tested at the end.
// lightning_trainer.py is the same with Lightning, with 74 lines, blank lines
// and comments aside.
//
//   bazel run //examples/lightning_trainer

#include <cstdio>
#include <filesystem>
#include <memory>

#include "data/registry.h"
#include "troupe/trainer.h"
#include "troupe/troupe.h"

using namespace troupe;

struct Autoencoder : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 784, 64);
  nn::Linear& code = Add<nn::Linear>("code", 64, 8);
  nn::Linear& back = Add<nn::Linear>("back", 8, 64);
  nn::Linear& last = Add<nn::Linear>("last", 64, 784);
  Var Forward(Var x) override { return code(first(x).Relu()); }
  Var TrainingStep(nn::Context& ctx, const data::Batch& batch) {
    Var x = Var(ctx, batch.inputs).Flatten();
    return nn::MeanSquaredError(last(back(Forward(x)).Relu()), x);
  }
};

struct PrintEpochs : Callback {
  void OnTrainEpochEnd(Trainer& trainer) override {
    std::printf("epoch %d: loss %.3f\n",
                static_cast<int>(trainer.current_epoch()),
                trainer.callback_metrics().at("train_loss"));
  }
};

int main() {
  data::DatasetOptions glyphs;
  glyphs.kind = "glyphs";
  const data::DataSplits digits = data::OpenDataset(glyphs).value();
  Task task;
  task.model = [] { return std::make_unique<Autoencoder>(); };
  task.training_step = &Autoencoder::TrainingStep;
  task.optimizer = AdamOptions{/*lr=*/2e-3};
  auto best = std::make_shared<ModelCheckpoint>("lightning_trainer", "val_loss",
                                                /*save_top_k=*/2);
  TrainerOptions options;
  options.devices = 2;
  options.strategy = "ddp";
  options.max_epochs = 4;
  options.accumulate_grad_batches = 2;
  options.gradient_clip_val = 1;
  options.val_check_interval = 0.5;
  options.callbacks = {best, std::make_shared<EarlyStopping>("val_loss"),
                       std::make_shared<LearningRateMonitor>(),
                       std::make_shared<PrintEpochs>()};
  Trainer trainer(options);
  const absl::Status status = trainer.Fit(
      task, {digits.train, /*batch_size=*/32, /*shuffle=*/true}, {digits.test});
  if (!status.ok()) return ExitCode(status);
  const auto tested = trainer.Test(task, {digits.test, /*batch_size=*/32});
  if (!tested.ok()) return ExitCode(tested.status());
  if (!trainer.is_global_zero()) return 0;
  std::printf("best: %s with val_loss %.3f\n", best->best_model_path().c_str(),
              best->best_model_score());
  std::printf("test_loss of it: %.3f\n", tested->at("test_loss"));
  std::filesystem::remove_all("lightning_trainer");
  return best->best_model_score() < 0.7 ? 0 : 1;
}
