// Tests the rules of a group: dependencies, wakeups, reported waits and errors.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "tests/comm/communicator_suite.h"

namespace troupe::comm {
namespace {

using nn::Tensor;
using testing::HasSubstr;

TEST_P(CommunicatorSuite, KnowsItsRankAndSize) {
  const Ranks ranks = Make(3);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(ranks[r]->rank(), r);
    EXPECT_EQ(ranks[r]->size(), 3);
  }
}

TEST_P(CommunicatorSuite, NothingIsDoneBeforeAllRanksHaveStarted) {
  const Ranks ranks = Make(2);
  const Event first = *ranks[0]->Start(Barrier(), Event());
  ranks[0]->Progress();
  ranks[1]->Progress();
  EXPECT_FALSE(first.ready());
  const Event second = *ranks[1]->Start(Barrier(), Event());
  Step(ranks, /*seed=*/1, {first, second});
  EXPECT_TRUE(first.status().ok());
  EXPECT_TRUE(second.status().ok());
}

TEST_P(CommunicatorSuite, WaitsForWhatComesBeforeItAndHoldsUpNoOther) {
  const Ranks ranks = Make(2);
  const Event before = Event::Make();
  const Tensor a0 = Floats(1, 0);
  const Tensor a1 = Floats(1, 1);
  const Tensor b0 = Floats(10, 0);
  const Tensor b1 = Floats(10, 1);
  const auto start = [&](int rank, const Tensor& range, const Event& after) {
    return *ranks[rank]->Start(AllReduce(ReduceOp::kSum, range), after);
  };
  const std::vector<Event> a = {start(0, a0, before), start(1, a1, Event())};
  const std::vector<Event> b = {start(0, b0, Event()), start(1, b1, Event())};
  Step(ranks, /*seed=*/1, b);
  EXPECT_EQ(b0.data<float>()[0], 21);
  EXPECT_FALSE(a[0].ready() || a[1].ready());
  EXPECT_EQ(a1.data<float>()[0], 2);
  before.Complete(absl::OkStatus());
  Step(ranks, /*seed=*/2, a);
  EXPECT_EQ(a0.data<float>()[0], 3);
  EXPECT_EQ(a1.data<float>()[0], 3);
}

TEST_P(CommunicatorSuite, StepsOfOneThreadEndInTheOrderOfTheStarts) {
  const Ranks ranks = Make(2);
  std::vector<Event> events;
  // Between processes, the thread that ends a step may still be running
  // callbacks when the event is already ready.
  absl::Mutex mutex;
  int told = 0;
  std::vector<int> order;
  for (int i = 0; i < 10; ++i) {
    for (int r = 0; r < 2; ++r) {
      events.push_back(*ranks[r]->Start(
          AllReduce(ReduceOp::kSum, Floats(0, r, 5000)), Event()));
      events.back().OnReady([&mutex, &told, &order, i, r](const absl::Status&) {
        const absl::MutexLock lock(&mutex);
        ++told;
        if (r == 0) order.push_back(i);
      });
    }
  }
  while (ranks[0]->Progress()) {
  }
  Step(ranks, /*seed=*/1, events);
  const auto all_told = [&told] { return told == 20; };
  const absl::MutexLock lock(&mutex);
  EXPECT_TRUE(
      mutex.AwaitWithTimeout(absl::Condition(&all_told), absl::Minutes(1)));
  // Between processes, the order of completion is not fixed.
  if (!GetParam().immediate) std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_P(CommunicatorSuite, AWakeupTellsOfWork) {
  const Ranks ranks = Make(2);
  std::atomic<int> wakeups{0};
  ranks[0]->SetWakeup([&] { ++wakeups; });
  const Event first =
      *ranks[0]->Start(AllReduce(ReduceOp::kSum, Floats(0, 0)), Event());
  while (ranks[0]->Progress()) {
  }
  const int before = wakeups;
  const Event second =
      *ranks[1]->Start(AllReduce(ReduceOp::kSum, Floats(0, 1)), Event());
  // Between processes, only a thread that drives a rank reads from the link.
  if (GetParam().immediate) {
    EXPECT_GT(wakeups, before);
  }
  Step(ranks, /*seed=*/1, {first, second});
  ranks[0]->SetWakeup(nullptr);
}

// A wakeup may be the last that its owner waits for: the owner then unsets it
// from within the call.
TEST_P(CommunicatorSuite, AWakeupMayUnsetItself) {
  const Ranks ranks = Make(2);
  std::atomic<int> wakeups{0};
  ranks[0]->SetWakeup([&] {
    ranks[0]->SetWakeup(nullptr);
    ++wakeups;
  });
  ranks[1]->Abort(absl::CancelledError("over"));
  while (wakeups == 0 && !GetParam().immediate) ranks[0]->Progress();
  EXPECT_EQ(wakeups, 1);
}

TEST_P(CommunicatorSuite, NoWakeupRunsAfterItWasUnset) {
  const Ranks ranks = Make(2);
  std::atomic<bool> entered{false}, returned{false};
  ranks[0]->SetWakeup([&] {
    entered = true;
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    returned = true;
  });
  std::thread peer([&] {
    ranks[1]->Abort(absl::CancelledError("over"));
    while (!entered && !GetParam().immediate) {
      ranks[1]->Progress();
      ranks[0]->Progress();
    }
  });
  while (!entered) std::this_thread::yield();
  ranks[0]->SetWakeup(nullptr);
  EXPECT_TRUE(returned);
  peer.join();
}

// Each rank sleeps until its wakeup, as the loop of an actor does; wakeups
// alone bring every collective to its end.
TEST_P(CommunicatorSuite, WakeupsAloneDriveAGroup) {
  if (!GetParam().immediate) GTEST_SKIP() << "somebody is to look at the wire";
  const Ranks ranks = Make(3);
  InThreads(ranks, [&](Communicator& comm, int rank) {
    std::atomic<bool> awake{true};
    comm.SetWakeup([&] { awake = true; });
    for (int i = 0; i < 50; ++i) {
      const Event event = *comm.Start(
          AllReduce(ReduceOp::kSum, Floats(0, rank, 3000)), Event());
      event.OnReady([&](const absl::Status&) { awake = true; });
      while (!event.ready()) {
        while (!awake.exchange(false)) std::this_thread::yield();
        while (comm.Progress()) {
        }
      }
      // The callback uses `awake`, and may run until the event is ready.
      while (!event.ready()) std::this_thread::yield();
    }
    EXPECT_TRUE(comm.RunInline(Barrier(), kTimeout).ok());
    comm.SetWakeup(nullptr);
  });
}

TEST_P(CommunicatorSuite, ADifferenceFailsTheGroupAndNamesBoth) {
  const auto error = [&](auto collective_of_0, auto collective_of_1) {
    const Ranks ranks = Make(2);
    const auto first = ranks[0]->Start(collective_of_0, Event());
    const auto second = ranks[1]->Start(collective_of_1, Event());
    EXPECT_TRUE(first.ok());
    if (second.ok()) Step(ranks, /*seed=*/1, {*first, *second});
    EXPECT_EQ(first->status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ranks[1]->Start(Barrier(), Event()).status(), first->status());
    return std::string(first->status().message());
  };
  EXPECT_THAT(
      error(AllReduce(ReduceOp::kSum, Floats(0, 0, 4)), Barrier()),
      HasSubstr("rank 0 started all_reduce(sum, f32 x 4), rank 1 started "
                "barrier()"));
  EXPECT_THAT(error(AllReduce(ReduceOp::kSum, Floats(0, 0, 4)),
                    AllReduce(ReduceOp::kSum, Floats(0, 1, 5))),
              HasSubstr("rank 1 started all_reduce(sum, f32 x 5)"));
  EXPECT_THAT(error(AllReduce(ReduceOp::kSum, Floats(0, 0, 4)),
                    AllReduce(ReduceOp::kMax, Floats(0, 1, 4))),
              HasSubstr("rank 1 started all_reduce(max, f32 x 4)"));
  EXPECT_THAT(error(Broadcast(0, Floats(0, 0, 4)), Broadcast(1, Floats(0, 1))),
              HasSubstr("rank 1 started broadcast(root 1, f32 x 4)"));
}

TEST_P(CommunicatorSuite, ADifferenceFailsThreadsThatRunInline) {
  const Ranks ranks = Make(3);
  InThreads(ranks, [&](Communicator& comm, int rank) {
    const absl::Status status = comm.RunInline(
        AllReduce(ReduceOp::kSum, Floats(0, 0, rank == 2 ? 2000 : 4)),
        kTimeout);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 2 started all_reduce(sum, f32 x 2000)"));
  });
}

TEST_P(CommunicatorSuite, RefusesWhatNoGroupCanRun) {
  const Ranks ranks = Make(2);
  const auto code = [&](const Collective& collective) {
    EXPECT_EQ(ranks[0]->RunInline(collective, kTimeout).code(),
              ranks[0]->Start(collective, Event()).status().code());
    return ranks[0]->Start(collective, Event()).status().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(Broadcast(2, Floats(0, 0))), invalid);
  EXPECT_EQ(code(Broadcast(-1, Floats(0, 0))), invalid);
  EXPECT_EQ(code(AllReduce(ReduceOp::kSum, Tensor())), invalid);
  EXPECT_EQ(code(AllReduce(ReduceOp::kSum,
                           Tensor::Meta({3}, nn::DType::kF32, nn::Device()))),
            invalid);
  const Tensor bytes = Tensor::Zeros({3}, nn::DType::kU8, allocator_);
  EXPECT_EQ(code(AllReduce(ReduceOp::kAvg, bytes)), invalid);
  // Nothing was started: the group is unaffected.
  InThreads(ranks, [](Communicator& comm, int) {
    EXPECT_TRUE(comm.RunInline(Barrier(), kTimeout).ok());
  });
}

TEST_P(CommunicatorSuite, AbortEndsThoseWhoWaitFromAnotherThread) {
  const Ranks ranks = Make(3);
  std::atomic<int> waiting{0};
  InThreads(ranks, [&](Communicator& comm, int rank) {
    const absl::Status why = absl::CancelledError("enough");
    if (rank == 0) {
      // Ranks 1 and 2 wait for this rank, or will do so soon.
      while (waiting < 2) std::this_thread::yield();
      comm.Abort(why);
    } else if (rank == 1) {
      ++waiting;
      EXPECT_EQ(comm.RunInline(Barrier(), kTimeout), why);
    } else {
      const Event event = *comm.Start(Barrier(), Event());
      ++waiting;
      EXPECT_EQ(Await(comm, event), why);
    }
    EXPECT_EQ(comm.RunInline(Barrier(), kTimeout), why);
    EXPECT_EQ(comm.Start(Barrier(), Event()).status(), why);
    // A process may still have work for its other ranks.
    if (GetParam().immediate) {
      EXPECT_FALSE(comm.Progress());
    }
    while (comm.Progress()) {
    }
  });
}

TEST_P(CommunicatorSuite, RangesMayGoWhenAnAbortedCollectiveReturns) {
  for (int round = 0; round < 30; ++round) {
    const Ranks ranks = Make(2);
    std::atomic<int> inside{0};
    std::thread aborter([&] {
      while (inside < 2) std::this_thread::yield();
      ranks[0]->Abort(absl::CancelledError("enough"));
    });
    InThreads(ranks, [&](Communicator& comm, int rank) {
      for (bool first = true;; first = false) {
        // Memory that is freed at the end of this round, and then poisoned by a
        // sanitizer.
        nn::CachingAllocator allocator({/*cached_bytes_max=*/0, {}});
        const Tensor range =
            Tensor::Zeros({100003}, nn::DType::kF32, allocator);
        if (first) ++inside;
        const Collective sum = AllReduce(ReduceOp::kSum, range);
        if (rank == 0) {
          if (!comm.RunInline(sum, kTimeout).ok()) break;
        } else {
          const absl::StatusOr<Event> event = comm.Start(sum, Event());
          if (!event.ok() || !Await(comm, *event).ok()) break;
        }
      }
    });
    aborter.join();
  }
}

TEST_P(CommunicatorSuite, AFailureBeforeACollectiveAbortsTheGroup) {
  const Ranks ranks = Make(2);
  const Event before = Event::Make();
  const Event first = *ranks[0]->Start(Barrier(), before);
  const Event second = *ranks[1]->Start(Barrier(), Event());
  before.Complete(absl::DataLossError("no gradient"));
  Step(ranks, /*seed=*/1, {first, second});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("rank 0 could not begin barrier(): no gradient"));
}

TEST_P(CommunicatorSuite, ADeadlineNamesWhoDidNotCome) {
  const Ranks ranks = Make(4);
  const Event waiting = *ranks[2]->Start(Barrier(), Event());
  const absl::Status status =
      ranks[0]->RunInline(Barrier(), absl::Milliseconds(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  const std::string text(status.message());
  const std::string wait =
      "rank 0 waited 1ms for barrier(), collective 0 of the group: not started "
      "by ";
  if (GetParam().immediate) {
    EXPECT_EQ(text, wait + "ranks 1, 3");
  } else {
    // The list may include rank 2: its note is still in flight, or its process
    // has yet to send it. Each rank is named together with its process.
    EXPECT_THAT(text, testing::StartsWith(wait));
    for (const char* rank : {"1", "3"}) {
      EXPECT_THAT(
          text, testing::ContainsRegex(absl::StrCat(
                    "ranks? ([0-9], )*", rank, "(, [0-9])* in process [0-9]")));
    }
  }
  Reach(*ranks[2], waiting);
  EXPECT_EQ(waiting.status(), status);
}

TEST_P(CommunicatorSuite, ARankThatGoesDuringACollectiveAbortsIt) {
  Ranks ranks = Make(2);
  const Event event = *ranks[0]->Start(Barrier(), Event());
  ranks[1].reset();
  Reach(*ranks[0], event);
  EXPECT_EQ(event.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(event.status().message()),
              HasSubstr("rank 1 left the group"));
}

TEST_P(CommunicatorSuite, ACollectiveWithARankThatIsGoneFails) {
  Ranks ranks = Make(3);
  std::vector<Event> events;
  for (const auto& rank : ranks) {
    events.push_back(*rank->Start(Barrier(), Event()));
  }
  Step(ranks, /*seed=*/1, events);
  ranks[1].reset();
  for (const Event& event : events) EXPECT_TRUE(event.status().ok());
  const absl::Status status = ranks[0]->RunInline(Barrier(), kTimeout);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
}

TEST_P(CommunicatorSuite, ARankThatLeavesItsOwnCollectiveAbortsThePeers) {
  Ranks ranks = Make(3);
  const Event mine = *ranks[0]->Start(Barrier(), Event());
  const Event theirs = *ranks[1]->Start(Barrier(), Event());
  ranks[0].reset();
  EXPECT_EQ(mine.status().code(), absl::StatusCode::kUnavailable);
  Reach(*ranks[1], theirs);
  EXPECT_EQ(theirs.status().code(), absl::StatusCode::kUnavailable);
}

// Tests Waits(), from which a job finds out which ranks wait for each other.
TEST_P(CommunicatorSuite, ARankSaysWhatItWaitsForAndSinceWhen) {
  const auto begin = std::chrono::steady_clock::now();
  const Ranks ranks = Make(3);
  EXPECT_TRUE(ranks[0]->Waits().empty());
  const Event sum =
      *ranks[0]->Start(AllReduce(ReduceOp::kSum, Floats(0, 0)), Event());
  const Event received =
      *ranks[0]->StartRecv(2, /*tag=*/5, Floats(0, 0), nullptr);
  const Event any =
      *ranks[0]->StartRecv(kAnySource, /*tag=*/6, Floats(0, 0), nullptr);
  const Event sent =
      *ranks[0]->StartSend(1, /*tag=*/7, Floats(0, 0, kLongCount), Event());
  const std::vector<Waiting> waits = ranks[0]->Waits();
  ASSERT_EQ(waits.size(), 4);
  EXPECT_EQ(waits[0].what,
            "all_reduce(sum, f32 x 4), collective 0 of the group");
  EXPECT_EQ(waits[0].collective, 0);
  EXPECT_EQ(waits[0].ranks, (std::vector<int>{1, 2}));
  EXPECT_EQ(waits[1].what, "recv(from 2, tag 5, f32 x 4)");
  EXPECT_EQ(waits[1].collective, -1);
  EXPECT_EQ(waits[1].ranks, (std::vector<int>{2}));
  EXPECT_EQ(waits[2].ranks, (std::vector<int>{1, 2}));
  EXPECT_EQ(waits[3].what, "send(to 1, tag 7, f32 x 10000)");
  EXPECT_EQ(waits[3].ranks, (std::vector<int>{1}));
  for (const Waiting& wait : waits) {
    EXPECT_GE(wait.since, begin);
    EXPECT_LE(wait.since, std::chrono::steady_clock::now());
  }
  ranks[1]->Abort(absl::CancelledError("enough"));
  Step(ranks, /*seed=*/1, {sum, received, any, sent});
  // The waits may also be read after they have ended.
  const std::vector<Waiting> waited = ranks[0]->Waits();
  ASSERT_EQ(waited.size(), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(waited[i].what, waits[i].what);
    EXPECT_EQ(waited[i].ranks, waits[i].ranks);
    EXPECT_EQ(waited[i].since, waits[i].since);
  }
  EXPECT_TRUE(ranks[1]->Waits().empty());
}

TEST_P(CommunicatorSuite, OthersSeeWhatARankWaitsForInline) {
  const Ranks ranks = Make(2);
  const auto begin = std::chrono::steady_clock::now();
  std::thread late([&] {
    for (;;) {
      const std::vector<Waiting> waits = ranks[0]->Waits();
      if (waits.empty()) continue;
      EXPECT_EQ(waits[0].what, "barrier(), collective 0 of the group");
      EXPECT_EQ(waits[0].ranks, std::vector<int>{1});
      EXPECT_GE(waits[0].since, begin);
      break;
    }
    EXPECT_TRUE(ranks[1]->RunInline(Barrier(), kTimeout).ok());
  });
  EXPECT_TRUE(ranks[0]->RunInline(Barrier(), kTimeout).ok());
  late.join();
  EXPECT_TRUE(ranks[0]->Waits().empty());
}

}  // namespace
}  // namespace troupe::comm
