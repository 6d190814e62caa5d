// Tests the data that every kind of collective moves: each rank gets the bits
// of the definition, in place and not, driven by threads or step by step.

#include "tests/comm/communicator_suite.h"
#include "tests/comm/moves.h"
#include "tests/comm/reduction_test_data.h"

namespace troupe::comm {
namespace {

using nn::DType;

TEST_P(CommunicatorSuite, MovesWhatEachKindSaysInThreads) {
  for (int size = 1; size <= 8; ++size) {
    const std::vector<Move> moves = MovesOf(size, {0, 1, 63, 1000}, allocator_);
    const Ranks ranks = Make(size);
    InThreads(ranks, [&](Communicator& comm, int rank) {
      for (std::size_t i = 0; i < moves.size(); ++i) {
        const Collective& mine = moves[i].collectives[rank];
        if ((i + rank) % 2 == 0) {
          EXPECT_TRUE(comm.RunInline(mine, kTimeout).ok()) << moves[i].spec;
        } else {
          const absl::StatusOr<Event> event = comm.Start(mine, Event());
          EXPECT_TRUE(event.ok() && Await(comm, *event).ok()) << moves[i].spec;
        }
      }
    });
    for (const Move& move : moves) ExpectMoved(move);
  }
}

TEST_P(CommunicatorSuite, MovesWhatEachKindSaysAllInFlightTogether) {
  for (int size : {1, 2, 5, 7}) {
    for (std::uint64_t seed : {1, 2}) {
      const std::vector<Move> moves = MovesOf(size, {1, 1000}, allocator_);
      const Ranks ranks = Make(size);
      std::vector<Event> events;
      for (const Move& move : moves) {
        for (int r = 0; r < size; ++r) {
          const auto event = ranks[r]->Start(move.collectives[r], Event());
          ASSERT_TRUE(event.ok()) << event.status();
          events.push_back(*event);
        }
      }
      Step(ranks, seed, events);
      for (const Event& event : events) EXPECT_TRUE(event.status().ok());
      for (const Move& move : moves) ExpectMoved(move);
    }
  }
}

TEST_P(CommunicatorSuite, EachKindTakesEveryOpAndDType) {
  const Ranks ranks = Make(3);
  for (CollectiveKind kind : kMovingKinds) {
    std::vector<Move> moves;
    for (DType dtype : kAllDTypes) {
      for (ReduceOp op : kAllOps) {
        MoveSpec spec{kind, 3, 63, dtype, op};
        const bool has_op = kind == CollectiveKind::kAllReduce ||
                            kind == CollectiveKind::kReduce ||
                            kind == CollectiveKind::kReduceScatter;
        if (!Exists(spec) || (!has_op && op != ReduceOp::kMax)) continue;
        moves.push_back(MakeMove(spec, allocator_));
      }
    }
    InThreads(ranks, [&](Communicator& comm, int rank) {
      for (const Move& move : moves) {
        EXPECT_TRUE(comm.RunInline(move.collectives[rank], kTimeout).ok());
      }
    });
    for (const Move& move : moves) ExpectMoved(move);
  }
}

// A rank that runs collectives which are alike one after the other may keep the
// plan of the last one, but neither its ranges nor its messages.
TEST_P(CommunicatorSuite, CollectivesThatAreAlikeMoveTheirOwnRanges) {
  for (int size : {2, 3}) {
    std::vector<Move> moves;
    for (CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kBroadcast,
          CollectiveKind::kAllGather, CollectiveKind::kAllToAll}) {
      for (std::int64_t count : {63, 63, 1000, 1000, 20000, 20000, 63}) {
        moves.push_back(
            MakeMove(MoveSpec{kind, size, count, DType::kF32}, allocator_));
      }
    }
    InThreads(Make(size), [&](Communicator& comm, int rank) {
      for (const Move& move : moves) {
        EXPECT_TRUE(comm.RunInline(move.collectives[rank], kTimeout).ok());
      }
    });
    for (const Move& move : moves) ExpectMoved(move);
  }
}

TEST_P(CommunicatorSuite, MovesAMillionElements) {
  constexpr std::int64_t kMillion = 1000000;
  for (const MoveSpec& spec :
       {MoveSpec{CollectiveKind::kAllReduce, 2, kMillion, DType::kF32},
        MoveSpec{CollectiveKind::kReduce, 2, kMillion, DType::kI32,
                 ReduceOp::kBxor, 1, /*in_place=*/true},
        MoveSpec{CollectiveKind::kBroadcast, 3, kMillion, DType::kF64,
                 ReduceOp::kSum, 2},
        MoveSpec{CollectiveKind::kAllGather, 3, kMillion, DType::kU8,
                 ReduceOp::kSum, 0, /*in_place=*/true},
        MoveSpec{CollectiveKind::kGather, 2, kMillion, DType::kI64},
        MoveSpec{CollectiveKind::kScatter, 3, kMillion, DType::kBF16,
                 ReduceOp::kSum, 1, /*in_place=*/true},
        MoveSpec{CollectiveKind::kReduceScatter, 2, kMillion / 2, DType::kF16,
                 ReduceOp::kAvg, 0, /*in_place=*/true},
        MoveSpec{CollectiveKind::kAllToAll, 3, kMillion / 3, DType::kF32},
        MoveSpec{CollectiveKind::kAllToAll, 3, kMillion / 3, DType::kF32,
                 ReduceOp::kSum, 0, false, /*by_counts=*/true}}) {
    const Move move = MakeMove(spec, allocator_);
    InThreads(Make(spec.size), [&](Communicator& comm, int rank) {
      EXPECT_TRUE(comm.RunInline(move.collectives[rank], kTimeout).ok());
    });
    ExpectMoved(move);
  }
}

std::vector<Collective> Of(const std::vector<Move>& moves, int rank) {
  std::vector<Collective> all;
  for (const Move& move : moves) all.push_back(move.collectives[rank]);
  return all;
}

TEST_P(CommunicatorSuite, CoalescedCollectivesEndWithOneEvent) {
  const Ranks ranks = Make(3);
  const std::vector<Move> moves = MovesOf(3, {1, 63}, allocator_);
  const Event before = Event::Make();
  std::vector<Event> events;
  for (int r = 0; r < 3; ++r) {
    const auto event =
        StartCoalesced(*ranks[r], Of(moves, r), r == 1 ? before : Event());
    ASSERT_TRUE(event.ok()) << event.status();
    events.push_back(*event);
  }
  for (const auto& rank : ranks) rank->Progress();
  for (const Event& event : events) EXPECT_FALSE(event.ready());
  before.Complete(absl::OkStatus());
  Step(ranks, /*seed=*/1, events);
  for (const Event& event : events) EXPECT_TRUE(event.status().ok());
  for (const Move& move : moves) ExpectMoved(move);
  EXPECT_TRUE(StartCoalesced(*ranks[0], {}, Event())->ready());
}

TEST_P(CommunicatorSuite, AWrongOneAmongCoalescedStartsNone) {
  const Ranks ranks = Make(2);
  const auto event = StartCoalesced(
      *ranks[0], {Barrier(), Broadcast(2, Floats(0, 0))}, Event());
  EXPECT_EQ(event.status().code(), absl::StatusCode::kInvalidArgument);
  // The group is unaffected.
  InThreads(ranks, [](Communicator& comm, int) {
    EXPECT_TRUE(comm.RunInline(Barrier(), kTimeout).ok());
  });
}

TEST_P(CommunicatorSuite, AnAbortEndsCoalescedCollectives) {
  const Ranks ranks = Make(2);
  const auto event = StartCoalesced(*ranks[0], {Barrier(), Barrier()}, Event());
  ranks[1]->Abort(absl::CancelledError("enough"));
  ASSERT_TRUE(event.ok());
  Reach(*ranks[0], *event);
  EXPECT_TRUE(event->ready());
  EXPECT_EQ(event->status(), absl::CancelledError("enough"));
}

}  // namespace
}  // namespace troupe::comm
