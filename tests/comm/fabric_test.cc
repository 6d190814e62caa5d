// Tests a fabric: its options, its parcels, and its reaction to frames that no
// fabric would send.

#include "comm/fabric.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/spanning/frames/wire.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/comm/reduction_test_data.h"
#include "tests/comm/shelf.h"
#include "tests/comm/sim_world.h"

namespace troupe::comm {
namespace {

using nn::DType;
using nn::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

// A link that records the frames it should send, and its sink.
class StillLink final : public Link {
 public:
  int peer() const override { return 1; }
  std::string ToString() const override { return "still"; }
  void SetSink(FrameSink* sink) override { this->sink = sink; }
  void Send(const Frame& frame, const char* payload, SendDone* done,
            bool) override {
    sent.emplace_back(frame, frame.bytes > 0 ? std::string(payload, frame.bytes)
                                             : std::string());
    if (done != nullptr) done->OnSent();
  }
  bool Progress() override {
    if (closed.ok() || told) return false;
    told = true;
    sink->OnLost(1, closed);
    return true;
  }
  bool Arm(pollfd*, absl::Duration*) override { return true; }
  void Close(const absl::Status& why) override {
    if (closed.ok()) closed = why;
  }

  bool Lend(const SharedRange&) override { return lends; }
  std::shared_ptr<char> Borrow(std::uint64_t id, std::uint64_t offset,
                               std::size_t bytes) const override {
    if (id != 7 || offset > lent.bytes() || bytes > lent.bytes() - offset) {
      return nullptr;
    }
    return {std::shared_ptr<void>(), static_cast<char*>(lent.raw()) + offset};
  }
  bool BorrowedHolds() const override { return true; }

  // Hands a frame to the sink, as a link does.
  void Arrive(const Frame& frame, const std::string& payload) {
    char* const place =
        frame.bytes > 0 ? sink->Place(/*peer=*/1, frame) : nullptr;
    if (place != nullptr) std::memcpy(place, payload.data(), frame.bytes);
    sink->Take(1, frame, place == nullptr ? payload.data() : nullptr);
  }

  FrameSink* sink = nullptr;
  std::vector<std::pair<Frame, std::string>> sent;
  absl::Status closed;
  bool told = false;
  bool lends = false;
  Tensor lent;  // memory that the peer lends as range 7
};

FabricOptions OneOfTwo(StillLink** link) {
  FabricOptions options;
  options.process_of = {0, 1};
  auto made = std::make_unique<StillLink>();
  *link = made.get();
  options.links.resize(2);
  options.links[1] = std::move(made);
  options.run_thread = false;
  options.abort_grace = absl::ZeroDuration();
  return options;
}

TEST(Fabric, RefusesOptionsThatDoNotFit) {
  const auto error = [](auto change) {
    StillLink* link;
    FabricOptions options = OneOfTwo(&link);
    change(&options);
    const auto made = Fabric::Make(std::move(options));
    return std::string(made.status().message());
  };
  EXPECT_EQ(error([](FabricOptions* o) { o->process = 2; }),
            "a fabric's process: must be 0 to 1, not 2");
  EXPECT_THAT(error([](FabricOptions* o) { o->process = 1; }),
              HasSubstr("a fabric's links"));
  EXPECT_EQ(error([](FabricOptions* o) {
              o->process_of = {0, 5};
            }),
            "a fabric's process_of: processes must be 0 to 1, not 5");
  EXPECT_THAT(error([](FabricOptions* o) { o->piece_bytes = 2 << 20; }),
              HasSubstr("piece_bytes"));
}

TEST(Fabric, RefusesGroupsThatDoNotFit) {
  StillLink* link;
  const auto fabric = *Fabric::Make(OneOfTwo(&link));
  EXPECT_EQ(fabric->MakeGroup({"dp", {0, 2}}).status().message(),
            "group dp: rank 2 of 2 in all");
  EXPECT_EQ(fabric->MakeGroup({"dp", {0, 0}}).status().message(),
            "group dp: rank 0 comes twice");
  EXPECT_THAT(std::string(fabric->MakeGroup({"dp", {}}).status().message()),
              HasSubstr("group dp: has 0 ranks"));
}

TEST(Fabric, OneProcessNeedsNoLinks) {
  FabricOptions options;
  options.process_of = {0, 0};
  const auto fabric = *Fabric::Make(std::move(options));
  const Group group = *fabric->MakeGroup({"dp", {1, 0}});
  const Event first = *group[0]->Start(Barrier(), Event());
  const Event second = *group[1]->Start(Barrier(), Event());
  while (group[0]->Progress()) {
  }
  EXPECT_TRUE(first.ready() && second.ready());
  EXPECT_FALSE(fabric->SendParcel(1, 0, "", Tensor(), Event()).ok());
}

SimWorldOptions TwoProcesses() {
  SimWorldOptions options;
  options.process_of = {0, 1};
  options.eager_bytes = 100;
  options.piece_bytes = 256;
  return options;
}

TEST(Fabric, ParcelsComeInOrderWhateverTheyWaitFor) {
  SimWorld world(TwoProcesses());
  nn::CachingAllocator allocator;
  const Event before = Event::Make();
  const Tensor large = TestRange(DType::kU8, 5000, 1, 0, allocator);
  const Tensor small = TestRange(DType::kU8, 10, 2, 0, allocator);
  Fabric& sender = world.fabric(0);
  const Event one = *sender.SendParcel(1, 3, "one", large, before);
  const Event two = *sender.SendParcel(1, 3, "two", small, Event());
  const Event three = *sender.SendParcel(1, 3, "three", Tensor(), Event());
  while (world.Progress()) {
  }
  EXPECT_FALSE(one.ready() || two.ready() || three.ready());
  before.Complete(absl::OkStatus());
  while (world.Progress()) {
  }
  EXPECT_FALSE(one.ready()) << "nobody has room for it yet";
  const auto shelf = std::make_shared<Shelf>();
  world.fabric(1).SetParcelHandler(3, shelf);
  while (world.Progress()) {
  }
  EXPECT_TRUE(one.ready() && two.ready() && three.ready());
  ASSERT_THAT(shelf->headers, ElementsAre("one", "two", "three"));
  EXPECT_TRUE(nn::BitEqual(shelf->payloads[0], large));
  EXPECT_TRUE(nn::BitEqual(shelf->payloads[1], small));
}

TEST(Fabric, AParcelThatIsRefusedEndsTheLink) {
  SimWorldOptions options = TwoProcesses();
  std::vector<std::string> lost;
  options.on_lost = [&](int, int, const absl::Status& why) {
    lost.push_back(std::string(why.message()));
  };
  SimWorld world(options);
  world.fabric(1).SetParcelHandler(3, std::make_shared<Shelf>());
  const Event event =
      *world.fabric(0).SendParcel(1, 3, "refused", Tensor(), Event());
  while (world.Progress()) {
  }
  ASSERT_EQ(lost.size(), 2);
  EXPECT_THAT(lost[0], HasSubstr("on channel 3 was refused: no room"));
}

TEST(Fabric, AnAbortReachesThePeers) {
  SimWorld world(TwoProcesses());
  const Group group = world.MakeGroup({"dp", {0, 1}});
  const Event event = *group[1]->Start(Barrier(), Event());
  world.fabric(0).Abort(absl::DataLossError("the disk is gone"));
  while (world.Progress()) {
  }
  EXPECT_EQ(event.status(), absl::DataLossError("the disk is gone"));
  EXPECT_FALSE(world.fabric(1).SendParcel(0, 1, "", Tensor(), Event()).ok());
}

// A process that has finished may exit without harm to those that have not.
TEST(Fabric, AProcessThatEndsInOrderEndsNoGroup) {
  SimWorldOptions options;
  options.process_of = {0, 1, 2};
  SimWorld world(options);
  Group group = world.MakeGroup({"dp", {0, 1, 2}});
  std::vector<Event> events;
  for (const auto& rank : group) {
    events.push_back(*rank->Start(Barrier(), Event()));
  }
  world.network().Cut(1, 2);
  while (world.Progress()) {
  }
  EXPECT_TRUE(events[0].ready());
  EXPECT_FALSE(events[1].ready());
  group[0].reset();
  world.EndProcess(0);
  while (world.Progress()) {
  }
  EXPECT_FALSE(events[1].ready());
  world.network().Heal(1, 2);
  while (world.Progress()) {
  }
  EXPECT_TRUE(events[1].ready() && events[1].status().ok());
  EXPECT_TRUE(events[2].ready() && events[2].status().ok());
}

// A root that is slow, or waits for other ranks, gets no more pieces than it
// has granted credit for.
TEST(Fabric, PartsWaitForCreditOfWhoComputesThem) {
  constexpr int kAhead = 64, kPieces = 90;
  StillLink* link;
  FabricOptions options = OneOfTwo(&link);
  options.eager_bytes = 0;
  options.piece_bytes = 512;
  const auto fabric = *Fabric::Make(std::move(options));
  const Group group = *fabric->MakeGroup({"dp", {0, 1}});
  nn::CachingAllocator allocator;
  const Tensor input = TestRange(DType::kF32, kPieces * 128, 1, 0, allocator);
  const Event event = *group[0]->Start(
      Reduce(ReduceOp::kSum, /*root=*/1, input, Tensor()), Event());
  const auto partials = [&] {
    while (fabric->Progress()) {
    }
    return std::count_if(
        link->sent.begin(), link->sent.end(), [](const auto& sent) {
          return internal::TypeOf(sent.first) == internal::FrameType::kPartial;
        });
  };
  Frame note = link->sent.front().first;
  note.part = 1;
  link->Arrive(note, "");
  EXPECT_EQ(partials(), kAhead);
  const Frame credit =
      internal::MakeFrame(internal::FrameType::kCredit, note.group, note.seq);
  for (int more = 1; more < kPieces - kAhead; ++more) {
    link->Arrive(credit, "");
    EXPECT_EQ(partials(), kAhead + more);
  }
  EXPECT_FALSE(event.ready());
  link->Arrive(credit, "");
  EXPECT_EQ(partials(), kPieces);
  EXPECT_TRUE(event.ready() && event.status().ok());
  link->Arrive(credit, "");
  EXPECT_THAT(std::string(link->closed.message()),
              HasSubstr("broke the protocol of group dp: a credit"));
}

Frame RandomFrame(std::uint64_t* state, const Frame& like) {
  Frame frame = like;
  const auto spoil = [&](auto* field) {
    const std::uint64_t bits = NextBits(state);
    using Field = std::remove_pointer_t<decltype(field)>;
    if (bits % 3 == 0) *field = static_cast<Field>(NextBits(state) % 5);
    if (bits % 7 == 0) *field = static_cast<Field>(NextBits(state));
    if (bits % 11 == 0) *field = static_cast<Field>(*field + 1);
  };
  spoil(&frame.type);
  spoil(&frame.part);
  spoil(&frame.group);
  spoil(&frame.tag);
  spoil(&frame.seq);
  for (std::uint64_t& word : frame.words) spoil(&word);
  if (NextBits(state) % 4 == 0) frame.bytes = NextBits(state) % 5000;
  return frame;
}

// Number of floats that the peer lends: more than fit into a note.
constexpr std::int64_t kLent = 10000;

// A process whose peer lends its range as range 7 of the link.
struct ByReference {
  ByReference() {
    FabricOptions options = OneOfTwo(&link);
    options.shared_memory = memory;
    link->lends = true;
    link->lent = TestRange(DType::kF32, kLent, 1, /*rank=*/1, allocator);
    fabric = *Fabric::Make(std::move(options));
    group = *fabric->MakeGroup({"dp", {0, 1}});
    done = *group[0]->Start(AllReduce(ReduceOp::kSum, mine), Event());
  }

  // Answers with the note that this process sent, with other references to the
  // range.
  void Answer(internal::Reference input, internal::Reference output) const {
    Frame note = link->sent.front().first;
    EXPECT_EQ(note.tag, 1u);
    note.part = 1;
    std::string payload(reinterpret_cast<const char*>(&input), sizeof(input));
    payload.append(reinterpret_cast<const char*>(&output), sizeof(output));
    note.bytes = static_cast<std::uint32_t>(payload.size());
    link->Arrive(note, payload);
    while (fabric->Progress()) {
    }
  }
  void LetGo() const {
    const std::uint32_t group = link->sent.front().first.group;
    link->Arrive(internal::MakeFrame(internal::FrameType::kLetGo, group, 0),
                 "");
    fabric->Progress();
  }

  StillLink* link = nullptr;
  nn::CachingAllocator allocator;
  const std::shared_ptr<SharedMemory> memory = std::make_shared<SharedMemory>();
  const Tensor mine =
      TestRange(DType::kF32, kLent, 1, /*rank=*/0, memory->allocator());
  std::unique_ptr<Fabric> fabric;
  Group group;
  Event done;
};

TEST(Fabric, ReadsAndWritesWhatIsLent) {
  ByReference world;
  const Tensor expected = ExpectedResult(
      ReduceOp::kSum, {world.mine, world.link->lent}, world.allocator);
  world.Answer({7, 0}, {7, 0});
  EXPECT_EQ(internal::TypeOf(world.link->sent.back().first),
            internal::FrameType::kLetGo);
  for (const Tensor& range : {world.mine, world.link->lent}) {
    EXPECT_EQ(std::memcmp(range.raw(), expected.raw(), kLent / 2 * 4), 0);
  }
  EXPECT_FALSE(world.done.ready());
  world.LetGo();
  ASSERT_TRUE(world.done.ready());
  EXPECT_TRUE(world.done.status().ok()) << world.done.status();
  EXPECT_EQ(world.fabric->by_reference(), 1);
}

TEST(Fabric, AReferenceToWhatIsNotLentEndsTheGroup) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  const internal::Reference good{7, 0};
  for (const internal::Reference bad :
       {internal::Reference{0, 0}, internal::Reference{8, 0},
        internal::Reference{7, 4}, internal::Reference{7, kLent * 4},
        internal::Reference{7, kHuge}, internal::Reference{kHuge, kHuge}}) {
    for (const bool output : {false, true}) {
      ByReference world;
      const Tensor before =
          TestRange(DType::kF32, kLent, 1, 1, world.allocator);
      world.Answer(output ? good : bad, output ? bad : good);
      // This process has stopped using the memory. It fails the collective once
      // the peer has stopped too.
      const Frame last = world.link->sent.back().first;
      EXPECT_EQ(internal::TypeOf(last), internal::FrameType::kLetGoAll);
      EXPECT_FALSE(world.done.ready());
      world.link->Arrive(last, "");
      while (world.fabric->Progress()) {
      }
      ASSERT_TRUE(world.done.ready());
      EXPECT_THAT(std::string(world.done.status().message()),
                  HasSubstr("a reference to memory that it does not lend"));
      EXPECT_TRUE(nn::BitEqual(world.link->lent, before));
    }
  }
}

TEST(Fabric, OneWhoLetsGoBeforeItsNoteLosesItsLink) {
  ByReference world;
  world.LetGo();
  EXPECT_THAT(std::string(world.link->closed.message()),
              HasSubstr("it lets go of collective 0"));
}

TEST(Fabric, GarbageFromAPeerNeverHurts) {
  const std::vector<std::uint64_t> seeds = Seeds(3000);
  std::size_t closed = 0;
  for (const std::uint64_t seed : seeds) {
    SCOPED_TRACE(ReplayCommand(seed));
    std::uint64_t state = seed;
    StillLink* link;
    FabricOptions options = OneOfTwo(&link);
    options.eager_bytes = seed % 2 == 0 ? 64 : 0;
    options.piece_bytes = 512;
    static const auto memory = std::make_shared<SharedMemory>();
    nn::Allocator& allocator = memory->allocator();
    link->lends = seed % 3 == 0;
    options.shared_memory = memory;
    link->lent = TestRange(DType::kF32, 300, 1, 1, allocator);
    const auto fabric = *Fabric::Make(std::move(options));
    fabric->SetParcelHandler(0, std::make_shared<Shelf>());
    const Group group = *fabric->MakeGroup({"dp", {0, 1}});
    std::vector<Event> events;
    const Tensor range = TestRange(DType::kF32, 300, 1, 0, allocator);
    events.push_back(
        *group[0]->Start(AllReduce(ReduceOp::kSum, range), Event()));
    const Tensor got = Tensor::Zeros({300}, DType::kF32, allocator);
    events.push_back(*group[0]->Start(Broadcast(1, got), Event()));
    events.push_back(*group[0]->StartRecv(1, 0, got, nullptr));
    // The frames that this process sends are those that its peer would send:
    // they are sent back to it, some of them mutated.
    for (int i = 0; i < 60; ++i) {
      const auto& [like, payload] =
          link->sent[NextBits(&state) % link->sent.size()];
      Frame frame = i % 3 == 0 ? like : RandomFrame(&state, like);
      std::string bytes = payload;
      bytes.resize(frame.bytes, static_cast<char>(NextBits(&state)));
      link->Arrive(frame, bytes);
      for (int k = 0; k < 4; ++k) fabric->Progress();
    }
    if (!link->closed.ok()) {
      ++closed;
      EXPECT_NE(link->closed.message(), "");
    }
    link->Close(absl::UnavailableError("over"));
    while (fabric->Progress()) {
    }
    for (const Event& event : events) EXPECT_TRUE(event.ready());
  }
  if (seeds.size() > 1) {
    EXPECT_GT(closed, seeds.size() / 3);
  }
}

}  // namespace
}  // namespace troupe::comm
