// Tests sends and receives: matching, order and errors.

#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/comm/communicator_suite.h"
#include "tests/comm/reduction_test_data.h"

namespace troupe::comm {
namespace {

using nn::DType;
using nn::Tensor;
using testing::HasSubstr;

constexpr std::uint32_t kTag = 5;

Event Send(const Ranks& ranks, int from, int to, const Tensor& data,
           std::uint32_t tag = kTag, const Event& after = Event()) {
  return ranks[from]->StartSend(to, tag, data, after).value();
}
Event Recv(const Ranks& ranks, int to, int from, const Tensor& into,
           std::uint32_t tag = kTag, Arrival* arrival = nullptr) {
  return ranks[to]->StartRecv(from, tag, into, arrival).value();
}
std::string Message(const absl::Status& status) {
  return std::string(status.message());
}
float First(const Tensor& range) { return range.data<float>()[0]; }

TEST_P(CommunicatorSuite, MessagesArriveWhicheverSideStartsFirst) {
  const Ranks ranks = Make(2);
  std::vector<Event> events;
  std::vector<Tensor> sent, received;
  for (bool send_first : {true, false}) {
    for (DType dtype : kAllDTypes) {
      for (std::int64_t count : {0, 1, 63, 1000, 100003}) {
        const Tensor data = TestRange(dtype, count, 1, 0, allocator_);
        const Tensor into = TestRange(dtype, count, 2, 1, allocator_);
        if (send_first) events.push_back(Send(ranks, 0, 1, data));
        events.push_back(Recv(ranks, 1, 0, into));
        if (!send_first) events.push_back(Send(ranks, 0, 1, data));
        sent.push_back(data);
        received.push_back(into);
      }
    }
  }
  Step(ranks, /*seed=*/1, events);
  for (const Event& event : events) EXPECT_TRUE(event.status().ok());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_TRUE(nn::BitEqual(received[i], sent[i])) << "message " << i;
  }
}

TEST_P(CommunicatorSuite, MessagesAreTakenByTagAndInOrderWithinOne) {
  const Ranks ranks = Make(2);
  std::vector<Event> events;
  // Sends the values 0 to 5 with tags 0, 1, 2, 0, 1, 2.
  for (int i = 0; i < 6; ++i) {
    events.push_back(Send(ranks, 0, 1, Floats(i, 0), i % 3));
  }
  std::vector<Tensor> into;
  for (std::uint32_t tag : {2, 0, 1, 1, 0, 2}) {
    into.push_back(Floats(-1, 0));
    events.push_back(Recv(ranks, 1, 0, into.back(), tag));
  }
  Step(ranks, /*seed=*/1, events);
  std::vector<float> values;
  for (const Tensor& range : into) values.push_back(First(range));
  EXPECT_EQ(values, (std::vector<float>{2, 0, 1, 4, 3, 5}));
}

TEST_P(CommunicatorSuite, MessagesFromAnySourceSayWhoSentThem) {
  const Ranks ranks = Make(4);
  std::vector<Event> events;
  std::vector<Arrival> arrivals(3);
  std::vector<Tensor> into;
  for (int i = 0; i < 3; ++i) into.push_back(Floats(-1, 0, /*count=*/8));
  const auto receive = [&](int i) {
    events.push_back(Recv(ranks, 0, kAnySource, into[i], kTag, &arrivals[i]));
  };
  receive(0);
  for (int from : {3, 1, 2}) {
    events.push_back(Send(ranks, from, 0, Floats(10, from, /*count=*/from)));
  }
  receive(1);
  receive(2);
  Step(ranks, /*seed=*/1, events);
  std::set<int> sources;
  for (int i = 0; i < 3; ++i) {
    sources.insert(arrivals[i].source);
    // A message shorter than the buffer reports its count, and leaves the rest
    // of the buffer unchanged.
    EXPECT_EQ(arrivals[i].count, arrivals[i].source);
    EXPECT_EQ(First(into[i]), 10.0f + arrivals[i].source);
    EXPECT_EQ(into[i].data<float>()[arrivals[i].source], -1);
  }
  EXPECT_EQ(sources, (std::set<int>{1, 2, 3}));
}

TEST_P(CommunicatorSuite, AReceiveFromOneIsNotForAnother) {
  const Ranks ranks = Make(3);
  const Tensor into = Floats(-1, 0);
  const Event received = Recv(ranks, 0, 1, into);
  const Event other = Send(ranks, 2, 0, Floats(10, 2));
  for (const auto& rank : ranks) {
    while (rank->Progress()) {
    }
  }
  EXPECT_FALSE(received.ready());
  const Event sent = Send(ranks, 1, 0, Floats(10, 1));
  Step(ranks, /*seed=*/1, {received, sent});
  EXPECT_EQ(First(into), 11);
  Step(ranks, /*seed=*/1, {Recv(ranks, 0, 2, into), other});
  EXPECT_EQ(First(into), 12);
}

TEST_P(CommunicatorSuite, ARankMaySendToItself) {
  for (int size : {1, 3}) {
    const Ranks ranks = Make(size);
    const int self = size - 1;
    const Tensor into = Floats(-1, 0);
    const Event sent = Send(ranks, self, self, Floats(7, 0));
    const Event received = Recv(ranks, self, kAnySource, into);
    Step(ranks, /*seed=*/1, {sent, received});
    EXPECT_EQ(First(into), 7);
  }
}

// Each rank sends many messages of different lengths to each rank, and receives
// them in reverse order.
TEST_P(CommunicatorSuite, ManyMessagesInFlightFindTheirReceives) {
  constexpr int kSize = 4, kEach = 50;
  const Ranks ranks = Make(kSize);
  InThreads(ranks, [&](Communicator& comm, int rank) {
    std::vector<Event> events;
    std::vector<Tensor> into;
    nn::CachingAllocator allocator;
    const auto range = [&](int i, float value) {
      const Tensor made = Tensor::Empty({1 + 37 * i}, DType::kF32, allocator);
      for (float& x : made.span<float>()) x = value;
      return made;
    };
    for (int i = 0; i < kEach; ++i) {
      for (int to = 0; to < kSize; ++to) {
        events.push_back(
            comm.StartSend(to, i, range(i, 100.0f * rank + i), Event())
                .value());
      }
    }
    for (int i = kEach - 1; i >= 0; --i) {
      for (int from = 0; from < kSize; ++from) {
        into.push_back(range(i, -1));
        events.push_back(comm.StartRecv(from, i, into.back(), nullptr).value());
      }
    }
    for (const Event& event : events) EXPECT_TRUE(Await(comm, event).ok());
    for (std::size_t at = 0; at < into.size(); ++at) {
      const int from = at % kSize;
      const int i = kEach - 1 - static_cast<int>(at / kSize);
      EXPECT_EQ(First(into[at]), 100.0f * from + i);
      EXPECT_EQ(into[at].data<float>()[37 * i], 100.0f * from + i);
    }
    // Messages do not count as collectives: the group is still in step.
    EXPECT_TRUE(comm.RunInline(Barrier(), kTimeout).ok());
  });
}

TEST_P(CommunicatorSuite, MessagesPassCollectivesInFlight) {
  const Ranks ranks = Make(2);
  const Tensor sum = Floats(1, 0), other = Floats(1, 1), into = Floats(-1, 0);
  const Event first = *ranks[0]->Start(AllReduce(ReduceOp::kSum, sum), Event());
  const Event sent = Send(ranks, 1, 0, Floats(7, 0));
  const Event received = Recv(ranks, 0, 1, into);
  Step(ranks, /*seed=*/1, {sent, received});
  EXPECT_FALSE(first.ready());
  EXPECT_EQ(First(into), 7);
  const Event second =
      *ranks[1]->Start(AllReduce(ReduceOp::kSum, other), Event());
  Step(ranks, /*seed=*/2, {first, second});
  EXPECT_EQ(First(sum), 3);
}

TEST_P(CommunicatorSuite, MessagesWaitForWhatComesBeforeThemAndKeepTheirPlace) {
  const Ranks ranks = Make(2);
  const Event before = Event::Make();
  const Tensor late = Floats(0, 0), first = Floats(-1, 0),
               second = Floats(-1, 0);
  const std::vector<Event> sent = {Send(ranks, 0, 1, late, kTag, before),
                                   Send(ranks, 0, 1, Floats(2, 0))};
  const std::vector<Event> received = {Recv(ranks, 1, 0, first),
                                       Recv(ranks, 1, 0, second)};
  for (const auto& rank : ranks) {
    while (rank->Progress()) {
    }
  }
  EXPECT_FALSE(sent[0].ready() || received[0].ready());
  EXPECT_EQ(First(first), -1);
  late.data<float>()[0] = 1;
  before.Complete(absl::OkStatus());
  Step(ranks, /*seed=*/1, {sent[0], sent[1], received[0], received[1]});
  EXPECT_EQ(First(first), 1);
  EXPECT_EQ(First(second), 2);
}

TEST_P(CommunicatorSuite, AFailureBeforeASendAbortsTheGroup) {
  for (bool received : {false, true}) {
    const Ranks ranks = Make(2);
    const Event before = Event::Make();
    const Event sent = Send(ranks, 0, 1, Floats(0, 0), kTag, before);
    const Event peer = received ? Recv(ranks, 1, 0, Floats(0, 0))
                                : *ranks[1]->Start(Barrier(), Event());
    before.Complete(absl::DataLossError("no activation"));
    Step(ranks, /*seed=*/1, {sent, peer});
    EXPECT_EQ(peer.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(Message(peer.status()),
                HasSubstr("rank 0 could not begin send(to 1, tag 5, f32 x 4): "
                          "no activation"));
  }
}

TEST_P(CommunicatorSuite, AMessageThatDoesNotFitAbortsTheGroupAndNamesBoth) {
  const Tensor bytes = Tensor::Zeros({4}, DType::kU8, allocator_);
  for (bool send_first : {true, false}) {
    for (const Tensor& into : {Floats(0, 0, /*count=*/3), bytes}) {
      const Ranks ranks = Make(2);
      Event sent, received;
      if (send_first) sent = Send(ranks, 0, 1, Floats(0, 0));
      received = Recv(ranks, 1, 0, into);
      if (!send_first) sent = Send(ranks, 0, 1, Floats(0, 0));
      Step(ranks, /*seed=*/1, {sent, received});
      EXPECT_EQ(received.status().code(), absl::StatusCode::kInvalidArgument);
      // A transport that copies eagerly may have completed the send already.
      const bool done = sent.status().ok() && !GetParam().immediate;
      EXPECT_TRUE(done || sent.status() == received.status());
      EXPECT_THAT(
          Message(received.status()),
          HasSubstr(absl::StrCat(
              "rank 0 started send(to 1, tag 5, f32 x 4), which does not fit "
              "what rank 1 started: recv(from 0, tag 5, ",
              into.numel() == 3 ? "f32 x 3" : "u8 x 4", ")")));
    }
  }
}

TEST_P(CommunicatorSuite, RefusesMessagesThatNoGroupCanCarry) {
  const Ranks ranks = Make(2);
  const Tensor meta = Tensor::Meta({3}, DType::kF32, nn::Device());
  for (int peer : {-2, 2}) {
    EXPECT_EQ(
        ranks[0]->StartSend(peer, 0, Floats(0, 0), Event()).status().message(),
        absl::StrCat("a send to rank ", peer,
                     " of 2: no such rank; count them from 0"));
    EXPECT_EQ(
        ranks[0]->StartRecv(peer, 0, Floats(0, 0), nullptr).status().message(),
        absl::StrCat("a receive from rank ", peer,
                     " of 2: no such rank; count them from 0"));
  }
  for (const Tensor& wrong : {Tensor(), meta}) {
    EXPECT_EQ(ranks[0]->StartSend(1, 0, wrong, Event()).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ranks[0]->StartRecv(1, 0, wrong, nullptr).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_P(CommunicatorSuite, AnAbortEndsMessagesThatWait) {
  const Ranks ranks = Make(3);
  const Event before = Event::Make();
  const std::vector<Event> waiting = {
      Send(ranks, 0, 1, Floats(0, 0, kLongCount)),
      Recv(ranks, 0, 2, Floats(0, 0)),
      Recv(ranks, 2, kAnySource, Floats(0, 0), /*tag=*/9),
      // This pair has matched, and waits for `before`.
      Send(ranks, 1, 2, Floats(0, 0), kTag, before),
      Recv(ranks, 2, 1, Floats(0, 0))};
  const absl::Status why = absl::CancelledError("enough");
  ranks[1]->Abort(why);
  if (!GetParam().immediate) Step(ranks, /*seed=*/1, waiting);
  for (const Event& event : waiting) {
    EXPECT_TRUE(event.ready());
    EXPECT_EQ(event.status(), why);
  }
  before.Complete(absl::OkStatus());
  EXPECT_EQ(ranks[0]->StartSend(1, 0, Floats(0, 0), Event()).status(), why);
  EXPECT_EQ(ranks[0]->StartRecv(1, 0, Floats(0, 0), nullptr).status(), why);
}

TEST_P(CommunicatorSuite, AnAwaitThatIsLateAbortsTheGroup) {
  const Ranks ranks = Make(2);
  const Event received = Recv(ranks, 0, 1, Floats(0, 0));
  const absl::Status late =
      comm::Await(*ranks[0], received, absl::Milliseconds(1));
  EXPECT_EQ(late,
            absl::DeadlineExceededError("rank 0 waited 1ms for an event"));
  EXPECT_EQ(received.status(), late);
  if (GetParam().immediate) {
    EXPECT_EQ(ranks[1]->Start(Barrier(), Event()).status(), late);
  }
  EXPECT_EQ(ranks[1]->RunInline(Barrier(), kTimeout), late);
}

TEST_P(CommunicatorSuite, ARankThatGoesEndsMessagesThatWaitForIt) {
  for (int from : {1, kAnySource}) {
    Ranks ranks = Make(2);
    const Event received = Recv(ranks, 0, from, Floats(0, 0));
    ranks[1].reset();
    EXPECT_EQ(Await(*ranks[0], received).code(),
              absl::StatusCode::kUnavailable);
    EXPECT_THAT(Message(received.status()), HasSubstr("rank 1 left the group"));
  }
  Ranks ranks = Make(2);
  const Event sent = Send(ranks, 0, 1, Floats(0, 0, kLongCount));
  ranks[1].reset();
  EXPECT_EQ(Await(*ranks[0], sent).code(), absl::StatusCode::kUnavailable);
}

TEST_P(CommunicatorSuite, AMessageOfARankThatIsGoneFails) {
  for (int from : {1, kAnySource}) {
    Ranks ranks = Make(2);
    ranks[1].reset();
    const auto received =
        ranks[0]->StartRecv(from, kTag, Floats(0, 0), nullptr);
    const absl::Status status =
        received.ok() ? Await(*ranks[0], *received) : received.status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  }
  // In a group of three, one more rank may still send.
  Ranks ranks = Make(3);
  ranks[1].reset();
  const Tensor into = Floats(-1, 0);
  const Event received = Recv(ranks, 0, kAnySource, into);
  const Event sent = Send(ranks, 2, 0, Floats(7, 0));
  while (!received.ready() || !sent.ready()) {
    ranks[0]->Progress();
    ranks[2]->Progress();
  }
  EXPECT_EQ(First(into), 7);
}

TEST_P(CommunicatorSuite, ARankThatLeavesItsOwnMessageAbortsThePeers) {
  for (bool sends : {true, false}) {
    Ranks ranks = Make(3);
    const Event mine = sends ? Send(ranks, 0, 1, Floats(0, 0, kLongCount))
                             : Recv(ranks, 0, 1, Floats(0, 0));
    const Event theirs = *ranks[2]->Start(Barrier(), Event());
    ranks[0].reset();
    EXPECT_EQ(mine.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(Await(*ranks[2], theirs).code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(Message(theirs.status()),
                HasSubstr(sends ? "rank 0 left the group during send(to 1"
                                : "rank 0 left the group during recv(from 1"));
  }
}

}  // namespace
}  // namespace troupe::comm
