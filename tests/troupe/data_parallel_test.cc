#include "troupe/data_parallel.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_error.h"
#include "gtest/gtest.h"
#include "nn/modules/dropout.h"
#include "nn/modules/parameter_dtype.h"
#include "tests/base/fresh_path.h"
#include "tests/nn/testing/tensor_values.h"
#include "troupe/devices/device_exchange.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

SpawnOptions Devices(int devices) {
  SpawnOptions options;
  options.devices = devices;
  options.device = *nn::Device::Parse("reference");  // has f64
  return options;
}

void ExpectRunsOn(const Program& program, int devices) {
  const absl::Status status = Spawn(program, Devices(devices));
  EXPECT_TRUE(status.ok()) << status;
}

// Calls `forward`, if it is set, with each input.
struct Watched : nn::Net {
  explicit Watched(std::function<void(const Var& x)> f = nullptr)
      : forward(std::move(f)) {
    nn::SetParameterDType(*this, DType::kF64);
  }
  Var Forward(Var x) override {
    if (forward) forward(x);
    return last(dropout(first(x).Tanh()));
  }

  const std::function<void(const Var& x)> forward;
  // Two buckets.
  nn::Linear& first = Add<nn::Linear>("first", 6, 12000);
  nn::Dropout& dropout = Add<nn::Dropout>("dropout", 0.25);
  nn::Linear& last = Add<nn::Linear>("last", 12000, 4);
  nn::Linear& unused = Add<nn::Linear>("unused", 4, 4);
};

std::unique_ptr<Watched> MakeWatched() { return std::make_unique<Watched>(); }

Var Input(Rank& rank, std::int64_t samples) {
  return rank.Randn({samples, 6}, DType::kF64);
}

void AddValues(const Trainable& model, std::vector<double>& values) {
  for (const nn::Parameter* parameter : model.Parameters()) {
    const std::vector<double> of_one = nn::ValuesOf(parameter->value);
    values.insert(values.end(), of_one.begin(), of_one.end());
  }
}

using Training = std::function<void(Rank&, std::vector<double>&)>;

std::vector<double> ResultOn(int devices, const Training& train) {
  std::vector<double> result;
  ExpectRunsOn([&](Rank& rank) { train(rank, result); }, devices);
  return result;
}

// Fails unless a program has the numbers of one device on 2, 3 and 4, too.
void ExpectAsOnOneDevice(const Training& train) {
  const std::vector<double> want = ResultOn(1, train);
  ASSERT_FALSE(want.empty());
  for (const int devices : {2, 3, 4}) {
    EXPECT_TRUE(nn::Near(ResultOn(devices, train), want, 1e-12)) << devices;
  }
}

TEST(DataParallelTest, CutsAsTorchChunk) {
  using Rows = std::vector<std::int64_t>;
  EXPECT_EQ(ChunkRows(30, 4), (Rows{8, 8, 8, 6}));
  EXPECT_EQ(ChunkRows(5, 4), (Rows{2, 2, 1, 0}));
  EXPECT_EQ(ChunkRows(4, 4), (Rows{1, 1, 1, 1}));
  EXPECT_EQ(ChunkRows(1, 4), (Rows{1, 0, 0, 0}));
  EXPECT_EQ(ChunkRows(0, 4), (Rows{0, 0, 0, 0}));
  EXPECT_EQ(ChunkRows(7, 1), (Rows{7}));
}

TEST(DataParallelTest, DevicesGetTheirParts) {
  std::mutex mutex;
  std::multiset<std::int64_t> parts;
  const auto see = [&](const Var& x) {
    const std::lock_guard<std::mutex> lock(mutex);
    parts.insert(x.dim(0));
  };
  ExpectRunsOn(
      [&](Rank& rank) {
        EXPECT_EQ(rank.size(), 1);
        const DataParallel model(
            rank, [&] { return std::make_unique<Watched>(see); });
        EXPECT_EQ(model(Input(rank, 30)).shape(), (Shape{30, 4}));
        EXPECT_EQ(model(Input(rank, 0)).shape(), (Shape{0, 4}));
      },
      4);
  EXPECT_EQ(parts, (std::multiset<std::int64_t>{0, 6, 8, 8, 8}));
}

// Outputs have the bits of one device, with dropout, too.
TEST(DataParallelTest, DrawsForASampleWhatOneDeviceDraws) {
  const auto forward = [](Rank& rank, std::vector<double>& result) {
    const DataParallel model(rank, MakeWatched);
    const Var x = Input(rank, 30);
    result = nn::ValuesOf(model(x));
    const auto no_grad = rank.NoGrad();
    const auto evaluating = rank.Evaluating();
    const std::vector<double> evaluated = nn::ValuesOf(model(x));
    EXPECT_NE(evaluated, result);
    result.insert(result.end(), evaluated.begin(), evaluated.end());
  };
  EXPECT_EQ(ResultOn(4, forward), ResultOn(1, forward));
}

TEST(DataParallelTest, OptimizersFollowSchedulesClippingAndPatterns) {
  ExpectAsOnOneDevice([](Rank& rank, std::vector<double>& result) {
    const DataParallel model(rank, MakeWatched);
    SgdOptions options{/*lr=*/0.1, /*momentum=*/0.9};
    options.common.clip_grad_norm = 0.5;
    options.weight_decay = 0.1;
    Sgd sgd(model, options, /*only=*/{"last.*", "unused.*"});
    sgd.Schedule(LrSchedule::Step(2));
    for (const std::int64_t samples : {30, 2, 9, 5}) {
      sgd.ZeroGrad();
      nn::Sum(model(Input(rank, samples))).Backward();
      if (samples == 9) sgd.set_lr(0.01);
      sgd.Step();
    }
    AddValues(model, result);
  });
}

TEST(DataParallelTest, StepsWithoutGradientsAreRefusedAndTheLoopGoesOn) {
  ExpectAsOnOneDevice([](Rank& rank, std::vector<double>& result) {
    const DataParallel model(rank, MakeWatched);
    Sgd sgd(model, {/*lr=*/0.1});
    for (int step = 0; step < 3; ++step) {
      nn::Sum(model(Input(rank, 30))).Backward();
      sgd.ZeroGrad();
      EXPECT_EQ(Try([&] { sgd.Step(); }).code(),
                absl::StatusCode::kFailedPrecondition);
      model(Input(rank, 12));  // gets no backward
      nn::Sum(model(Input(rank, 30))).Backward();
      sgd.Step();
    }
    AddValues(model, result);
  });
}

TEST(DataParallelTest, SavedStatesReachAllDevices) {
  const std::string path = base::FreshPath();
  const auto run = [&](bool loads) {
    return [&path, loads](Rank& rank, std::vector<double>& result) {
      DataParallel model(rank, MakeWatched);
      Adam adam(model, {/*lr=*/0.01});
      std::int64_t step = 0;
      State state;
      state.Add(model).Add(adam).Add("step", step);
      if (loads) Load(state, path);
      for (; step < 4; ++step) {
        if (step == 2 && !loads) Save(state, path);
        adam.ZeroGrad();
        nn::Sum(model(Input(rank, 30))).Backward();
        adam.Step();
      }
      AddValues(model, result);
    };
  };
  const std::vector<double> whole = ResultOn(4, run(/*loads=*/false));
  EXPECT_EQ(ResultOn(4, run(/*loads=*/true)), whole);
  // The model alone, into other initial values.
  ExpectAsOnOneDevice([&](Rank& rank, std::vector<double>& result) {
    const DataParallel model(rank, MakeWatched);
    model(Input(rank, 30));
    Load(State().Add(model), path, {nullptr, nullptr, /*strict=*/false});
    result = nn::ValuesOf(model(Input(rank, 30)));
  });
}

TEST(DataParallelTest, ReplicateGivesAllDevicesWhatTheProgramHasWritten) {
  ExpectAsOnOneDevice([](Rank& rank, std::vector<double>& result) {
    const DataParallel model(rank, MakeWatched);
    const Var x = Input(rank, 30);
    model(x);
    base::OrThrow(rank.kernels().Fill(0.5, model->last.bias().value));
    model.Replicate();
    result = nn::ValuesOf(model(x));
  });
}

// A module that returns a loss for its part gives a loss for each device.
TEST(DataParallelTest, ScalarsBecomeRows) {
  struct Loss : nn::Net {
    Var Forward(Var x) override { return nn::Sum(linear(x)); }
    nn::Linear& linear = Add<nn::Linear>("linear", 2, 1);
  };
  ExpectRunsOn(
      [](Rank& rank) {
        const DataParallel model(rank, [] { return std::make_unique<Loss>(); });
        const Var losses = model(rank.Ones({5, 2}));
        EXPECT_EQ(losses.shape(), (Shape{3}));
        nn::Sum(losses).Backward();
        EXPECT_EQ(nn::ValuesOf(model->linear.weight().grad),
                  (std::vector<double>{5, 5}));
      },
      4);
}

TEST(DataParallelTest, AnErrorOfADeviceLeavesTheForward) {
  struct Picky : nn::Net {
    struct Inner : nn::Net {
      Var Forward(Var x) override {
        if (x.dim(0) == 6) {
          throw StatusError(absl::OutOfRangeError("six are too few"));
        }
        return linear(x);
      }
      nn::Linear& linear = Add<nn::Linear>("linear", 2, 1);
    };
    Var Forward(Var x) override { return inner(x); }
    Inner& inner = Add<Inner>("inner");
  };
  ExpectRunsOn(
      [](Rank& rank) {
        const DataParallel model(rank,
                                 [] { return std::make_unique<Picky>(); });
        Sgd sgd(model, {/*lr=*/0.1});
        EXPECT_EQ(Try([&] {
                    model(rank.Ones({30, 2}));
                  }),
                  absl::OutOfRangeError(
                      "device 3: in module inner: six are too few"));
        EXPECT_EQ(Try([&] {
                    model(rank.Ones({24, 2}));
                  }),
                  absl::OutOfRangeError(
                      "device 0: in module inner: six are too few"));
        nn::Sum(model(rank.Ones({20, 2}))).Backward();
        sgd.Step();
        EXPECT_EQ(Try([&] { model(rank.Ones({})); }).code(),
                  absl::StatusCode::kInvalidArgument);
      },
      4);
}

TEST(DataParallelTest, OutputsMustFit) {
  struct Wide : nn::Net {
    Var Forward(Var x) override {
      return x.dim(0) == 6 ? x : x.Slice(0, 1, /*axis=*/1);
    }
  };
  ExpectRunsOn(
      [](Rank& rank) {
        const DataParallel model(rank, [] { return std::make_unique<Wide>(); });
        EXPECT_EQ(
            Try([&] {
              model(rank.Ones({30, 2}));
            }),
            absl::InvalidArgumentError(
                "device 3 has the output f32[6, 2], where device 0 has f32[8, "
                "1]; make outputs that differ in their first axis alone, the "
                "samples"));
      },
      4);
}

class FailingNode final : public nn::Node {
 public:
  const char* name() const override { return "failing"; }
  absl::Status BackwardInputs(nn::Kernels&, const Tensor&,
                              absl::Span<const bool>,
                              absl::Span<Tensor>) override {
    return absl::DataLossError("the gradient is lost");
  }
};

struct FailsInBackward : nn::Net {
  Var Forward(Var x) override {
    const Var y = linear(x);
    if (x.dim(0) != 6) return y;
    nn::Context& ctx = x.context();
    return Var(ctx, ctx.tape()->Record(std::make_unique<FailingNode>(),
                                       {y.tensor()}, 0, y.tensor()));
  }
  nn::Linear& linear = Add<nn::Linear>("linear", 2, 1);
};

// Each program ends, with the first cause, in threads and in the simulator.
void ExpectFails(const Program& program, const std::string& message) {
  const absl::Status in_threads = Spawn(program, Devices(4));
  EXPECT_NE(in_threads.message().find(message), std::string::npos)
      << in_threads;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const absl::Status status = Simulate(program, Devices(4), {seed}).status;
    EXPECT_NE(status.message().find(message), std::string::npos)
        << seed << ": " << status;
  }
}

TEST(DataParallelTest, FailuresEndTheProgram) {
  ExpectFails(
      [](Rank& rank) {
        const DataParallel model(
            rank, [] { return std::make_unique<FailsInBackward>(); });
        nn::Sum(model(rank.Ones({30, 2}))).Backward();
      },
      "device 3 of a DataParallel: backward of failing: the gradient is lost");
  ExpectFails(
      [](Rank& rank) {
        const DataParallel model(rank, MakeWatched);
        nn::Sum(model(Input(rank, 30))).Backward();
        throw StatusError(absl::AbortedError("enough"));
      },
      "rank 0: enough");
  ExpectFails(
      [](Rank& rank) {
        const auto made = std::make_shared<std::atomic<int>>(1);
        const DataParallel model(rank, [made] {
          return std::make_unique<nn::Linear>(2, (*made)++);
        });
      },
      "has another model than rank 0");
}

TEST(DataParallelTest, OptionsAreChecked) {
  const auto nothing = [](Rank&) {};
  EXPECT_EQ(
      Spawn(nothing, Devices(0)),
      absl::InvalidArgumentError("SpawnOptions.devices is at least 1, not 0"));
  SpawnOptions two = Devices(2);
  two.ranks = 2;
  EXPECT_EQ(
      Spawn(nothing, two),
      absl::InvalidArgumentError(
          "SpawnOptions.devices is 2, and a rank with several devices is the "
          "only one, in one process; use one rank for each device and a DDP, "
          "or leave out ranks and processes"));
  ExpectRunsOn(nothing, 4);
}

}  // namespace
}  // namespace troupe
