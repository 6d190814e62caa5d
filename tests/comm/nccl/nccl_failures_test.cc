// Tests how an emulated NCCL group fails: by an error, a time-out, or a rank
// that starts something else, leaves or never starts. A new group works after
// each.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/cuda/emulated/emulated_nccl.h"
#include "comm/nccl/nccl_group.h"
#include "comm/nccl/start_words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/comm/nccl/nccl_ranks.h"

namespace troupe::comm {
namespace {

using nn::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

// Makes a new group on the queues of the failed one, and expects that it sums.
void ExpectAnotherGroupWorks(NcclRanks& ranks) {
  ranks.group.clear();
  ranks.Join(*OpenNcclGroup(ranks.options(/*generation=*/2), ranks.store));
  std::vector<Tensor> values;
  std::vector<Event> done;
  for (std::size_t r = 0; r < ranks.group.size(); ++r) {
    values.push_back(ranks.On<float>(r, {1.f + r}));
    done.push_back(*ranks.group[r]->Start(AllReduce(ReduceOp::kSum, values[r]),
                                          ranks.Ready(r)));
  }
  for (std::size_t r = 0; r < ranks.group.size(); ++r) {
    EXPECT_THAT(ranks.Values<float>(r, values[r], done[r]), ElementsAre(3));
  }
}

// Starts collectives on both ranks until a start fails, and returns its status.
absl::Status StartUntilRefused(NcclRanks& ranks,
                               const std::vector<Tensor>& values) {
  while (true) {
    std::vector<Event> done;
    for (int r = 0; r < 2; ++r) {
      const auto event =
          ranks.group[r]->Start(AllReduce(ReduceOp::kSum, values[r]), Event());
      if (!event.ok()) return event.status();
      done.push_back(*event);
    }
    ranks.Await(done).IgnoreError();
  }
}

TEST(NcclFailuresTest, AnAsynchronousErrorEndsTheGroup) {
  for (std::uint64_t seed : Seeds(50)) {
    SCOPED_TRACE(ReplayCommand(seed));
    NcclRanks ranks(seed, 2);
    ranks.Join();
    const std::vector<Tensor> values = {ranks.On<float>(0, {1}),
                                        ranks.On<float>(1, {2})};
    ASSERT_TRUE(ranks.Await({ranks.Ready(0), ranks.Ready(1)}).ok());
    emulated_cuda::FailCollective(1 + seed % 5, ncclRemoteError);
    const absl::Status status = StartUntilRefused(ranks, values);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("group \"replicas\" (ranks 0, 1 of the job), rank"));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("all_reduce(sum, f32 x 1), collective"));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("remote process exited"));
    for (int r = 0; r < 2; ++r) {
      EXPECT_EQ(ranks.group[r]->Start(Barrier(), Event()).status(), status);
    }
    ExpectAnotherGroupWorks(ranks);
  }
}

TEST(NcclFailuresTest, EveryPendingEventHasTheStatus) {
  for (std::uint64_t seed : Seeds(50)) {
    SCOPED_TRACE(ReplayCommand(seed));
    NcclRanks ranks(seed, 2);
    ranks.Join();
    const Tensor value = ranks.On<float>(0, {1});
    std::vector<Event> done;
    for (int i = 0; i < 3; ++i) {
      done.push_back(*ranks.group[0]->Start(AllReduce(ReduceOp::kSum, value),
                                            ranks.Ready(0)));
    }
    for (std::uint64_t i = 0; i < seed % 7; ++i) ranks.devices[0]->Progress();
    // The device goes on while the events complete: it may not report success
    // for those that follow.
    done[0].OnReady([&](const absl::Status&) {
      for (int i = 0; i < 50; ++i) ranks.devices[0]->Progress();
    });
    const absl::Status why = absl::CancelledError("enough");
    std::thread([&] { ranks.group[1]->Abort(why); }).join();
    for (const Event& event : done) {
      ASSERT_TRUE(event.ready());
      EXPECT_EQ(event.status(), why);
    }
    EXPECT_EQ(ranks.group[0]->Start(Barrier(), Event()).status(), why);
    EXPECT_EQ(ranks.group[0]->Waits().size(), 3u);
    ExpectAnotherGroupWorks(ranks);
  }
}

TEST(NcclFailuresTest, ARankThatNeverStartsIsNamed) {
  for (std::uint64_t seed : Seeds(10)) {
    SCOPED_TRACE(ReplayCommand(seed));
    NcclRanks ranks(seed, 2);
    NcclGroupOptions options = ranks.options();
    absl::Time now = absl::UnixEpoch();
    options.timeout = absl::Minutes(3);
    options.now = [&now] { return now; };
    ranks.Join(*OpenNcclGroup(options, ranks.store));
    const Tensor value = ranks.On<float>(1, {1});
    const Event done = *ranks.group[1]->Start(AllReduce(ReduceOp::kSum, value),
                                              ranks.Ready(1));
    const std::vector<Waiting> waits = ranks.group[1]->Waits();
    ASSERT_EQ(waits.size(), 1u);
    EXPECT_EQ(waits[0].what,
              "all_reduce(sum, f32 x 1), collective 0 of the group");
    EXPECT_THAT(waits[0].ranks, ElementsAre(0));
    // Both ranks join, and then make no progress.
    for (int i = 0; i < 100; ++i) {
      for (const auto& device : ranks.devices) device->Progress();
    }
    EXPECT_FALSE(done.ready());
    now += absl::Minutes(3);
    const absl::Status status = ranks.Await({done});
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_EQ(status.message(),
              "group \"replicas\" (ranks 0, 1 of the job), rank 1: "
              "all_reduce(sum, f32 x 1), collective 0 of the group waited 3m "
              "for the other ranks; rank 0 has not started it, as far as this "
              "process knows");
    ExpectAnotherGroupWorks(ranks);
  }
}

TEST(NcclFailuresTest, ARankThatNeverJoinsIsWaitedForNoLonger) {
  NcclRanks ranks(/*seed=*/3, /*size=*/2);
  NcclGroupOptions options = ranks.options();
  absl::Time now = absl::UnixEpoch();
  options.timeout = absl::Minutes(3);
  options.now = [&now] { return now; };
  ranks.group = *OpenNcclGroup(options, ranks.store);
  ASSERT_TRUE(ranks.group[0]->UseDevice(&ranks.works[0]));
  const Event done = *ranks.group[0]->Start(Barrier(), Event());
  for (int i = 0; i < 100; ++i) ranks.devices[0]->Progress();
  EXPECT_FALSE(done.ready());
  now += absl::Minutes(3);
  const absl::Status status = ranks.Await({done});
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 has not"));
  ranks.group[1] = nullptr;
}

TEST(NcclFailuresTest, RanksThatDifferEndTheGroup) {
  NcclRanks ranks(/*seed=*/1, /*size=*/2);
  ranks.Join();
  const Tensor a = ranks.On<float>(0, {1}), b = ranks.On<float>(1, {1});
  const Event first =
      *ranks.group[0]->Start(AllReduce(ReduceOp::kSum, a), ranks.Ready(0));
  const absl::Status status =
      ranks.group[1]->Start(AllReduce(ReduceOp::kMax, b), Event()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "group \"replicas\": the ranks differ in collective 0 of the "
            "group: rank 0 started all_reduce(sum, f32 x 1), rank 1 started "
            "all_reduce(max, f32 x 1)");
  EXPECT_EQ(first.status(), status);
  ExpectAnotherGroupWorks(ranks);
}

// Starts different collectives on two ranks of two processes, and returns the
// status with which the group fails.
absl::Status Differ(std::uint64_t seed, const std::vector<Collective>& first,
                    const std::vector<Collective>& second) {
  NcclRanks ranks(seed, 2);
  // The emulation reports that the ranks call NCCL with different arguments.
  ranks.world.ExpectBroken();
  ranks.Join(ranks.OfProcesses(ranks.options()));
  std::vector<Event> done;
  for (int r = 0; r < 2; ++r) {
    const Tensor range = ranks.On<float>(r, {1, 2, 3, 4});
    for (Collective collective : r == 0 ? first : second) {
      // The test passes meta tensors, of which only the counts are used.
      if (collective.range.defined()) {
        collective.range = range.FlatView(0, collective.range.shape());
      }
      const auto event = ranks.group[r]->Start(collective, ranks.Ready(r));
      if (event.ok()) done.push_back(*event);
    }
  }
  const absl::Status status = ranks.Await(done);
  // Both processes report the same error.
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(ranks.group[r]->Start(Barrier(), Event()).status(), status);
  }
  ExpectAnotherGroupWorks(ranks);
  return status;
}

Tensor Floats(std::int64_t count) {
  return Tensor::Meta({count}, nn::DType::kF32, nn::Device());
}

TEST(NcclFailuresTest, ProcessesThatDifferAreNamed) {
  const Collective sum = AllReduce(ReduceOp::kSum, Floats(4));
  const std::string head =
      "group \"replicas\": the ranks differ in collective ";
  for (std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    // Differences in operator, size, kind and order.
    absl::Status status =
        Differ(seed, {sum}, {AllReduce(ReduceOp::kMax, Floats(4))});
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(),
              head +
                  "0 of the group: rank 0 started all_reduce(sum, f32 x 4), "
                  "rank 1 started all_reduce(max, f32 x 4)");
    status = Differ(seed, {sum}, {AllReduce(ReduceOp::kSum, Floats(3))});
    EXPECT_EQ(status.message(),
              head +
                  "0 of the group: rank 0 started all_reduce(sum, f32 x 4), "
                  "rank 1 started all_reduce(sum, f32 x 3)");
    status = Differ(seed, {sum, Broadcast(0, Floats(2)), sum}, {sum, sum});
    EXPECT_EQ(status.message(),
              head +
                  "1 of the group: rank 0 started broadcast(root 0, f32 x "
                  "2), rank 1 started all_reduce(sum, f32 x 4)");
    status = Differ(seed, {sum, Barrier()}, {Barrier(), sum});
    EXPECT_EQ(status.message(),
              head +
                  "0 of the group: rank 0 started all_reduce(sum, f32 x 4), "
                  "rank 1 started barrier()");
  }
}

TEST(NcclFailuresTest, WhatStartsTogetherIsCompared) {
  const Collective sum = AllReduce(ReduceOp::kSum, Floats(4));
  const Collective less = AllReduce(ReduceOp::kSum, Floats(3));
  const auto compare = [](const std::vector<Collective>& first,
                          const std::vector<Collective>& second) {
    std::vector<std::int64_t> words;
    for (const auto& all : {first, second}) {
      const auto of_rank = internal::WordsOf(all);
      words.insert(words.end(), of_rank.begin(), of_rank.end());
    }
    return std::string(internal::CompareStarts(7, words).message());
  };
  EXPECT_EQ(compare({sum, less}, {sum, less}), "");
  EXPECT_EQ(compare({sum, less}, {sum}),
            "the ranks differ in collective 7 of the group: rank 0 started "
            "all_reduce(sum, f32 x 4) and 1 more with it, rank 1 started "
            "all_reduce(sum, f32 x 4)");
  EXPECT_EQ(compare({sum, less}, {sum, sum}),
            "the ranks differ in collective 7 of the group: rank 0 started "
            "all_reduce(sum, f32 x 4) and 1 more with it, rank 1 started "
            "all_reduce(sum, f32 x 4) and 1 more with it, of which one "
            "differs");
  // Garbage, as a broken device would give.
  EXPECT_THAT(
      std::string(internal::CompareStarts(7, {-1, -1, -1, 0, 1, 2}).message()),
      HasSubstr("rank 0 started what is no collective"));
}

TEST(NcclFailuresTest, ARankThatLeavesIsMissed) {
  NcclRanks ranks(/*seed=*/1, /*size=*/2);
  ranks.Join();
  const Event done = *ranks.group[0]->Start(Barrier(), Event());
  ranks.group[1] = nullptr;
  EXPECT_EQ(done.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(done.status().message()), HasSubstr("rank 1 left"));
}

TEST(NcclFailuresTest, WhatWasWaitedForFails) {
  NcclRanks ranks(/*seed=*/1, /*size=*/2);
  ranks.Join();
  const Event after = Event::Make();
  const Event done = *ranks.group[0]->Start(Barrier(), after);
  after.Complete(absl::DataLossError("the gradient is lost"));
  EXPECT_EQ(done.status().message(), "the gradient is lost");
  EXPECT_EQ(ranks.group[1]->Start(Barrier(), Event()).status(), done.status());
}

TEST(NcclFailuresTest, ARankIsAheadOfItsPeersByAFew) {
  NcclRanks ranks(/*seed=*/1, /*size=*/2);
  NcclGroupOptions options = ranks.options();
  options.in_flight_max = 2;
  ranks.Join(*OpenNcclGroup(options, ranks.store));
  ASSERT_TRUE(ranks.group[0]->Start(Barrier(), Event()).ok());
  ASSERT_TRUE(ranks.group[0]->Start(Barrier(), Event()).ok());
  EXPECT_EQ(ranks.group[0]->Start(Barrier(), Event()).status().code(),
            absl::StatusCode::kResourceExhausted);
  std::vector<Event> done = {*ranks.group[1]->Start(Barrier(), Event())};
  EXPECT_TRUE(ranks.Await(done).ok());
  EXPECT_TRUE(ranks.group[0]->Start(Barrier(), Event()).ok());
}

TEST(NcclFailuresTest, TheIdComesFromTheStore) {
  NcclRanks ranks(/*seed=*/1, /*size=*/1);
  NcclGroupOptions options = ranks.options();
  options.ranks = {0, 1};
  options.local = {1};
  options.timeout = absl::Milliseconds(1);
  EXPECT_EQ(OpenNcclGroup(options, ranks.store).status(),
            absl::DeadlineExceededError(
                "group \"replicas\": rank 0 has not made it within 1ms; make "
                "it in all its ranks, and all groups in one order"));
  ASSERT_TRUE(ranks.store.Set("nccl/1/replicas/0,1", "short").ok());
  const absl::Status status = OpenNcclGroup(options, ranks.store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "group \"replicas\": an id of NCCL's has 128 bytes, and 5 came; "
            "give all processes one version of NCCL");
}

// A process that is first waits for the id on its device.
TEST(NcclFailuresTest, TheIdMayComeLater) {
  for (std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    NcclRanks ranks(seed, 2);
    absl::Time now = absl::UnixEpoch();
    NcclGroupOptions options = ranks.options();
    options.later_id = std::shared_ptr<Store>(&ranks.store, [](Store*) {});
    options.now = [&now] { return now; };
    const auto join = [&](int rank) {
      options.local = {rank};
      Group group = *OpenNcclGroup(options, ranks.store);
      group[rank]->UseDevice(&ranks.works[rank]);
      return group;
    };
    options.name = "another";
    const Group never = join(1);
    now += options.timeout;
    // The work ends, and later work of the queue is free to run.
    EXPECT_TRUE(ranks.Await({ranks.works[1].Record()}).ok());
    const absl::Status status = never[1]->Start(Barrier(), Event()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("group \"another\": rank 0 has not made it"));
    options.name = "replicas";
    const Group second = join(1);
    const Event late = *second[1]->Start(Barrier(), Event());
    for (int i = 0; i < 100; ++i) ranks.devices[1]->Progress();
    EXPECT_FALSE(late.ready());
    const Group first = join(0);
    const Event early = *first[0]->Start(Barrier(), Event());
    EXPECT_TRUE(ranks.Await({late, early}).ok());
  }
}

}  // namespace
}  // namespace troupe::comm
