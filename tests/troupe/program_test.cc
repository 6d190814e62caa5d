// Programs of ranks: collectives, messages, groups and failures, in threads and
// under seeds.

#include "troupe/program.h"

#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kProgramSeeds = 20;

std::vector<float> Values(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

// Runs the program in threads, and by seeds in one thread. Returns the errors
// of all runs, which are the same.
std::string RunAll(const Program& program, const SpawnOptions& options) {
  const std::string error(Spawn(program, options).message());
  for (int seed = 0; seed < kProgramSeeds; ++seed) {
    const SimulatedRun run =
        Simulate(program, options, {static_cast<std::uint64_t>(seed)});
    EXPECT_EQ(run.status.ok(), error.empty())
        << "seed " << seed << ": " << run.status;
  }
  return error;
}

std::string RunAll(const Program& program, int ranks) {
  SpawnOptions options;
  options.ranks = ranks;
  return RunAll(program, options);
}

TEST(ProgramTest, AnOrderOfSumsThatCannotBeIsRefused) {
  const auto message = [](const std::string& device, const std::string& order) {
    SpawnOptions options;
    options.ranks = 2;
    options.device = *nn::Device::Parse(device);
    options.reduction_order = order;
    const absl::Status status = Spawn([](Rank&) {}, options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Simulate([](Rank&) {}, options).status, status);
    return std::string(status.message());
  };
  EXPECT_EQ(message("cpu", "any"),
            "reduction_order = \"any\" is for GPUs, and the device is cpu:0; "
            "take \"tree\"");
  EXPECT_EQ(message("cpu", "ring"),
            "reduction_order = \"ring\", must be \"auto\", \"tree\" or "
            "\"any\"");
  // This test is linked without NCCL.
  EXPECT_EQ(
      message("cuda", "any"),
      "reduction_order = \"any\" needs NCCL, without which this program "
      "was built; build it with --config=cuda and //comm/nccl:for_programs in "
      "its deps, or take \"tree\"");
}

TEST(ProgramTest, EachRankRunsOnceWithItsNumber) {
  std::vector<std::atomic<int>> runs(4);
  const absl::Status status = Spawn(
      [&](Rank& rank) {
        ASSERT_EQ(rank.size(), 4);
        ASSERT_EQ(rank.world().rank(), rank.number());
        ++runs[rank.number()];
      },
      /*ranks=*/4);
  EXPECT_TRUE(status.ok()) << status;
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
}

TEST(ProgramTest, MessagesAndAllReduce) {
  const std::string error = RunAll(
      [](Rank& rank) {
        Var t = rank.Zeros({1});
        if (rank.number() == 0) {
          t += 1;
          Send(t, /*to=*/1);
        } else {
          EXPECT_EQ(Recv(t), 0);
        }
        EXPECT_EQ(t.item(), 1);
        AllReduce(t);
        EXPECT_EQ(t.item(), 2);
      },
      /*ranks=*/2);
  EXPECT_EQ(error, "");
}

TEST(ProgramTest, MessagesAreSelectedByTagAndSource) {
  const std::string error = RunAll(
      [](Rank& rank) {
        Group& world = rank.world();
        if (rank.number() == 2) {
          Var first = rank.Zeros({2}), second = rank.Zeros({2});
          Var other = rank.Zeros({3});
          // Not in the order in which they were sent.
          EXPECT_EQ(world.Recv(second, /*from=*/0, /*tag=*/8), 0);
          EXPECT_EQ(world.Recv(other, kAnySource, /*tag=*/9), 1);
          EXPECT_EQ(world.Recv(first, /*from=*/0, /*tag=*/7), 0);
          EXPECT_EQ(Values(first), std::vector<float>({7, 7}));
          EXPECT_EQ(Values(second), std::vector<float>({8, 8}));
          EXPECT_EQ(Values(other), std::vector<float>({1, 1, 1}));
        } else if (rank.number() == 0) {
          Work a = world.StartSend(rank.Full({2}, 7), 2, /*tag=*/7);
          Work b = world.StartSend(rank.Full({2}, 8), 2, /*tag=*/8);
          b.Wait();
          a.Wait();
          EXPECT_TRUE(a.done());
        } else {
          world.Send(rank.Ones({3}), 2, /*tag=*/9);
        }
      },
      /*ranks=*/3);
  EXPECT_EQ(error, "");
}

// Every collective beside what its definition says, on 1 to 4 ranks.
TEST(ProgramTest, Collectives) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const std::string error = RunAll(
        [ranks](Rank& rank) {
          Group& world = rank.world();
          const int r = rank.number();
          const int last = ranks - 1;
          const float sum = ranks * (ranks + 1) / 2.0f;
          const auto own = [&] { return rank.Full({2}, r + 1); };
          Var t = own();
          world.AllReduce(t);
          EXPECT_EQ(Values(t), std::vector<float>(2, sum));
          t = own();
          world.AllReduce(t, ReduceOp::kMax);
          EXPECT_EQ(Values(t), std::vector<float>(2, ranks));
          t = own();
          world.AllReduce(t, ReduceOp::kAvg);
          EXPECT_EQ(Values(t), std::vector<float>(2, sum / ranks));
          t = own();
          world.Broadcast(t, last);
          EXPECT_EQ(Values(t), std::vector<float>(2, ranks));
          t = own();
          world.Reduce(t, last);
          EXPECT_EQ(Values(t), std::vector<float>(2, r == last ? sum : r + 1));
          const Var all = world.AllGather(own());
          EXPECT_EQ(all.shape(), (Shape{ranks, 2}));
          for (int i = 0; i < ranks; ++i) {
            EXPECT_EQ(Values(all)[2 * i + 1], i + 1);
          }
          const Var gathered = world.Gather(own(), last);
          EXPECT_EQ(gathered.defined(), r == last);
          if (r == last) {
            EXPECT_EQ(Values(gathered), Values(all));
          }
          t = rank.Zeros({2});
          world.Scatter(all, t, /*root=*/0);
          EXPECT_EQ(Values(t), std::vector<float>(2, r + 1));
          const Var rows = rank.Ones({ranks, 3});
          EXPECT_EQ(Values(world.ReduceScatter(rows)),
                    std::vector<float>(3, ranks));
          const Var from = rank.Full({ranks, 1}, r);
          std::vector<float> numbers(ranks);
          std::iota(numbers.begin(), numbers.end(), 0.0f);
          EXPECT_EQ(Values(world.AllToAll(from)), numbers);
          world.Barrier();
        },
        ranks);
    EXPECT_EQ(error, "") << ranks << " ranks";
  }
}

TEST(ProgramTest, AllToAllOfUnequalParts) {
  const std::string error = RunAll(
      [](Rank& rank) {
        // Rank r sends s + 1 rows to rank s, and gets r + 1 rows from each.
        const Var sent = rank.Full({3, 2}, rank.number());
        const std::int64_t own = rank.number() + 1;
        const Var got = rank.world().AllToAll(sent, {1, 2}, {own, own});
        EXPECT_EQ(got.shape(), (Shape{2 * own, 2}));
        EXPECT_EQ(got.tensor().data<float>()[0], 0);
        EXPECT_EQ(Values(got).back(), 1);
      },
      /*ranks=*/2);
  EXPECT_EQ(error, "");
}

TEST(ProgramTest, WorkGoesOnBesideOtherCalls) {
  const std::string error = RunAll(
      [](Rank& rank) {
        Group& world = rank.world();
        std::vector<Var> sums;
        std::vector<Work> works;
        for (int i = 0; i < 8; ++i) {
          sums.push_back(rank.Full({100}, i));
          works.push_back(world.StartAllReduce(sums.back()));
        }
        Var all = rank.Zeros({rank.size(), 1});
        works.push_back(world.StartAllGather(rank.Ones({1}), all));
        world.Barrier();
        for (Work& work : works) work.Wait();
        for (int i = 0; i < 8; ++i) EXPECT_EQ(Values(sums[i])[99], 3 * i);
        EXPECT_EQ(Values(all), std::vector<float>(3, 1));
      },
      /*ranks=*/3);
  EXPECT_EQ(error, "");
}

// Work that a rank does not wait for still ends: a peer gets the result after
// the rank's program has returned.
TEST(ProgramTest, UnwaitedWorkEndsWithTheProgram) {
  const std::string error = RunAll(
      [](Rank& rank) {
        Var t = rank.Full({1000}, rank.number() + 1);
        Work work = rank.world().StartAllReduce(t);
        if (rank.number() == 0) return;
        work.Wait();
        EXPECT_EQ(Values(t), std::vector<float>(1000, 3));
      },
      /*ranks=*/2);
  EXPECT_EQ(error, "");
}

TEST(ProgramTest, GroupsOfSomeRanks) {
  const std::string error = RunAll(
      [](Rank& rank) {
        if (rank.number() == 3) return;  // needs to know of none of them
        Group& all = rank.NewGroup({2, 0, 1});
        EXPECT_EQ(all.ranks()[all.rank()], rank.number());
        Var t = rank.Full({1}, rank.number());
        all.Broadcast(t, /*root=*/0);
        EXPECT_EQ(t.item(), 2);
        if (rank.number() == 1) return;
        // Two groups of the same ranks are two groups.
        Group& first = rank.NewGroup({0, 2});
        Group& second = rank.NewGroup({0, 2});
        Var a = rank.Ones({4}), b = rank.Ones({6});
        Work work = second.StartAllReduce(b);
        first.AllReduce(a);
        work.Wait();
        EXPECT_EQ(Values(b), std::vector<float>(6, 2));
      },
      /*ranks=*/4);
  EXPECT_EQ(error, "");
}

TEST(ProgramTest, AxesOfAMesh) {
  SpawnOptions options;
  options.ranks = 6;
  options.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/3);
  const std::string error = RunAll(
      [](Rank& rank) {
        EXPECT_EQ(rank.Axis("dp").size(), 2);
        EXPECT_EQ(rank.Axis("pp").size(), 3);
        EXPECT_EQ(&rank.Axis("pp"), &rank.Axis("pp"));
        Var t = rank.Full({1}, rank.number());
        rank.Axis("dp").AllReduce(t);
        EXPECT_EQ(t.item(), rank.number() / 2 * 4 + 1);
        const absl::Status none = Try([&] { rank.Axis("ep"); });
        EXPECT_THAT(std::string(none.message()),
                    AllOf(HasSubstr("no axis \"ep\""), HasSubstr("dp, pp")));
      },
      options);
  EXPECT_EQ(error, "");
}

TEST(ProgramTest, RandomTensorsDifferByRankAndNotByRun) {
  std::vector<std::vector<float>> drawn(4);
  std::atomic<int> next{0};
  for (int run = 0; run < 2; ++run) {
    const absl::Status status = Spawn(
        [&](Rank& rank) {
          drawn[2 * run + rank.number()] = Values(rank.Randn({3}));
        },
        /*ranks=*/2);
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(drawn[0], drawn[2]);
  EXPECT_EQ(drawn[1], drawn[3]);
  EXPECT_NE(drawn[0], drawn[1]);
}

TEST(ProgramTest, ALossIsAveragedOverItsTargets) {
  const std::string error = RunAll(
      [](Rank& rank) {
        const Var y = rank.Zeros({rank.number() + 1, 1});
        Var loss = nn::MeanSquaredError(y, rank.Full(y.shape(), 2));
        AllReduce(loss, ReduceOp::kAvg);
        EXPECT_EQ(loss.item(), 4);
        const absl::Status sum = Try([&] { AllReduce(loss); });
        EXPECT_THAT(std::string(sum.message()), HasSubstr("loss.Mean()"));
      },
      /*ranks=*/2);
  EXPECT_EQ(error, "");
}

// --- Failures ---

TEST(ProgramTest, AFailureNamesRankCallAndLine) {
  const std::string error = RunAll(
      [](Rank& rank) {
        if (rank.number() == 1) rank.world().Broadcast(rank.Ones({2}), 7);
        rank.world().Barrier();
      },
      /*ranks=*/3);
  EXPECT_THAT(error, AllOf(HasSubstr("rank 1: Broadcast() at program_test.cc:"),
                           HasSubstr("7")));
}

TEST(ProgramTest, AnExceptionEndsAllRanks) {
  const std::string error = RunAll(
      [](Rank& rank) {
        if (rank.number() == 1) throw std::runtime_error("no such file");
        Var t = rank.Zeros({1});
        rank.world().Recv(t, /*from=*/1);
      },
      /*ranks=*/3);
  EXPECT_THAT(error, AllOf(HasSubstr("rank 1: "), HasSubstr("no such file")));
}

TEST(ProgramTest, MismatchedCollectivesNameBothCalls) {
  const std::string error = RunAll(
      [](Rank& rank) {
        const Var t = rank.Ones({4});
        if (rank.number() == 0) {
          rank.world().AllReduce(t);
        } else {
          rank.world().Broadcast(t, 0);
        }
      },
      /*ranks=*/2);
  EXPECT_THAT(error, AllOf(HasSubstr("AllReduce() at program_test.cc:"),
                           HasSubstr("Broadcast() at program_test.cc:")));
}

TEST(ProgramTest, ARankThatReturnsEarlyIsNamed) {
  for (bool message : {false, true}) {
    const std::string error = RunAll(
        [message](Rank& rank) {
          if (rank.number() == 1) return;
          Var t = rank.Ones({4});
          if (message) {
            rank.world().Recv(t, /*from=*/1);
          } else {
            rank.world().AllReduce(t);
          }
        },
        /*ranks=*/2);
    EXPECT_THAT(error,
                AllOf(HasSubstr("rank 0: "), HasSubstr("rank 1 has returned"),
                      HasSubstr("program_test.cc:")));
  }
}

TEST(ProgramTest, RanksThatWaitForEachOtherMeetTheTimeout) {
  SpawnOptions options;
  options.ranks = 2;
  options.timeout = absl::Milliseconds(50);
  const std::string error = RunAll(
      [](Rank& rank) {
        Var t = rank.Ones({4});
        rank.world().Recv(t, 1 - rank.number(), /*tag=*/3);
      },
      options);
  EXPECT_THAT(error, AllOf(HasSubstr("Recv() at program_test.cc:"),
                           HasSubstr("within 50ms"), HasSubstr("tag 3")));
}

// A failure that the program handles in place ends nothing.
TEST(ProgramTest, TryKeepsAnErrorInPlace) {
  const std::string error = RunAll(
      [](Rank& rank) {
        const absl::Status status =
            Try([&] { rank.world().Broadcast(rank.Ones({2}), 9); });
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        const absl::Status outside =
            Try([&] { rank.NewGroup({1 - rank.number()}); });
        EXPECT_THAT(
            std::string(outside.message()),
            HasSubstr("call NewGroup() on the ranks of the group alone"));
        rank.world().Barrier();
      },
      /*ranks=*/2);
  EXPECT_EQ(error, "");
}

TEST(ProgramTest, OptionsThatNoProgramCanHave) {
  const Program nothing = [](Rank&) {};
  SpawnOptions options;
  options.ranks = 0;
  EXPECT_THAT(RunAll(nothing, options), HasSubstr("not 0"));
  options.ranks = 2;
  options.mesh = pipeline::Mesh(3);
  EXPECT_THAT(RunAll(nothing, options), HasSubstr("SpawnOptions.mesh"));
  options.mesh.reset();
  options.timeout = absl::ZeroDuration();
  EXPECT_THAT(RunAll(nothing, options), HasSubstr("timeout"));
  options.timeout = absl::Seconds(1);
  options.threads_per_rank = 0;
  EXPECT_THAT(RunAll(nothing, options), HasSubstr("threads_per_rank"));
  EXPECT_THAT(RunAll(nullptr, 1), HasSubstr("no function"));
}

// A seed repeats its run, and seeds differ.
TEST(ProgramTest, SeedsRepeat) {
  const Program program = [](Rank& rank) {
    Var t = rank.Ones({64});
    for (int i = 0; i < 4; ++i) AllReduce(t);
  };
  SpawnOptions options;
  options.ranks = 3;
  const SimulatedRun first = Simulate(program, options, {1});
  EXPECT_EQ(Simulate(program, options, {1}).trace_hash, first.trace_hash);
  EXPECT_NE(Simulate(program, options, {2}).trace_hash, first.trace_hash);
}

}  // namespace
}  // namespace troupe
