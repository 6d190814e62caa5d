// Wait-for graphs and the texts about them: chains, cycles, ranks that wait for
// the same collective, silent ranks, and invalid answers.

#include "actors/supervision/wait_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

// Returns a wait for collective `collective` of the replicas, for bucket 1 in
// step 3.
RankWait Bucket(std::int64_t collective, std::vector<std::int32_t> ranks) {
  RankWait wait;
  wait.what =
      absl::StrCat("all_reduce(sum, f32 x 120), collective ", collective);
  wait.group = "replicas";
  wait.collective = collective;
  wait.step = 2;
  wait.part = "bucket 1";
  wait.ranks = std::move(ranks);
  wait.nanos = 3 * kMillisecond;
  return wait;
}

RankWait Activation(int from, int to) {
  RankWait wait;
  wait.what = absl::StrCat("the activation of stage ", from, " for stage ", to);
  wait.step = 6;
  wait.part = "micro-batch 4";
  wait.ranks = {from};
  wait.nanos = 10'260 * kMillisecond;
  return wait;
}

RankWaits Answer(int rank, std::vector<RankWait> waits) {
  RankWaits answer;
  answer.rank = rank;
  answer.waits = std::move(waits);
  return answer;
}

RankWaits Busy(int rank, const std::string& doing) {
  RankWaits answer;
  answer.rank = rank;
  answer.doing = doing;
  answer.busy = true;
  return answer;
}

std::string Graph(int ranks, const std::vector<RankWaits>& answers,
                  const std::vector<int>& lost = {}) {
  WaitGraph graph(ranks, /*roster=*/nullptr);
  for (int rank : lost) graph.SetLost(rank);
  for (const RankWaits& answer : answers) graph.Add(answer);
  return graph.ToString();
}

TEST(WaitGraphTest, AllWaitForTheOneThatIsLost) {
  EXPECT_EQ(
      Graph(3, {Answer(0, {Bucket(7, {1, 2})}), Answer(1, {Bucket(7, {0, 2})})},
            {2}),
      "the root of the wait is rank 2, which is lost\n"
      "ranks 0, 1 have waited 3ms for rank 2 in step 3, bucket 1: "
      "all_reduce(sum, f32 x 120), collective 7 of group replicas");
}

TEST(WaitGraphTest, AChainEndsAtTheOneThatComputes) {
  EXPECT_EQ(
      Graph(3, {Answer(2, {Activation(1, 2)}), Answer(1, {Activation(0, 1)}),
                Busy(0, "computing step 7")}),
      "the root of the wait is rank 0, which is computing step 7\n"
      "rank 1 has waited 10.2s for rank 0 in step 7, micro-batch 4: the "
      "activation of stage 0 for stage 1\n"
      "rank 2 has waited 10.2s for rank 1 in step 7, micro-batch 4: the "
      "activation of stage 1 for stage 2");
}

TEST(WaitGraphTest, RanksInACircleAreTheRoot) {
  const std::vector<std::string> lines = absl::StrSplit(
      Graph(4, {Answer(1, {Bucket(7, {3})}), Answer(2, {Bucket(8, {1})}),
                Answer(3, {Bucket(9, {2})}), Answer(0, {Bucket(6, {2})})}),
      '\n');
  EXPECT_EQ(lines[0],
            "the root of the wait is ranks 2, 1, 3, which wait for each other "
            "in a circle");
  EXPECT_EQ(lines.size(), 5) << "and each of them, and rank 0";
}

TEST(WaitGraphTest, EachRootIsNamedOnce) {
  EXPECT_EQ(Graph(6,
                  {Answer(0, {Bucket(7, {1})}), Answer(2, {Bucket(8, {3})}),
                   Busy(3, "computing step 3"),
                   Answer(4, {Activation(5, 4), Bucket(7, {1})})},
                  {1, 5}),
            "the roots of the wait are ranks 1, 5, which are lost; and rank 3, "
            "which is computing step 3\n"
            "rank 0 has waited 3ms for rank 1 in step 3, bucket 1: "
            "all_reduce(sum, f32 x 120), collective 7 of group replicas\n"
            "rank 2 has waited 3ms for rank 3 in step 3, bucket 1: "
            "all_reduce(sum, f32 x 120), collective 8 of group replicas\n"
            "rank 4 has waited 10.2s for rank 5 in step 7, micro-batch 4: the "
            "activation of stage 5 for stage 4");
}

// Neither rank can tell that the other has joined.
TEST(WaitGraphTest, RanksInOneCollectiveDoNotWaitForEachOther) {
  EXPECT_EQ(
      Graph(2, {Answer(0, {Bucket(7, {1})}), Answer(1, {Bucket(7, {0})})}),
      "no rank waits for another\n"
      "ranks 0, 1 have been for 3ms in step 3, bucket 1: all_reduce(sum, "
      "f32 x 120), collective 7 of group replicas, of which no rank is "
      "missing");
  // If the collectives or groups differ, the ranks do wait for each other.
  RankWait other = Bucket(7, {0});
  other.group = "all ranks";
  EXPECT_NE(Graph(2, {Answer(0, {Bucket(7, {1})}), Answer(1, {other})})
                .find("in a circle"),
            std::string::npos);
}

// All had joined when a rank died: the others wait for the data that it had to
// send.
TEST(WaitGraphTest, ACollectiveThatHadBegunWaitsForTheLost) {
  RankWait begun = Bucket(7, {0, 1, 2});
  begun.begun = true;
  EXPECT_EQ(Graph(3, {Answer(0, {begun}), Answer(1, {begun})}, {2}),
            "the root of the wait is rank 2, which is lost\n"
            "ranks 0, 1 have waited 3ms for rank 2 in step 3, bucket 1: "
            "all_reduce(sum, f32 x 120), collective 7 of group replicas");
}

TEST(WaitGraphTest, SilenceIsNoAnswer) {
  EXPECT_EQ(Graph(2, {Answer(0, {Bucket(7, {1})})}),
            "the root of the wait is rank 1, which is giving no answer\n"
            "rank 0 has waited 3ms for rank 1 in step 3, bucket 1: "
            "all_reduce(sum, f32 x 120), collective 7 of group replicas");
}

TEST(WaitGraphTest, NobodyWaits) {
  EXPECT_EQ(Graph(4,
                  {Busy(0, "computing step 7"), Busy(1, "computing step 7"),
                   Busy(2, "waiting for its loader, for step 7")},
                  {3}),
            "no rank waits for another\n"
            "ranks 0, 1 are computing step 7\n"
            "rank 2 is waiting for its loader, for step 7");
}

TEST(WaitGraphTest, ARootIsTakenToItsProcess) {
  Member first, second;
  first.host = "n1";
  first.pid = 17;
  second.process = 1;
  second.host = "n2";
  second.pid = 4711;
  second.ranks = 2;
  const Roster roster({first, second});
  WaitGraph graph(3, &roster);
  graph.Add(Answer(0, {Bucket(7, {1, 2})}));
  graph.Add(Answer(1, {Bucket(7, {0, 2})}));
  graph.Add(Busy(2, "computing step 3"));
  const std::vector<std::string> lines = absl::StrSplit(graph.ToString(), '\n');
  EXPECT_EQ(lines[0],
            "the root of the wait is rank 2 in process 1 (n2, pid 4711, ranks "
            "1 to 2), which is computing step 3");
}

// Ranks of other processes are left out if the process that could ask them is
// lost.
TEST(WaitGraphTest, WhoIsLeftOutIsNotBlamed) {
  WaitGraph graph(3, /*roster=*/nullptr);
  for (int rank : {0, 2}) graph.LeaveOut(rank);
  graph.SetLost(0);
  EXPECT_EQ(graph.Unsettled(), std::vector<int>{1});
  graph.Add(Answer(1, {Bucket(7, {0, 2})}));
  EXPECT_EQ(graph.ToString(),
            "the root of the wait is rank 0, which is lost\n"
            "rank 1 has waited 3ms for rank 0 in step 3, bucket 1: "
            "all_reduce(sum, f32 x 120), collective 7 of group replicas");
  graph.Add(Answer(1, {Bucket(7, {2})}));
  EXPECT_EQ(
      graph.ToString(),
      "the root of the wait is rank 2, which is elsewhere, and not asked\n"
      "rank 1 has waited 3ms for rank 2 in step 3, bucket 1: "
      "all_reduce(sum, f32 x 120), collective 7 of group replicas");
}

TEST(WaitGraphTest, ThoseThatComputeMayYetWait) {
  WaitGraph graph(3, /*roster=*/nullptr);
  EXPECT_EQ(graph.Unsettled(), (std::vector<int>{0, 1, 2}));
  graph.SetLost(1);
  graph.Add(Answer(0, {Bucket(7, {1})}));
  graph.Add(Busy(2, "computing step 3"));
  EXPECT_EQ(graph.Unsettled(), std::vector<int>{2});
  graph.Add(Answer(2, {Bucket(7, {1})}));
  EXPECT_EQ(graph.Unsettled(), std::vector<int>{});
}

// Such numbers may come from another process.
TEST(WaitGraphTest, RanksThatThereAreNotAreLeftOut) {
  WaitGraph graph(2, /*roster=*/nullptr);
  graph.SetLost(9);
  graph.SetLost(-1);
  graph.Add(Answer(2, {Bucket(7, {0})}));
  graph.Add(Answer(-5, {}));
  graph.Add(Answer(0, {Bucket(7, {-1, 2, 1 << 30, 0, 1, 1})}));
  RankWait endless = Bucket(8, {});
  endless.what = std::string(1 << 20, 'x');
  graph.Add(Answer(1, {endless}));
  const std::string text = graph.ToString();
  EXPECT_NE(text.find("rank 0 has waited 3ms for rank 1 in"), std::string::npos)
      << text;
  EXPECT_LT(text.size(), 1000u);
}

TEST(WaitGraphTest, TheTextIsBounded) {
  constexpr int kRanks = 4096;
  WaitGraph graph(kRanks, /*roster=*/nullptr);
  // Every second rank waits for the next, in a collective of its own.
  for (int rank = 0; rank < kRanks; rank += 2) {
    graph.Add(Answer(rank, {Bucket(rank, {rank + 1})}));
  }
  const std::string text = graph.ToString();
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(lines.size(), WaitGraph::kLinesMax) << text;
  EXPECT_EQ(lines[0],
            "the root of the wait is ranks 1, 3, 5, 7, 9, 11, 13, 15, 2040 "
            "more, which are giving no answer");
  EXPECT_EQ(lines.back(), "and 2040 more such lines");
}

}  // namespace
}  // namespace troupe::actors
