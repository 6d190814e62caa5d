// Communication hooks, messages and missing ranks on devices with queues, and
// bugs planted in the groups that programs use there.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/setup/group_makers.h"
#include "base/check.h"
#include "base/status_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/device_queues.h"
#include "tests/actors/emulated_job.h"
#include "tests/base/seeds.h"
#include "tests/comm/unordered_communicators.h"
#include "tests/comm/wrapped_communicator.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"
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
using ::testing::HasSubstr;

// More of each: TROUPE_SIM_TIMES.
constexpr int kHookSeeds = 10;
constexpr int kHookGpuSeeds = 4;

using Prepare = std::function<void(Rank& rank, DDP& ddp)>;

DigitsOptions With(Prepare prepare) {
  DigitsOptions options;
  options.prepare = std::move(prepare);
  return options;
}

// Hooks that compute what DDP does without one.
std::vector<Prepare> Averages() {
  return {
      [](Rank&, DDP& ddp) { ddp.RegisterCommHook(AllReduceHook); },
      [](Rank& rank, DDP& ddp) {
        ddp.RegisterCommHook([&rank](Group& group, GradBucket& bucket) {
          group.AllReduce(bucket.buffer());
          Var sums(rank.context(), bucket.buffer());
          sums /= group.size();
        });
      },
      [](Rank& rank, DDP& ddp) {
        ddp.RegisterCommHook([&rank](Group& group, GradBucket& bucket) {
          const Work sum = group.StartAllReduce(bucket.buffer());
          return BucketFuture(
              sum, [&rank, buffer = bucket.buffer(), n = group.size()] {
                Var sums(rank.context(), buffer);
                sums /= n;
              });
        });
      },
  };
}

TEST(DeviceHookTest, HooksReduceOnQueuedDevices) {
  DigitsRun cpu;
  ASSERT_TRUE(Spawn(DigitsLoop(Rule::kSgd, &cpu), PlainRanks(2)).ok());
  for (const Prepare& prepare : Averages()) {
    DigitsRun threads;
    const Program program = DigitsLoop(Rule::kSgd, &threads, With(prepare));
    const absl::Status status = Spawn(program, QueuedRanks(2, /*seed=*/1));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(threads.parameters, cpu.parameters);
    for (const std::uint64_t seed : Seeds(kHookSeeds)) {
      DigitsRun run;
      const SimulatedRun simulated =
          Simulate(DigitsLoop(Rule::kSgd, &run, With(prepare)),
                   QueuedRanks(2, seed), {seed});
      ASSERT_TRUE(simulated.status.ok())
          << simulated.status << ReplayCommand(seed);
      ASSERT_EQ(run.losses, cpu.losses) << ReplayCommand(seed);
      ASSERT_EQ(run.parameters, cpu.parameters) << ReplayCommand(seed);
    }
  }
}

TEST(DeviceHookTest, HooksReduceOnGpus) {
  DigitsRun plain;
  {
    const EmulatedWorld world(actors::EmulatedGpus(/*seed=*/0, 2));
    ASSERT_TRUE(Simulate(DigitsLoop(Rule::kSgd, &plain), GpuRanks(2, "cuda"))
                    .status.ok());
  }
  for (const Prepare& prepare : Averages()) {
    for (const std::uint64_t seed : Seeds(kHookGpuSeeds)) {
      const EmulatedWorld world(actors::EmulatedGpus(seed, 2));
      DigitsRun run;
      const SimulatedRun simulated =
          Simulate(DigitsLoop(Rule::kSgd, &run, With(prepare)),
                   GpuRanks(2, "cuda"), {seed});
      ASSERT_TRUE(simulated.status.ok())
          << simulated.status << ReplayCommand(seed);
      ASSERT_EQ(run.parameters, plain.parameters) << ReplayCommand(seed);
    }
  }
}

TEST(DeviceHookTest, TheHostOfAHookReadsNoGradients) {
  const auto prepare = [](Rank&, DDP& ddp) {
    ddp.RegisterCommHook([](Group&, GradBucket& bucket) {
      bucket.buffer().span<float>()[0] = 0;
    });
  };
  DigitsRun run;
  const absl::Status status =
      Spawn(DigitsLoop(Rule::kSgd, &run, With(prepare)), QueuedRanks(1, 1));
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("communication hook, bucket 0"),
                    HasSubstr("is not memory of the host")));
}

// --- Messages ---

// Lets ranks 0 and 1 compute in 3 rounds from what they send each other, with
// several tags, lengths and kinds of memory. `got`: the values of rank 1. What
// is wrong is an error, since the program also runs with bugs.
Program Exchanges(std::vector<float>* got) {
  return [=](Rank& rank) {
    Group& world = rank.world();
    const int own = rank.number(), peer = 1 - own;
    const nn::NoGrad no_grad = rank.NoGrad();
    std::vector<float> all;
    const auto expect = [](bool holds, const char* what) {
      if (!holds) base::OrThrow(absl::InternalError(what));
    };
    const auto keep = [&](const Tensor& tensor) {
      for (const float value : ValuesOn(rank, tensor)) all.push_back(value);
    };
    Var x = rank.Full({64}, own + 1);
    for (int round = 0; round < 3; ++round) {
      // A message was computed just before, and its tensor changes afterwards.
      for (int i = 0; i < 4; ++i) x = x * 1.25 + (own + i);
      const Var few = x.Slice(0, 5) - 1;
      Var into = rank.Full({64}, -1);
      const Var before = into * 3;
      Work sent = world.StartSend(x, peer, /*tag=*/1);
      Work second = world.StartSend(few, peer, /*tag=*/2);
      // The second message is taken first, and is shorter than its place.
      Work first = world.StartRecv(into, peer, /*tag=*/1);
      Var rest = rank.Full({8}, round);
      expect(world.Recv(rest, kAnySource, /*tag=*/2) == peer, "a source");
      first.Wait();
      expect(first.done() && first.source() == peer, "a work's end");
      const Var next = into * 0.5 + before;
      sent.Wait();
      second.Wait();
      x *= 0;
      x += next;
      into *= 0;
      keep(before);
      keep(rest);
    }
    // A message overtakes a collective that its receiver has not started.
    Var sum = x + own;
    if (own == 0) {
      Work work = world.StartAllReduce(sum);
      world.Send(x, peer);
      work.Wait();
    } else {
      Var received = rank.Zeros({64});
      world.Recv(received, peer);
      keep(received * 2);
      world.AllReduce(sum);
    }
    keep(sum);
    // Messages go from memory of the host to that of the device, and back.
    Tensor host = base::OrThrow(Tensor::Create(
        nn::Shape{3}, DType::kF32, nn::HostAllocator(rank.kernels())));
    Var three = rank.Zeros({3});
    if (own == 0) {
      for (int i = 0; i < 3; ++i) host.data<float>()[i] = i + 0.5f;
      world.Send(host, peer);
      world.Recv(three, peer);
    } else {
      world.Recv(three, peer);
      world.Send(three * 3, peer);
    }
    keep(three);
    if (own == 1) {
      world.Send(three + 2, peer);
    } else {
      world.Recv(host, peer);
      expect(host.data<float>()[2] == 4.5f, "the host's memory");
    }
    // The sender ends while the message is under way.
    own == 0 ? Send(x * x, peer) : (void)Recv(x, peer);
    keep(x + 1);
    if (own == 1) *got = all;
  };
}

std::vector<float> ExchangedOnCpus() {
  std::vector<float> values;
  const absl::Status status = Spawn(Exchanges(&values), PlainRanks(2));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_FALSE(values.empty());
  return values;
}

TEST(DeviceMessageTest, QueuedDevicesExchangeTheBitsOfCpus) {
  const std::vector<float> cpu = ExchangedOnCpus();
  std::vector<float> threads;
  const absl::Status status =
      Spawn(Exchanges(&threads), QueuedRanks(2, /*seed=*/1));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(threads, cpu);
  for (const std::uint64_t seed : Seeds(3 * kHookSeeds)) {
    std::vector<float> values;
    const SimulatedRun run =
        Simulate(Exchanges(&values), QueuedRanks(2, seed), {seed});
    ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
    ASSERT_EQ(values, cpu) << ReplayCommand(seed);
  }
}

TEST(DeviceMessageTest, GpusExchangeTheBitsOfCpus) {
  const std::vector<float> cpu = ExchangedOnCpus();
  for (const char* const device : {"cuda", "cuda:0"}) {
    for (const std::uint64_t seed : Seeds(2 * kHookGpuSeeds)) {
      const EmulatedWorld world(actors::EmulatedGpus(seed, 2));
      std::vector<float> values;
      const SimulatedRun run =
          Simulate(Exchanges(&values), GpuRanks(2, device), {seed});
      ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
      ASSERT_EQ(values, cpu) << device << ReplayCommand(seed);
    }
    const EmulatedWorld world(GpusOfThreads(2));
    std::vector<float> threads;
    const absl::Status status = Spawn(Exchanges(&threads), GpuRanks(2, device));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(threads, cpu);
  }
}

TEST(DeviceMessageTest, ProcessesExchangeTheBitsOfCpus) {
  const std::vector<float> cpu = ExchangedOnCpus();
  std::vector<float> queued, gpus;
  EXPECT_THAT(
      Messages(RunIn({1, 1}, Exchanges(&queued), QueuedRanks(2, /*seed=*/1))),
      Each(""));
  EXPECT_EQ(queued, cpu);
  const EmulatedWorld world(GpusOfThreads(2));
  EXPECT_THAT(Messages(RunIn({1, 1}, Exchanges(&gpus), GpuRanks(2, "cuda"))),
              Each(""));
  EXPECT_EQ(gpus, cpu);
}

TEST(DeviceGroupsTest, TellsOfRanksThatStayAway) {
  const auto early = [](Rank& rank) {
    if (rank.number() == 1) return;
    Var x = rank.Ones({1});
    AllReduce(x);
  };
  for (const absl::Status& status :
       {Spawn(early, QueuedRanks(2, 1)),
        Simulate(early, QueuedRanks(2, 1), {1}).status}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(MessageOf(status), HasSubstr("rank 1 has returned"));
  }
  const auto late = [](Rank& rank) {
    Var x = rank.Ones({1});
    Group& pair = rank.NewGroup({0, 1});
    rank.number() == 0 ? AllReduce(x) : pair.AllReduce(x);
  };
  const SimulatedRun run = Simulate(late, QueuedRanks(2, 1), {1});
  EXPECT_EQ(run.status.code(), absl::StatusCode::kDeadlineExceeded)
      << run.status;
  EXPECT_THAT(MessageOf(run.status), HasSubstr("AllReduce() at device_hook"));
}

TEST(DeviceMessageTest, NamesWhatDoesNotFitAndWhoStaysAway) {
  const auto longer = [](Rank& rank) {
    Var x = rank.Ones({rank.number() == 0 ? 4 : 2});
    rank.number() == 0 ? Send(x, 1) : (void)Recv(x, 0);
  };
  const auto alone = [](Rank& rank) {
    Var x = rank.Ones({2});
    if (rank.number() == 0) Recv(x, 1);
  };
  const auto expect_errors = [&](const SpawnOptions& options) {
    const absl::Status unfit = Spawn(longer, options);
    EXPECT_EQ(unfit.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(unfit),
                AllOf(HasSubstr("device_hook_test.cc:"),
                      HasSubstr("send(to 1, tag 0, f32 x 4), which does not "
                                "fit what rank 1 started")));
    const absl::Status left = Spawn(alone, options);
    EXPECT_EQ(left.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(MessageOf(left), HasSubstr("rank 1 has returned"));
  };
  expect_errors(QueuedRanks(2, /*seed=*/1));
  const EmulatedWorld world(GpusOfThreads(2));
  expect_errors(GpuRanks(2, "cuda"));
}

// --- Planted bugs ---

// A bug: a message is read before the device has written it.
class SentTooEarly : public comm::WrappedCommunicator {
 public:
  using WrappedCommunicator::WrappedCommunicator;
  absl::StatusOr<comm::Event> StartSend(int to, std::uint32_t tag,
                                        const Tensor& data,
                                        comm::Event) override {
    return inner().StartSend(to, tag, data, comm::Event());
  }
};

// A bug: a message is taken before it has come.
class TakenTooEarly : public comm::WrappedCommunicator {
 public:
  using WrappedCommunicator::WrappedCommunicator;
  absl::StatusOr<comm::Event> StartRecv(int from, std::uint32_t tag,
                                        const Tensor& into,
                                        comm::Arrival* arrival) override {
    *arrival = {from, into.numel(), into};
    late_.emplace_back();
    TROUPE_RETURN_IF_ERROR(
        inner().StartRecv(from, tag, into, &late_.back()).status());
    return comm::Event();
  }

 private:
  std::deque<comm::Arrival> late_;
};

// Returns how the program runs on these ranks with groups that have the bug.
template <typename Bug>
absl::Status RunWith(const Program& program, const SpawnOptions& options,
                     std::uint64_t seed) {
  ProgramSimulation simulation = {seed};
  simulation.make_group =
      [device = options.device](const comm::LocalGroupOptions& group) {
        return comm::WithBug<Bug>(actors::GroupsOn(device)(group));
      };
  return Simulate(program, options, simulation).status;
}

// Returns the first seed that reveals the bug.
template <typename Bug>
std::uint64_t FirstSeedThatFinds() {
  DigitsRun cpu;
  EXPECT_TRUE(Spawn(DigitsLoop(Rule::kSgd, &cpu), PlainRanks(2)).ok());
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    DigitsRun run;
    const absl::Status status =
        RunWith<Bug>(DigitsLoop(Rule::kSgd, &run), QueuedRanks(2, seed), seed);
    if (!status.ok() || run.parameters != cpu.parameters) return seed;
  }
  return 50;
}

// The same for messages, on queued devices or GPUs.
template <typename Bug>
std::uint64_t FirstExchangeThatFinds(bool gpus) {
  const std::vector<float> cpu = ExchangedOnCpus();
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::optional<EmulatedWorld> world;
    if (gpus) world.emplace(actors::EmulatedGpus(seed, 2));
    std::vector<float> values;
    const absl::Status status =
        RunWith<Bug>(Exchanges(&values),
                     gpus ? GpuRanks(2, "cuda") : QueuedRanks(2, seed), seed);
    if (!status.ok() || values != cpu) return seed;
  }
  return 50;
}

TEST(DeviceHookTest, FindsACollectiveThatDoesNotWait) {
  EXPECT_LT(FirstSeedThatFinds<comm::TooEarly>(), 50u);
}

TEST(DeviceHookTest, FindsAReaderThatDoesNotWait) {
  EXPECT_LT(FirstSeedThatFinds<comm::DoneAtOnce>(), 50u);
}

TEST(DeviceMessageTest, FindsOneThatIsSentTooEarly) {
  EXPECT_LT(FirstExchangeThatFinds<SentTooEarly>(/*gpus=*/false), 50u);
  EXPECT_LT(FirstExchangeThatFinds<SentTooEarly>(/*gpus=*/true), 50u);
}

TEST(DeviceMessageTest, FindsOneThatIsTakenTooEarly) {
  EXPECT_LT(FirstExchangeThatFinds<TakenTooEarly>(/*gpus=*/false), 50u);
  EXPECT_LT(FirstExchangeThatFinds<TakenTooEarly>(/*gpus=*/true), 50u);
}

}  // namespace
}  // namespace troupe
