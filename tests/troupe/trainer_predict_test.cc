// Trainer::Predict(): each sample once, in the bits of an InferenceSession.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/load_model.h"
#include "actors/inference/predict.h"
#include "base/files/file_system.h"
#include "base/status_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/net.h"
#include "nn/ops/loss.h"
#include "tests/base/fresh_path.h"
#include "tests/troupe/trainer_task.h"
#include "troupe/trainer/trainer_job.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kBatch = 8;  // samples; there are 50

FitData Samples() { return {Digits().test, kBatch}; }

// Returns options with a checkpoint of a short run with them.
TrainerOptions Trained(const Task& task, TrainerOptions options) {
  options.max_steps = 3;
  options.callbacks = {std::make_shared<ModelCheckpoint>(base::FreshPath())};
  ExpectOk(Trainer(options).Fit(task, Train(10)));
  return options;
}

std::vector<float> ValuesOf(const nn::Tensor& tensor) {
  EXPECT_EQ(tensor.dtype(), nn::DType::kF32);
  const auto span = tensor.span<float>();
  return {span.begin(), span.end()};
}

// Returns the samples of a batch of replica `replica` of `replicas`.
std::vector<std::int64_t> SamplesOf(std::int64_t batch, int replica,
                                    int replicas) {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = batch * kBatch; i < (batch + 1) * kBatch; ++i) {
    const std::int64_t sample = replica + i * replicas;
    if (sample < kTest) samples.push_back(sample);
  }
  return samples;
}

TEST(TrainerPredictTest, HasTheBitsOfASession) {
  const TrainerOptions trained = Trained(DigitsTask(), QuietTrainer());
  base::PosixFileSystem files;
  const auto* const saving =
      dynamic_cast<const ModelCheckpoint*>(trained.callbacks[0].get());
  const auto session = actors::InferenceSession::Open(
      TrainerJob(trained, DigitsTask(), Train(10), {}).value(),
      actors::OpenCheckpoint(files, saving->last_model_path()).value());
  ASSERT_TRUE(session.ok()) << session.status();
  for (const int devices : {1, 2, 3}) {
    TrainerOptions options = trained;
    options.devices = devices;
    Trainer trainer(options);
    const auto predicted = trainer.Predict(DigitsTask(), Samples());
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    EXPECT_EQ(trainer.global_step(), 3);
    std::vector<float> in_order(kTest * 10);
    for (int replica = 0; replica < devices; ++replica) {
      std::int64_t batch = 0;
      for (const nn::Tensor& output : predicted->OfReplica(replica)) {
        const auto samples = SamplesOf(batch++, replica, devices);
        const std::vector<float> values = ValuesOf(output);
        EXPECT_EQ(
            values,
            ValuesOf(
                actors::Predict(**session, *Digits().test, samples).value()))
            << "batch " << batch << " of replica " << replica;
        for (std::size_t row = 0; row < samples.size(); ++row) {
          std::copy_n(&values[row * 10], 10, &in_order[samples[row] * 10]);
        }
      }
      EXPECT_THAT(SamplesOf(batch, replica, devices), IsEmpty());
      EXPECT_THAT(SamplesOf(batch - 1, replica, devices), Not(IsEmpty()));
    }
    const auto all = predicted->InOrder();
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_EQ(all->shape(), nn::Shape({kTest, 10}));
    EXPECT_EQ(ValuesOf(*all), in_order) << devices;
  }
}

TEST(TrainerPredictTest, APipelineHasTheBitsOfOneRank) {
  TrainerOptions options = Trained(DigitsTask(), QuietTrainer());
  const auto outputs = [&] {
    const auto predicted = Trainer(options).Predict(DigitsTask(), Samples());
    EXPECT_TRUE(predicted.ok()) << predicted.status();
    return ValuesOf(predicted->InOrder().value());
  };
  const std::vector<float> whole = outputs();
  options.devices = 2;
  options.strategy = "pipeline:1f1b";
  EXPECT_EQ(outputs(), whole);
  options.devices = 4;
  options.pipeline_stages = 2;
  const auto predicted = Trainer(options).Predict(DigitsTask(), Samples());
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_EQ(predicted->OfReplica(0).size(), 4u);  // 25 samples of 50
  EXPECT_EQ(predicted->OfReplica(1).size(), 4u);
  EXPECT_EQ(ValuesOf(predicted->InOrder().value()).size(), whole.size());
}

TEST(TrainerPredictTest, HalfPrecisionStaysHalf) {
  TrainerOptions options = QuietTrainer();
  options.precision = "bf16-mixed";
  const auto predicted =
      Trainer(Trained(DigitsTask(), options)).Predict(DigitsTask(), Samples());
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_EQ(predicted->InOrder()->dtype(), nn::DType::kBF16);
}

// --- Callbacks and limits ---

struct Listener : Callback {
  void OnPredictStart(Trainer& trainer) override {
    calls.push_back(absl::StrCat("start at ", trainer.global_step()));
  }
  void OnPredictBatchEnd(Trainer&, const PredictedBatch& batch) override {
    calls.push_back(absl::StrCat(batch.batch_idx, " of ", batch.replica, ": ",
                                 batch.samples.size(), " ",
                                 batch.output.shape().ToString()));
  }
  void OnPredictEnd(Trainer&) override { calls.push_back("end"); }

  std::vector<std::string> calls;
};

TEST(TrainerPredictTest, CallbacksSeeEachBatch) {
  TrainerOptions options = Trained(DigitsTask(), QuietTrainer());
  const auto listener = std::make_shared<Listener>();
  options.callbacks.push_back(listener);
  options.devices = 2;
  FitData data = {Digits().test, /*batch_size=*/20};
  const auto predicted = Trainer(options).Predict(DigitsTask(), data, "last",
                                                  /*return_predictions=*/false);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_THAT(predicted->batches, IsEmpty());
  EXPECT_THAT(std::string(predicted->InOrder().status().message()),
              HasSubstr("return_predictions"));
  EXPECT_THAT(
      listener->calls,
      ElementsAre("start at 3", "0 of 0: 20 [20, 10]", "0 of 1: 20 [20, 10]",
                  "1 of 0: 5 [5, 10]", "1 of 1: 5 [5, 10]", "end"));
}

TEST(TrainerPredictTest, LimitsAreCountsOrFractionsOfAReplica) {
  TrainerOptions options = Trained(DigitsTask(), QuietTrainer());
  options.devices = 2;
  const auto sizes = [&] {
    const auto predicted = Trainer(options).Predict(DigitsTask(), Samples());
    EXPECT_TRUE(predicted.ok()) << predicted.status();
    const auto all = predicted->InOrder();
    return std::vector<std::int64_t>{
        static_cast<std::int64_t>(predicted->OfReplica(0).size()),
        static_cast<std::int64_t>(predicted->OfReplica(1).size()),
        all.ok() ? all->shape()[0] : 0};
  };
  EXPECT_THAT(sizes(), ElementsAre(4, 4, 50));
  options.limit_predict_batches = 0.5;
  EXPECT_THAT(sizes(), ElementsAre(2, 2, 32));
  options.limit_predict_batches = 3;
  EXPECT_THAT(sizes(), ElementsAre(3, 3, 48));
  options.limit_val_batches = 0;  // has no effect here
  options.fast_dev_run = 1;
  EXPECT_THAT(sizes(), ElementsAre(1, 1, 16));
  options.fast_dev_run = 0;
  options.limit_predict_batches = 0;
  EXPECT_THAT(sizes(), ElementsAre(0, 0, 0));
}

// --- A step of the task's own ---

struct Autoencoder : nn::Net {
  nn::Linear& encoder = Add<nn::Linear>("encoder", 784, 8);
  nn::Linear& decoder = Add<nn::Linear>("decoder", 8, 784);
  nn::Var Forward(nn::Var x) override { return encoder(x.Flatten()); }
  nn::Var PredictStep(nn::Var x) { return decoder(Forward(x).Relu()); }
  nn::Var TrainingStep(nn::Context& ctx, const data::Batch& batch) {
    const nn::Var x(ctx, batch.inputs);
    return nn::MeanSquaredError(PredictStep(x), x.Flatten());
  }
};

struct Other : nn::Net {
  nn::Var Forward(nn::Var x) override { return x; }
  nn::Var PredictStep(nn::Var x) { return x; }
};

TEST(TrainerPredictTest, AStepTakesThePlaceOfTheForward) {
  Task task;
  task.model = [] { return std::make_unique<Autoencoder>(); };
  task.training_step = &Autoencoder::TrainingStep;
  task.optimizer = nn::SgdOptions{/*lr=*/0.01};
  TrainerOptions options = Trained(task, QuietTrainer());
  options.devices = 2;
  const auto predict = [&] {
    return Trainer(options).Predict(task, Samples());
  };
  const auto codes = predict();
  ASSERT_TRUE(codes.ok()) << codes.status();
  EXPECT_EQ(codes->InOrder()->shape(), nn::Shape({kTest, 8}));
  task.predict_step = &Autoencoder::PredictStep;
  const auto images = predict();
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ(images->InOrder()->shape(), nn::Shape({kTest, 784}));
  task.predict_step = [](nn::Module& model, nn::Var x) { return model(x) * 2; };
  const auto twice = predict();
  ASSERT_TRUE(twice.ok()) << twice.status();
  std::vector<float> doubled = ValuesOf(*codes->InOrder());
  for (float& value : doubled) value *= 2;
  EXPECT_EQ(ValuesOf(*twice->InOrder()), doubled);

  task.predict_step = &Other::PredictStep;
  EXPECT_THAT(std::string(predict().status().message()),
              HasSubstr("Task.predict_step is a member of another class"));
  options.strategy = "pipeline:1f1b";
  EXPECT_THAT(
      std::string(
          Trainer(options).Predict(DigitsTask(), Samples()).status().message()),
      HasSubstr("of another model"));
  Task digits = DigitsTask();
  digits.predict_step = task.predict_step;
  EXPECT_THAT(
      std::string(
          Trainer(options).Predict(digits, Samples()).status().message()),
      HasSubstr("TrainerOptions.strategy = \"pipeline:1f1b\" gives each rank "
                "a part of the model"));
}

// A sum over a batch is no row for each sample.
TEST(TrainerPredictTest, OutputsWithoutRowsHaveNoOrder) {
  Task task = DigitsTask();
  const TrainerOptions options = Trained(task, QuietTrainer());
  task.predict_step = [](nn::Module& model, nn::Var x) {
    return nn::Sum(model(x));
  };
  const auto predicted = Trainer(options).Predict(task, Samples());
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_EQ(predicted->OfReplica(0).size(), 7u);
  EXPECT_THAT(std::string(predicted->InOrder().status().message()),
              HasSubstr("batch 0 of replica 0 has 8 samples and the output "));
}

// --- Processes and mistakes ---

TEST(TrainerPredictTest, AProcessHasItsOwnReplicas) {
  TrainerOptions options = Trained(DigitsTask(), QuietTrainer());
  options.devices = 3;
  const auto whole = Trainer(options).Predict(DigitsTask(), Samples());
  ASSERT_TRUE(whole.ok()) << whole.status();
  Predictions joined;
  for (const int process : {1, 0}) {
    actors::ClusterOptions cluster;
    cluster.process = process;
    cluster.processes = 2;
    options.cluster = cluster;
    const auto own = Trainer(options).Predict(DigitsTask(), Samples());
    ASSERT_TRUE(own.ok()) << own.status();
    EXPECT_EQ(own->OfReplica(2).empty(), process == 0);
    EXPECT_EQ(own->InOrder().status().code(),
              absl::StatusCode::kFailedPrecondition);
    joined.batches.insert(joined.batches.end(), own->batches.begin(),
                          own->batches.end());
  }
  EXPECT_EQ(ValuesOf(joined.InOrder().value()),
            ValuesOf(whole->InOrder().value()));
}

TEST(TrainerPredictTest, NamesWhatIsWrong) {
  TrainerOptions options = Trained(DigitsTask(), QuietTrainer());
  const auto error = [&](const FitData& data, const std::string& path) {
    return std::string(
        Trainer(options).Predict(DigitsTask(), data, path).status().message());
  };
  EXPECT_THAT(error(Samples(), "/nowhere"), HasSubstr("/nowhere"));
  EXPECT_THAT(error({nullptr, 10}, ""), HasSubstr("has no samples"));
  EXPECT_THAT(error({Digits().test}, ""), HasSubstr("batch_size = 0"));
  options.limit_predict_batches = 1.5;
  EXPECT_THAT(error(Samples(), ""),
              HasSubstr("TrainerOptions.limit_predict_batches = 1.5: give"));
  options.limit_predict_batches = 1.0;
  struct Throws : Callback {
    void OnPredictBatchEnd(Trainer&, const PredictedBatch&) override {
      throw base::StatusError(absl::DataLossError("my disk is full"));
    }
  };
  options.callbacks.push_back(std::make_shared<Throws>());
  EXPECT_EQ(error(Samples(), ""), "my disk is full");
}

}  // namespace
}  // namespace troupe
