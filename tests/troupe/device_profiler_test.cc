// Profiles of ranks on devices with queues: the rank waits for each operator,
// so that its time is that of the device, and no bit changes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_error.h"
#include "gtest/gtest.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"
#include "tests/troupe/device_ranks.h"
#include "tests/troupe/digits_loop.h"
#include "troupe/profiler.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using nn::cuda::EmulatedWorld;

struct Layers : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 3, 5);
  nn::Linear& second = Add<nn::Linear>("second", 5, 2);
  Var Forward(Var x) override { return second(first(x).Relu()); }
};

// Results of three steps of a rank, and of their profile.
struct Result {
  std::vector<float> weights;
  std::int64_t linears = 0;  // calls of LinearForward
  std::string in_backward;   // module of the last weight gradient
};

Result TrainedOn(const SpawnOptions& options, bool profiled) {
  Result result;
  const absl::Status status = Spawn(
      [&](Rank& rank) {
        auto model = rank.Make<Layers>();
        Sgd sgd(model, {/*lr=*/0.1});
        std::optional<Profiler> profiler;
        if (profiled) profiler.emplace(rank);
        for (int i = 0; i < 3; ++i) {
          sgd.ZeroGrad();
          nn::MeanSquaredError(model(rank.Randn({4, 3})), rank.Zeros({4, 2}))
              .Backward();
          sgd.Step();
        }
        result.weights = ValuesOn(rank, model->first.weight().value);
        if (!profiled) return;
        profiler->Stop();
        TableOptions by_module;
        by_module.by_module = true;
        for (const OperatorTime& op : profiler->KeyAverages(by_module)) {
          EXPECT_GT(op.self_ms, 0) << op.name;
          if (op.name == "LinearForward") result.linears += op.calls;
        }
        for (const OpEvent& op : profiler->profile().ops) {
          if (std::string(op.name) != "LinearBackwardWeight") continue;
          result.in_backward = profiler->profile().modules[op.module];
        }
      },
      options);
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

void ExpectAProfileWithoutAnEffect(const SpawnOptions& options) {
  const Result profiled = TrainedOn(options, /*profiled=*/true);
  EXPECT_EQ(profiled.weights, TrainedOn(options, /*profiled=*/false).weights);
  EXPECT_EQ(profiled.linears, 6);
  EXPECT_EQ(profiled.in_backward, "first");
}

TEST(DeviceProfilerTest, OnAQueuedDevice) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    ExpectAProfileWithoutAnEffect(QueuedRanks(1, seed));
  }
}

// A rank that throws in the block of a profile waits for no device any more.
TEST(DeviceProfilerTest, AnExceptionStaysTheError) {
  const absl::Status status = Spawn(
      [](Rank& rank) {
        Profiler profiler(rank);
        RecordFunction part(rank, "part");
        nn::Sum(rank.Ones({4}));
        throw base::StatusError(absl::DataLossError("the cause"));
      },
      QueuedRanks(1, /*seed=*/3));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(status.message().find("the cause"), std::string::npos) << status;
}

TEST(DeviceProfilerTest, OnAnEmulatedGpu) {
  const EmulatedWorld world(GpusOfThreads(1));
  ExpectAProfileWithoutAnEffect(GpuRanks(1, "cuda"));
}

}  // namespace
}  // namespace troupe
