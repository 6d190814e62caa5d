// Programs whose ranks are in several processes: here threads of one process
// that meet over TCP on the loopback.

#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "tests/troupe/threads_as_processes.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(ProcessesTest, CollectivesMessagesAndGroups) {
  const std::vector<absl::Status> results = RunIn({2, 1, 1}, [](Rank& rank) {
    Var t = rank.Full({1000}, rank.number());
    AllReduce(t);
    EXPECT_EQ(t.tensor().data<float>()[999], 6);
    const Var all = rank.world().AllGather(rank.Full({1}, rank.number()));
    EXPECT_EQ(all.tensor().data<float>()[3], 3);
    // Each sends to the next in a ring, and waits later.
    Var from = rank.Zeros({3});
    Work sent = rank.world().StartSend(rank.Full({3}, rank.number()),
                                       (rank.number() + 1) % 4, /*tag=*/5);
    EXPECT_EQ(rank.world().Recv(from, kAnySource, /*tag=*/5),
              (rank.number() + 3) % 4);
    sent.Wait();
    // Groups that some ranks make, in another order than their peers.
    if (rank.number() == 1 || rank.number() == 3) {
      Group& odd = rank.NewGroup({1, 3});
      Var a = rank.Ones({7});
      odd.AllReduce(a);
      EXPECT_EQ(a.tensor().data<float>()[6], 2);
    } else {
      Group& even = rank.NewGroup({2, 0});
      Var a = rank.Full({7}, rank.number());
      even.Broadcast(a, /*root=*/0);
      EXPECT_EQ(a.tensor().data<float>()[6], 2);
    }
    if (rank.number() < 3) {
      Group& first = rank.NewGroup({0, 1, 2});
      Group& second = rank.NewGroup({0, 1, 2});
      Var a = rank.Ones({1}), b = rank.Ones({1});
      Work work = second.StartAllReduce(b, ReduceOp::kProduct);
      first.AllReduce(a);
      work.Wait();
      EXPECT_EQ(a.item(), 3);
      EXPECT_EQ(b.item(), 1);
    }
  });
  EXPECT_THAT(Messages(results), Each(""));
}
// Appends the parameters of all replicas, on rank 0.
void AppendReplicas(Rank& rank, const DDP& ddp, std::vector<float>* values) {
  for (const nn::Parameter* parameter : ddp.Parameters()) {
    const Var all = rank.world().AllGather(parameter->value);
    if (rank.number() != 0) continue;
    values->insert(values->end(), all.tensor().data<float>(),
                   all.tensor().data<float>() + all.numel());
  }
}

// Fails unless a program, made for the place of its values, has the same ones
// with three ranks in threads and in processes of two and one.
void ExpectBitsOfThreads(
    const std::function<Program(std::vector<float>*)>& program) {
  std::vector<float> threads, processes;
  SpawnOptions options;
  options.ranks = 3;
  ASSERT_TRUE(Spawn(program(&threads), options).ok());
  EXPECT_THAT(Messages(RunIn({2, 1}, program(&processes))), Each(""));
  EXPECT_FALSE(threads.empty());
  EXPECT_EQ(processes, threads);
}

// A model under DDP has the same bits in processes as in threads of one.
TEST(ProcessesTest, DdpHasTheBitsOfThreads) {
  const auto loop = [](std::vector<float>* values) {
    return [values](Rank& rank) {
      auto model = rank.Place(nn::MakeMlp({10, 32, 5}, {}));
      DDPOptions options;
      options.first_bucket_mb = options.bucket_cap_mb = 0.0005;
      DDP ddp(model, options);
      Sgd sgd(ddp, {/*lr=*/0.1, /*momentum=*/0.9});
      for (int step = 0; step < 5; ++step) {
        sgd.ZeroGrad();
        nn::MeanSquaredError(ddp(rank.Randn({8, 10})), rank.Randn({8, 5}))
            .Backward();
        sgd.Step();
      }
      AppendReplicas(rank, ddp, values);
    };
  };
  ExpectBitsOfThreads(loop);
}

// So has one whose ranks have different numbers of batches: rank 2, which has a
// process of its own, has none.
TEST(ProcessesTest, UnevenBatchesHaveTheBitsOfThreads) {
  const auto loop = [](std::vector<float>* values) {
    return [values](Rank& rank) {
      auto model = rank.Place(nn::MakeMlp({10, 32, 5}, {}));
      DDP ddp(model);
      Sgd sgd(ddp, {/*lr=*/0.1, /*momentum=*/0.9});
      {
        auto joined = ddp.Join();
        for (int step = 0; step < 4 - 2 * rank.number(); ++step) {
          sgd.ZeroGrad();
          nn::MeanSquaredError(ddp(rank.Randn({8, 10})), rank.Randn({8, 5}))
              .Backward();
          sgd.Step();
        }
      }
      EXPECT_EQ(sgd.steps(), 4);
      AppendReplicas(rank, ddp, values);
    };
  };
  ExpectBitsOfThreads(loop);
}

// A process whose ranks have returned stays for the others.
TEST(ProcessesTest, RanksReturnOneAfterTheOther) {
  const std::vector<absl::Status> results = RunIn({1, 2}, [](Rank& rank) {
    Var t = rank.Zeros({1});
    if (rank.number() == 0) return;
    Group& rest = rank.NewGroup({1, 2});
    for (int i = 0; i < 100; ++i) rest.AllReduce(t);
    if (rank.number() == 1) return;
    t += 1;
    EXPECT_EQ(t.item(), 1);
  });
  EXPECT_THAT(Messages(results), Each(""));
}

TEST(ProcessesTest, AllProcessesReturnTheSameCause) {
  const std::vector<absl::Status> results = RunIn({1, 2}, [](Rank& rank) {
    if (rank.number() == 2) throw std::runtime_error("no such file");
    rank.world().Barrier();
  });
  EXPECT_THAT(Messages(results),
              Each(AllOf(HasSubstr("rank 2: "), HasSubstr("no such file"))));
}

TEST(ProcessesTest, ARankThatReturnsEarlyIsNamed) {
  for (bool message : {false, true}) {
    const std::vector<absl::Status> results =
        RunIn({1, 1}, [message](Rank& rank) {
          if (rank.number() == 1) return;
          Var t = rank.Ones({4});
          if (message) {
            rank.world().Recv(t, /*from=*/1);
          } else {
            rank.world().AllReduce(t);
          }
        });
    EXPECT_THAT(
        Messages(results),
        Each(AllOf(HasSubstr("rank 0: "), HasSubstr("rank 1 has returned"),
                   HasSubstr("processes_test.cc:"))));
  }
}

// The other process has not made the group, so its end of it tells nobody.
TEST(ProcessesTest, ARankThatReturnsBeforeAGroupIsMadeIsNamed) {
  const std::vector<absl::Status> results = RunIn({1, 1}, [](Rank& rank) {
    if (rank.number() == 1) return;
    Var t = rank.Ones({4});
    rank.NewGroup({0, 1}).AllReduce(t);
  });
  EXPECT_THAT(Messages(results),
              Each(AllOf(HasSubstr("rank 0: AllReduce() at processes_test.cc:"),
                         HasSubstr("rank 1 has returned and will not take "
                                   "part in all_reduce(sum, f32 x 4)"))));
}

TEST(ProcessesTest, MismatchedCollectivesNameBothCalls) {
  const std::vector<absl::Status> results = RunIn({1, 1}, [](Rank& rank) {
    const Var t = rank.Ones({4});
    if (rank.number() == 0) {
      rank.world().AllReduce(t);
    } else {
      rank.world().Broadcast(t, 0);
    }
  });
  EXPECT_THAT(Messages(results),
              Each(AllOf(HasSubstr("all_reduce(sum, f32 x 4)"),
                         HasSubstr("broadcast(root 0, f32 x 4)"),
                         HasSubstr("processes_test.cc:"))));
}

TEST(ProcessesTest, TheProcessesHaveAllRanks) {
  SpawnOptions options;
  options.ranks = 2;
  std::promise<int> port;
  actors::ClusterOptions cluster;
  cluster.processes = 2;
  cluster.ranks = 1;
  cluster.insecure = true;
  cluster.on_listening = [&port](int number) {
    port.set_value(number);
    return absl::OkStatus();
  };
  options.cluster = cluster;
  absl::Status other;
  std::thread second([&] {
    SpawnOptions wrong = options;
    wrong.cluster->process = 1;
    wrong.cluster->ranks = 2;
    wrong.cluster->on_listening = nullptr;
    wrong.cluster->master_port = port.get_future().get();
    other = Spawn([](Rank&) { ADD_FAILURE(); }, wrong);
  });
  const absl::Status status = Spawn([](Rank&) { ADD_FAILURE(); }, options);
  second.join();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("3 ranks together where the program has 2"));
  EXPECT_THAT(std::string(other.message()), HasSubstr("3 ranks together"));
}

struct WideNet : nn::Net {
  nn::Linear& a = Add<nn::Linear>("a", 500, 500);
  nn::Linear& b = Add<nn::Linear>("b", 500, 500);
  Var Forward(Var x) override { return b(a(x)); }
};

// One backward gives gradients to two models, and each rank waits for those of
// another one first, on its own strand.
TEST(ProcessesTest, RanksMayWaitForModelsInAnyOrder) {
  const Program program = [](Rank& rank) {
    DDP first(rank.Make<WideNet>()), second(rank.Make<WideNet>());
    Sgd sgds[] = {Sgd(first, {/*lr=*/0.1}), Sgd(second, {/*lr=*/0.1})};
    for (int step = 0; step < 4; ++step) {
      for (Sgd& sgd : sgds) sgd.ZeroGrad();
      const Var x = rank.Randn({2, 500}), y = rank.Randn({2, 500});
      nn::MeanSquaredError(second(first(x)), y).Backward();
      sgds[rank.number()].Step();
      sgds[1 - rank.number()].Step();
    }
  };
  SpawnOptions options;
  options.inline_bytes = 1 << 30;
  EXPECT_THAT(Messages(RunIn({1, 1}, program, options)), Each(""));
}

}  // namespace
}  // namespace troupe
