// DataParallel on devices with queues: queued ones, and emulated GPUs.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/dropout.h"
#include "nn/modules/linear.h"
#include "tests/actors/emulated_job.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"
#include "tests/troupe/device_ranks.h"
#include "tests/troupe/digits_loop.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using nn::cuda::EmulatedWorld;

// More of each: TROUPE_SIM_TIMES.
constexpr int kReplicaSeeds = 20;
constexpr int kReplicaGpuSeeds = 8;

struct Divided : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 6, 8);
  nn::BatchNorm1d& norm = Add<nn::BatchNorm1d>("norm", 8);
  nn::Dropout& dropout = Add<nn::Dropout>("dropout", 0.25);
  nn::Linear& second = Add<nn::Linear>("second", 8, 3);
  Var Forward(Var x) override { return second(dropout(norm(first(x)).Relu())); }
};

// Trains on batches of which the devices have unequal parts, or none, and
// returns outputs, parameters and buffers.
Program Training(std::vector<float>* values) {
  return [values](Rank& rank) {
    std::vector<float> all;
    const auto add = [&](const Tensor& tensor) {
      if (tensor.dtype() != DType::kF32) return;
      const std::vector<float> own = ValuesOn(rank, tensor);
      all.insert(all.end(), own.begin(), own.end());
    };
    const DataParallel model(rank, [] { return std::make_unique<Divided>(); });
    Sgd sgd(model, {/*lr=*/0.1, /*momentum=*/0.9});
    for (const std::int64_t samples : {11, 4, 8}) {
      sgd.ZeroGrad();
      const Var output = model(rank.Randn({samples, 6}));
      add(output.tensor());
      nn::MeanSquaredError(output, rank.Randn({samples, 3})).Backward();
      sgd.Step();
    }
    {
      const auto no_grad = rank.NoGrad();
      const auto evaluating = rank.Evaluating();
      add(model(rank.Randn({7, 6})).tensor());
    }
    for (const nn::Parameter* parameter : model.Parameters()) {
      add(parameter->value);
    }
    for (const nn::Buffer* buffer : model.module().Buffers()) {
      add(buffer->value);
    }
    *values = all;
  };
}

SpawnOptions OnDevices(SpawnOptions options, int devices) {
  options.devices = devices;
  return options;
}

TEST(DeviceDataParallelTest, QueuedDevicesHaveTheBitsOfCpus) {
  for (const int devices : {2, 3}) {
    std::vector<float> cpu, threads;
    EXPECT_EQ(Spawn(Training(&cpu), OnDevices(PlainRanks(1), devices)),
              absl::OkStatus());
    ASSERT_FALSE(cpu.empty());
    EXPECT_EQ(Spawn(Training(&threads),
                    OnDevices(QueuedRanks(1, /*seed=*/1), devices)),
              absl::OkStatus());
    EXPECT_EQ(threads, cpu) << devices;
    for (const std::uint64_t seed : Seeds(kReplicaSeeds)) {
      std::vector<float> queued;
      const SimulatedRun run = Simulate(
          Training(&queued), OnDevices(QueuedRanks(1, seed), devices), {seed});
      ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
      ASSERT_EQ(queued, cpu) << devices << ReplayCommand(seed);
    }
  }
}

TEST(DeviceDataParallelTest, GpusHaveTheSameBitsUnderEachSeed) {
  for (const std::string device : {"cuda", "cuda:0"}) {
    std::vector<float> first;
    for (const std::uint64_t seed : Seeds(kReplicaGpuSeeds)) {
      const EmulatedWorld world(actors::EmulatedGpus(seed, 3));
      std::vector<float> values;
      const SimulatedRun run = Simulate(
          Training(&values), OnDevices(GpuRanks(1, device), 3), {seed});
      ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
      ASSERT_FALSE(values.empty());
      if (first.empty()) first = values;
      ASSERT_EQ(values, first) << device << ReplayCommand(seed);
    }
    const EmulatedWorld world(GpusOfThreads(3));
    std::vector<float> threads;
    EXPECT_EQ(Spawn(Training(&threads), OnDevices(GpuRanks(1, device), 3)),
              absl::OkStatus());
    EXPECT_EQ(threads, first) << device;
  }
}

}  // namespace
}  // namespace troupe
