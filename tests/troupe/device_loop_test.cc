// Programs whose ranks compute on devices with queues: queued ones, and
// emulated GPUs with the kernels, device and groups of production.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "actors/sim/simulation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/linear.h"
#include "nn/modules/parameter_dtype.h"
#include "tests/actors/emulated_job.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"
#include "tests/troupe/device_programs.h"
#include "tests/troupe/device_ranks.h"
#include "tests/troupe/digits_loop.h"
#include "tests/troupe/threads_as_processes.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using nn::cuda::EmulatedWorld;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// More of each: TROUPE_SIM_TIMES.
constexpr int kSeeds = 20;
constexpr int kGpuSeeds = 8;

// --- Queued devices ---

void ExpectTheBitsOfTheJob(Rule rule, int ranks) {
  actors::JobSpec job = DigitsJob(rule, ranks);
  job.kernels = PlainKernels;
  const std::vector<double> losses = DigitsJobLosses(job);
  DigitsRun cpu, threads;
  ASSERT_TRUE(Spawn(DigitsLoop(rule, &cpu), PlainRanks(ranks)).ok());
  const absl::Status status =
      Spawn(DigitsLoop(rule, &threads), QueuedRanks(ranks, /*seed=*/1));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(threads.losses, losses);
  EXPECT_EQ(threads.parameters, cpu.parameters);
  for (const std::uint64_t seed : Seeds(kSeeds)) {
    DigitsRun run;
    const SimulatedRun simulated =
        Simulate(DigitsLoop(rule, &run), QueuedRanks(ranks, seed),
                 {seed, /*message_time_max=*/absl::Milliseconds(10)});
    ASSERT_TRUE(simulated.status.ok())
        << simulated.status << ReplayCommand(seed);
    ASSERT_EQ(run.losses, losses) << ReplayCommand(seed);
    ASSERT_EQ(run.parameters, cpu.parameters) << ReplayCommand(seed);
  }
}

TEST(DeviceLoopTest, OneQueuedDeviceHasTheBitsOfItsJob) {
  ExpectTheBitsOfTheJob(Rule::kSgd, 1);
}

TEST(DeviceLoopTest, TwoQueuedDevicesHaveTheBitsOfTheirJob) {
  ExpectTheBitsOfTheJob(Rule::kAdamW, 2);
}

TEST(DeviceLoopTest, FourQueuedDevicesHaveTheBitsOfTheirJob) {
  ExpectTheBitsOfTheJob(Rule::kSgd, 4);
}

TEST(DeviceLoopTest, RoundedGradientsAndStepsInBackwardHaveTheSameBits) {
  DigitsOptions options;
  options.ddp.reduction_dtype = nn::DType::kBF16;
  options.step_in_backward = true;
  DigitsRun cpu;
  ASSERT_TRUE(
      Spawn(DigitsLoop(Rule::kAdamW, &cpu, options), PlainRanks(2)).ok());
  for (const std::uint64_t seed : Seeds(kSeeds)) {
    DigitsRun run;
    const SimulatedRun simulated = Simulate(
        DigitsLoop(Rule::kAdamW, &run, options), QueuedRanks(2, seed), {seed});
    ASSERT_TRUE(simulated.status.ok()) << simulated.status;
    ASSERT_EQ(run.losses, cpu.losses) << ReplayCommand(seed);
    ASSERT_EQ(run.parameters, cpu.parameters) << ReplayCommand(seed);
  }
}

struct Normed : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 6, 8);
  nn::BatchNorm1d& norm = Add<nn::BatchNorm1d>("norm", 8);
  nn::Linear& second = Add<nn::Linear>("second", 8, 3);
  Var Forward(Var x) override { return second(norm(first(x)).Relu()); }
};

enum class Average { kByDdp, kByHand };

// Trains with buffers, on different numbers of batches under Join(), or
// averages gradients itself.
Program WithBuffers(Average average, std::vector<float>* values) {
  return [=](Rank& rank) {
    auto model = rank.Make<Normed>();
    DDPOptions options;
    options.average_buffers = rank.seed() % 2 == 0;
    options.first_bucket_mb = options.bucket_cap_mb = 1e-4;
    std::optional<DDP> ddp;
    if (average == Average::kByDdp) ddp.emplace(model, options);
    const Trainable& trained = ddp ? *ddp : static_cast<Trainable&>(model);
    Sgd sgd(trained, {/*lr=*/0.1, /*momentum=*/0.9});
    const auto train = [&](int batches) {
      for (int i = 0; i < batches; ++i) {
        sgd.ZeroGrad();
        nn::MeanSquaredError(trained(rank.Randn({5, 6})), rank.Randn({5, 3}))
            .Backward();
        if (!ddp) AverageGradients(trained);
        sgd.Step();
      }
    };
    train(2);
    if (ddp) {
      auto joined = ddp->Join();
      train(rank.number() == 0 ? 2 : 4);
    }
    std::vector<float> all;
    for (const nn::Parameter* parameter : trained.Parameters()) {
      const std::vector<float> own = ValuesOn(rank, parameter->value);
      all.insert(all.end(), own.begin(), own.end());
    }
    for (const nn::Buffer* buffer : trained.module().Buffers()) {
      if (buffer->value.dtype() != DType::kF32) continue;
      const std::vector<float> own = ValuesOn(rank, buffer->value);
      all.insert(all.end(), own.begin(), own.end());
    }
    if (rank.number() == 1) *values = all;
  };
}

TEST(DeviceLoopTest, BuffersAndJoinHaveTheBitsOfTheCpu) {
  for (const Average average : {Average::kByDdp, Average::kByHand}) {
    for (const std::uint64_t program_seed : {0, 1}) {
      std::vector<float> cpu;
      SpawnOptions options = PlainRanks(2);
      options.seed = program_seed;
      const absl::Status status = Spawn(WithBuffers(average, &cpu), options);
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_FALSE(cpu.empty());
      for (const std::uint64_t seed : Seeds(kSeeds)) {
        std::vector<float> queued;
        options = QueuedRanks(2, seed);
        options.seed = program_seed;
        const SimulatedRun run =
            Simulate(WithBuffers(average, &queued), options, {seed});
        ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
        ASSERT_EQ(queued, cpu) << ReplayCommand(seed);
      }
    }
  }
}

TEST(DeviceLoopTest, AllCollectivesOnQueuedDevices) {
  const absl::Status status = Spawn(Collectives, QueuedRanks(2, 3));
  EXPECT_TRUE(status.ok()) << status;
  for (const std::uint64_t seed : Seeds(kSeeds)) {
    const SimulatedRun run =
        Simulate(Collectives, QueuedRanks(2, seed), {seed});
    ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
  }
}

TEST(DeviceLoopTest, SavesAndLoads) {
  const std::string path = testing::TempDir() + "/on_a_device.safetensors";
  const absl::Status status = Spawn(
      [&](Rank& rank) {
        auto model = rank.Make<Normed>();
        const absl::Status unnamed = base::Try([&] { Save(model, path); });
        EXPECT_THAT(MessageOf(unnamed), HasSubstr("StateOptions::kernels"));
        StateOptions options;
        options.kernels = &rank.kernels();
        Save(model, path, options);
        const Tensor& weight = model->first.Parameters()[0]->value;
        const std::vector<float> before = ValuesOn(rank, weight);
        nn::NoGrad no_grad = rank.NoGrad();
        Var(rank.context(), weight) *= 3;
        EXPECT_NE(ValuesOn(rank, weight), before);
        Load(model, path, options);
        EXPECT_EQ(ValuesOn(rank, weight), before);
      },
      QueuedRanks(1, 1));
  EXPECT_TRUE(status.ok()) << status;
}

// Writes to a bf16 parameter by hand and by a broadcast after a step, and steps
// again at rate 0, which rounds the f32 copies to the parameters.
void WritesToNarrowParameters(Rank& rank) {
  auto module = std::make_unique<Normed>();
  nn::SetParameterDType(*module, DType::kBF16);
  DDP ddp(rank.Place(std::move(module)));
  SgdOptions options{/*lr=*/0.1, /*momentum=*/0.9};
  options.common.f32_master = true;
  Sgd sgd(ddp, options);
  const auto train = [&] {
    sgd.ZeroGrad();
    nn::MeanSquaredError(ddp(rank.Randn({5, 6}, DType::kBF16)),
                         rank.Randn({5, 3}, DType::kBF16))
        .Backward();
    sgd.Step();
  };
  const auto copies_of = [&](const char* name) {
    State state;
    state.Add(sgd);
    for (const StateEntry& entry : state.entries()) {
      if (entry.names[0] != absl::StrCat("optimizer.", name, ".master_value")) {
        continue;
      }
      return ValuesOn(rank, entry.tensor);
    }
    return std::vector<float>();
  };
  train();
  std::vector<float> first = copies_of("first.weight");
  ASSERT_EQ(first.size(), 48u);
  Tensor weight, second;
  for (const nn::Parameter* parameter : ddp.Parameters()) {
    if (parameter->name == "first.weight") weight = parameter->value;
    if (parameter->name == "second.weight") second = parameter->value;
  }
  Tensor element = weight.FlatView(47, {1});
  base::OrThrow(rank.kernels().Fill(7, element));
  first[47] = 7;
  if (rank.number() == 1) base::OrThrow(rank.kernels().Fill(3, second));
  rank.world().Broadcast(second, /*root=*/1);
  sgd.FollowParameters();
  EXPECT_EQ(copies_of("first.weight"), first);
  EXPECT_THAT(copies_of("second.weight"), Each(3));
  sgd.set_lr(0);
  train();
  EXPECT_EQ(copies_of("first.weight"), first);
  EXPECT_THAT(copies_of("second.weight"), Each(3));
}

TEST(DeviceLoopTest, MasterValuesFollowWhatTheProgramWrites) {
  const absl::Status cpu = Spawn(WritesToNarrowParameters, PlainRanks(2));
  EXPECT_TRUE(cpu.ok()) << cpu;
  for (const std::uint64_t seed : Seeds(kSeeds)) {
    const SimulatedRun run =
        Simulate(WritesToNarrowParameters, QueuedRanks(2, seed), {seed});
    ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
  }
  for (const std::uint64_t seed : Seeds(kGpuSeeds)) {
    const EmulatedWorld world(actors::EmulatedGpus(seed, 2));
    const SimulatedRun run =
        Simulate(WritesToNarrowParameters, GpuRanks(2, "cuda"), {seed});
    ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
  }
}

TEST(DeviceLoopTest, KernelsAreOfTheDevice) {
  SpawnOptions options = QueuedRanks(1, 1);
  options.device = {};
  const absl::Status status = Spawn([](Rank&) {}, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status),
              HasSubstr("device = cpu:0: the program's kernels are of "
                        "queued:0; set device to theirs"));
}

// --- Emulated GPUs ---

void ExpectTheBitsOfTheGpuJob(Rule rule, int ranks, const std::string& device) {
  const std::vector<double> losses =
      GpuJobLosses(DigitsJob(rule, ranks), device, "tree");
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(kDigitsSteps));
  std::vector<float> parameters;
  for (const std::uint64_t seed : Seeds(kGpuSeeds)) {
    const EmulatedWorld world(actors::EmulatedGpus(seed, ranks));
    DigitsRun run;
    const SimulatedRun simulated =
        Simulate(DigitsLoop(rule, &run), GpuRanks(ranks, device), {seed});
    ASSERT_TRUE(simulated.status.ok())
        << simulated.status << ReplayCommand(seed);
    ASSERT_EQ(run.losses, losses) << ranks << ReplayCommand(seed);
    if (parameters.empty()) parameters = run.parameters;
    ASSERT_EQ(run.parameters, parameters) << ReplayCommand(seed);
  }
  const EmulatedWorld world(GpusOfThreads(ranks));
  DigitsRun run;
  const absl::Status status =
      Spawn(DigitsLoop(rule, &run), GpuRanks(ranks, device));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(run.losses, losses);
  EXPECT_EQ(run.parameters, parameters);
}

TEST(DeviceLoopTest, OneGpuHasTheBitsOfItsJob) {
  ExpectTheBitsOfTheGpuJob(Rule::kSgd, 1, "cuda");
}

TEST(DeviceLoopTest, TwoGpusHaveTheBitsOfTheirJob) {
  ExpectTheBitsOfTheGpuJob(Rule::kAdamW, 2, "cuda");
}

TEST(DeviceLoopTest, TwoRanksOfOneGpuHaveTheBitsOfTheirJob) {
  ExpectTheBitsOfTheGpuJob(Rule::kSgd, 2, "cuda:0");
}

TEST(DeviceLoopTest, FourGpusHaveTheBitsOfTheirJob) {
  ExpectTheBitsOfTheGpuJob(Rule::kSgd, 4, "cuda");
}

TEST(DeviceLoopTest, BuffersAndJoinOnGpus) {
  std::vector<float> first;
  for (const std::uint64_t seed : Seeds(kGpuSeeds)) {
    const EmulatedWorld world(actors::EmulatedGpus(seed, 2));
    std::vector<float> values;
    const SimulatedRun run = Simulate(WithBuffers(Average::kByDdp, &values),
                                      GpuRanks(2, "cuda"), {seed});
    ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
    if (first.empty()) first = values;
    ASSERT_EQ(values, first) << ReplayCommand(seed);
  }
}

TEST(DeviceLoopTest, AllCollectivesOnGpus) {
  {
    const EmulatedWorld world(GpusOfThreads(2));
    const absl::Status status = Spawn(Collectives, GpuRanks(2, "cuda"));
    EXPECT_TRUE(status.ok()) << status;
  }
  for (const std::uint64_t seed : Seeds(kGpuSeeds)) {
    const EmulatedWorld world(actors::EmulatedGpus(seed, 2));
    const SimulatedRun run = Simulate(Collectives, GpuRanks(2, "cuda"), {seed});
    ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
  }
}

TEST(DeviceLoopTest, GpusDoNotAddIntegers) {
  const EmulatedWorld world(GpusOfThreads(2));
  const absl::Status status = Spawn(
      [](Rank& rank) {
        Var x = rank.Ones({1}, DType::kI64);
        AllReduce(x);
      },
      GpuRanks(2, "cuda"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status), HasSubstr("GPUs do not reduce i64"));
}

// --- Several processes ---

TEST(DeviceLoopTest, ProcessesHaveTheBitsOfTheJob) {
  actors::JobSpec job = DigitsJob(Rule::kSgd, 2);
  {
    DigitsRun run;
    EXPECT_THAT(Messages(RunIn({1, 1}, DigitsLoop(Rule::kSgd, &run),
                               QueuedRanks(2, /*seed=*/1))),
                Each(""));
    actors::JobSpec plain = job;
    plain.kernels = PlainKernels;
    EXPECT_EQ(run.losses, DigitsJobLosses(plain));
  }
  const std::vector<double> losses = GpuJobLosses(job, "cuda", "tree");
  const EmulatedWorld world(GpusOfThreads(2));
  DigitsRun run;
  EXPECT_THAT(Messages(RunIn({1, 1}, DigitsLoop(Rule::kSgd, &run),
                             GpuRanks(2, "cuda"))),
              Each(""));
  EXPECT_EQ(run.losses, losses);
}

TEST(DeviceLoopTest, EachRankOfAHostNeedsAGpu) {
  const EmulatedWorld world(GpusOfThreads(1));
  const std::vector<absl::Status> results = RunIn(
      {1, 1}, [](Rank&) {}, GpuRanks(2, "cuda"));
  EXPECT_THAT(Messages(results),
              Each(AllOf(HasSubstr("rank 1: device = cuda: 2 ranks of this "
                                   "host need a GPU each"),
                         HasSubstr("this process sees 1 GPU"))));
}

TEST(DeviceLoopTest, EachRankNeedsAGpu) {
  const EmulatedWorld world(actors::EmulatedGpus(/*seed=*/1, 2));
  const absl::Status status = Spawn([](Rank&) {}, GpuRanks(4, "cuda"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(status),
            "device = cuda: 4 ranks of this host need a GPU each, and this "
            "process sees 2 GPUs; run fewer ranks, or put all on one with "
            "device = \"cuda:0\"");
}

}  // namespace
}  // namespace troupe
