// Trainer::Predict() on emulated GPUs: each replica has one of its own.

#include <cstddef>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"
#include "tests/troupe/device_ranks.h"
#include "tests/troupe/trainer_task.h"
#include "troupe/trainer.h"

namespace troupe {
namespace {

TEST(DevicePredictTest, GpusPredictWhatCpusDo) {
  const nn::cuda::EmulatedWorld world(GpusOfThreads(2));
  TrainerOptions options = QuietTrainer();
  options.max_steps = 2;
  options.callbacks = {std::make_shared<ModelCheckpoint>(base::FreshPath())};
  ExpectOk(Trainer(options).Fit(DigitsTask(), Train(10)));
  const auto predict = [&] {
    const auto predicted = Trainer(options).Predict(
        DigitsTask(), {Digits().test, /*batch_size=*/8});
    EXPECT_TRUE(predicted.ok()) << predicted.status();
    const nn::Tensor all = predicted->InOrder().value();
    const auto span = all.span<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  const std::vector<float> cpu = predict();
  ASSERT_EQ(cpu.size(), static_cast<std::size_t>(kTest * 10));
  options.accelerator = "gpu";
  for (const char* strategy : {"ddp", "pipeline:1f1b"}) {
    options.strategy = strategy;
    options.devices = 2;
    const std::vector<float> gpu = predict();
    ASSERT_EQ(gpu.size(), cpu.size());
    for (std::size_t i = 0; i < cpu.size(); ++i) {
      ASSERT_NEAR(gpu[i], cpu[i], 1e-5) << i << ", " << strategy;
    }
  }
  // There is no third one.
  options.strategy = "ddp";
  options.devices = 3;
  const auto refused =
      Trainer(options).Predict(DigitsTask(), {Digits().test, /*batch_size=*/8});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace troupe
