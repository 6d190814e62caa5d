// Programs whose groups NCCL makes, with GPUs and NCCL emulated: in one process
// and in several, which are threads of the test.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/device_queues.h"
#include "nn/models/models.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/linear.h"
#include "nn/ops/loss.h"
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
constexpr int kNcclSeeds = 8;

SpawnOptions NcclRanks(int ranks, const std::string& order = "any") {
  SpawnOptions options = GpuRanks(ranks, "cuda");
  options.reduction_order = order;
  return options;
}

// Fails unless the program runs in one thread for each of the seeds, and in
// threads of its own.
void ExpectToRun(const Program& program, int ranks) {
  for (const std::uint64_t seed : Seeds(kNcclSeeds)) {
    const EmulatedWorld world(actors::EmulatedGpus(seed, ranks));
    const SimulatedRun run = Simulate(program, NcclRanks(ranks), {seed});
    ASSERT_TRUE(run.status.ok()) << run.status << ReplayCommand(seed);
  }
  const EmulatedWorld world(GpusOfThreads(ranks));
  const absl::Status status = Spawn(program, NcclRanks(ranks));
  EXPECT_TRUE(status.ok()) << status;
}

// Fails unless it runs in processes with these numbers of ranks.
void ExpectToRunIn(const std::vector<int>& processes, const Program& program) {
  int ranks = 0;
  for (int count : processes) ranks += count;
  const EmulatedWorld world(GpusOfThreads(ranks));
  EXPECT_THAT(Messages(RunIn(processes, program, NcclRanks(ranks))), Each(""));
}

// Fails unless the loop has the job's losses, in one process and in processes
// with these numbers of ranks.
void ExpectTheLossesOfTheJob(Rule rule, int ranks,
                             const std::vector<int>& processes) {
  const std::vector<double> losses =
      GpuJobLosses(DigitsJob(rule, ranks), "cuda", "any");
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(kDigitsSteps));
  DigitsRun run;
  const Program loop = [&](Rank& rank) {
    DigitsLoop(rule, &run)(rank);
    if (rank.number() == 0) {
      EXPECT_EQ(run.losses, losses);
      run = {};
    }
  };
  ExpectToRun(loop, ranks);
  ExpectToRunIn(processes, loop);
}

TEST(NcclLoopTest, TwoGpusHaveTheLossesOfTheirJob) {
  ExpectTheLossesOfTheJob(Rule::kAdamW, 2, {1, 1});
}

TEST(NcclLoopTest, FourGpusHaveTheLossesOfTheirJob) {
  ExpectTheLossesOfTheJob(Rule::kSgd, 4, {2, 2});
}

TEST(NcclLoopTest, AllCollectives) {
  ExpectToRun(Collectives, 2);
  ExpectToRunIn({1, 1}, Collectives);
}

// Calls reductions that GPUs do not have without NCCL.
void MoreReductions(Rank& rank) {
  const double own = rank.number() + 1;
  Var product = rank.Full({2}, own);
  AllReduce(product, ReduceOp::kProduct);
  EXPECT_THAT(ValuesOn(rank, product), ElementsAre(2, 2));
  Var mean = rank.Full({2}, own);
  AllReduce(mean, ReduceOp::kAvg);
  EXPECT_THAT(ValuesOn(rank, mean), ElementsAre(1.5, 1.5));
  Var whole = rank.Full({3}, own, DType::kI64);
  AllReduce(whole);
  const Tensor host =
      base::OrThrow(nn::CopyToHost(rank.kernels(), nn::Queue::kCompute, whole));
  base::OrThrow(nn::Synchronize(
      rank.kernels(), nn::Record(rank.kernels(), nn::Queue::kCompute)));
  EXPECT_THAT(host.span<std::int64_t>(), ElementsAre(3, 3, 3));
}

TEST(NcclLoopTest, ProductsMeansAndIntegers) {
  ExpectToRun(MoreReductions, 2);
  ExpectToRunIn({1, 1}, MoreReductions);
}

// Groups that overlap, and several of the same ranks: each has an id of its
// own.
void ManyGroups(Rank& rank) {
  const int own = rank.number();
  const auto sum_of = [&](Group& group) {
    Var x = rank.Full({5}, own + 1);
    group.AllReduce(x);
    return ValuesOn(rank, x)[4];
  };
  Group& all = rank.NewGroup({2, 1, 0});
  EXPECT_EQ(all.rank(), 2 - own);
  if (own != 2) {
    Group& first = rank.NewGroup({1, 0});
    Group& second = rank.NewGroup({1, 0});
    Var a = rank.Full({3}, own), b = rank.Full({3}, own);
    Work one = first.StartBroadcast(a, /*root=*/0);
    Work two = second.StartBroadcast(b, /*root=*/1);
    one.Wait();
    two.Wait();
    EXPECT_THAT(ValuesOn(rank, a), ElementsAre(1, 1, 1));
    EXPECT_THAT(ValuesOn(rank, b), ElementsAre(0, 0, 0));
  }
  if (own != 1) {
    EXPECT_EQ(sum_of(rank.NewGroup({0, 2})), 4);
  }
  if (own != 0) {
    EXPECT_EQ(sum_of(rank.NewGroup({2, 1})), 5);
  }
  EXPECT_EQ(sum_of(rank.NewGroup({own})), own + 1);
  EXPECT_EQ(sum_of(all), 6);
  EXPECT_EQ(sum_of(rank.world()), 6);
}

TEST(NcclLoopTest, GroupsOverlap) {
  ExpectToRun(ManyGroups, 3);
  ExpectToRunIn({2, 1}, ManyGroups);
  ExpectToRunIn({1, 1, 1}, ManyGroups);
}

struct SyncNormed : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 6, 8);
  nn::SyncBatchNorm& norm = Add<nn::SyncBatchNorm>("norm", 8);
  nn::Linear& second = Add<nn::Linear>("second", 8, 3);
  Var Forward(Var x) override { return second(norm(first(x)).Relu()); }
};

// Groups of gradients, of layers, of buffers and of a hook, on queues of their
// own; replicas stay equal under Join().
void Replicas(Rank& rank) {
  auto model = rank.Make<SyncNormed>();
  DDPOptions options;
  options.average_buffers = true;
  options.first_bucket_mb = options.bucket_cap_mb = 1e-4;
  DDP ddp(model, options);
  ddp.RegisterCommHook([](Group& group, GradBucket& bucket) {
    return group.StartAllReduce(bucket.buffer(), ReduceOp::kAvg);
  });
  Sgd sgd(ddp, {/*lr=*/0.1, /*momentum=*/0.9});
  const auto train = [&](int batches) {
    for (int i = 0; i < batches; ++i) {
      sgd.ZeroGrad();
      nn::MeanSquaredError(ddp(rank.Randn({5, 6})), rank.Randn({5, 3}))
          .Backward();
      sgd.Step();
    }
  };
  train(2);
  {
    auto joined = ddp.Join();
    train(rank.number() == 0 ? 1 : 3);
  }
  for (const nn::Parameter* parameter : ddp.Parameters()) {
    const std::vector<float> all =
        ValuesOn(rank, rank.world().AllGather(parameter->value));
    const auto half = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    EXPECT_TRUE(std::equal(all.begin(), half, half)) << parameter->name;
  }
}

TEST(NcclLoopTest, ReplicasStayEqual) {
  ExpectToRun(Replicas, 2);
  ExpectToRunIn({1, 1}, Replicas);
}

TEST(NcclLoopTest, AutoTakesNcclForSeveralGpus) {
  const Program whole_numbers = [](Rank& rank) {
    Var x = rank.Ones({1}, DType::kI64);
    AllReduce(x);
  };
  const EmulatedWorld world(GpusOfThreads(2));
  EXPECT_TRUE(Spawn(whole_numbers, NcclRanks(2, "auto")).ok());
  // The tree's kernel refuses them.
  SpawnOptions options = NcclRanks(2, "auto");
  options.device = *nn::Device::Parse("cuda:0");
  EXPECT_EQ(Spawn(whole_numbers, options).code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Spawn(whole_numbers, NcclRanks(2, "tree")).code(),
            absl::StatusCode::kUnimplemented);
}

// --- Failures ---

TEST(NcclLoopTest, AFailureEndsTheWaitForAGroup) {
  EmulatedWorld world(GpusOfThreads(2));
  world.ExpectBroken();
  absl::Status waited;
  const std::vector<absl::Status> results = RunIn(
      {1, 1},
      [&](Rank& rank) {
        Var x = rank.Ones({1});
        if (rank.number() == 0) {
          AllReduce(x);
          throw base::StatusError(absl::DataLossError("the disk is gone"));
        }
        waited = base::Try([&] {
          AllReduce(x);
          rank.NewGroup({0, 1}).AllReduce(x);
          // The calls before may return before the device has begun them.
          ValuesOn(rank, x);
        });
      },
      NcclRanks(2));
  EXPECT_THAT(Messages(results), Each(HasSubstr("rank 0: the disk is gone")));
  EXPECT_THAT(MessageOf(waited), HasSubstr("the disk is gone"));
}

TEST(NcclLoopTest, TellsOfRanksOfThisProcessThatHaveReturned) {
  const Program early = [](Rank& rank) {
    if (rank.number() == 1) return;
    Var x = rank.Ones({1});
    AllReduce(x);
  };
  EmulatedWorld world(GpusOfThreads(3));
  world.ExpectBroken();
  EXPECT_THAT(Messages(RunIn({2, 1}, early, NcclRanks(3))),
              Each(AllOf(HasSubstr("AllReduce() at nccl_loop_test.cc"),
                         HasSubstr("rank 1 has returned"))));
  const absl::Status status = Spawn(early, NcclRanks(3));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(MessageOf(status), HasSubstr("rank 1 has returned"));
}

TEST(NcclLoopTest, ProcessesThatStartDifferentCollectivesEnd) {
  EmulatedWorld world(GpusOfThreads(2));
  world.ExpectBroken();
  const std::vector<absl::Status> results = RunIn(
      {1, 1},
      [](Rank& rank) {
        Var x = rank.Ones({4});
        rank.number() == 0 ? AllReduce(x) : Broadcast(x, /*root=*/0);
      },
      NcclRanks(2));
  EXPECT_THAT(Messages(results),
              Each(HasSubstr("rank 0 started all_reduce(sum, f32 x 4), rank 1 "
                             "started broadcast(root 0, f32 x 4)")));
}

// Stages exchange tensors by messages, which NCCL's groups do not have. One
// stage needs none.
TEST(NcclLoopTest, PipelinesAreRefusedWhereTheyAreMade) {
  const auto run = [](int dp, int pp, const std::string& order) {
    SpawnOptions options = NcclRanks(dp * pp, order);
    options.mesh = pipeline::Mesh(dp, pp);
    const EmulatedWorld world(GpusOfThreads(dp * pp));
    return Spawn(
        [pp](Rank& rank) {
          PipelineOptions pipe;
          if (pp > 1) pipe.cuts = {3};
          pipe.batch = {4, 6};
          PipelineParallel model(
              rank,
              [] {
                return nn::MakeMlp({6, 8, 3}, {});
              },
              pipe);
          Sgd sgd(model, {/*lr=*/0.1});
          Var targets = rank.Zeros({4}, DType::kI64);
          EXPECT_GT(model.Run(rank.Randn({4, 6}), targets,
                              nn::ops::CrossEntropyLoss()),
                    0);
          sgd.Step();
        },
        options);
  };
  const absl::Status refused = run(1, 2, "any");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      MessageOf(refused),
      HasSubstr("PipelineParallel: stages exchange tensors by messages, and an "
                "NCCL group has no messages; send them by a group of the host: "
                "SpawnOptions::reduction_order = \"tree\" makes such groups"));
  EXPECT_EQ(run(1, 2, "tree"), absl::OkStatus());
  EXPECT_EQ(run(2, 1, "any"), absl::OkStatus());
}

}  // namespace
}  // namespace troupe
