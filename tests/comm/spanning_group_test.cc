// Runs the suite on groups that span simulated processes, in several layouts:
// bits, rules and errors are those of the local group. Processes compare the
// options that decide which frames they send.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/spanning/plan/algorithm.h"
#include "gmock/gmock.h"
#include "tests/comm/communicator_suite.h"
#include "tests/comm/sim_world.h"
#include "tests/comm/wrapped_communicator.h"

namespace troupe::comm {
namespace {

// A rank that keeps its SimWorld alive.
class Inhabitant final : public WrappedCommunicator {
 public:
  Inhabitant(std::unique_ptr<Communicator> inner,
             std::shared_ptr<SimWorld> world)
      : WrappedCommunicator(std::move(inner)), world_(std::move(world)) {}

  absl::Status RunInline(const Collective& collective,
                         absl::Duration timeout) override {
    return inner().RunInline(collective, timeout);
  }

 private:
  const std::shared_ptr<SimWorld> world_;
};

Ranks MakeRanks(SimWorldOptions options) {
  FabricGroupOptions group;
  group.name = "suite";
  for (std::size_t r = 0; r < options.process_of.size(); ++r) {
    group.ranks.push_back(static_cast<int>(r));
  }
  const auto world = std::make_shared<SimWorld>(std::move(options));
  Ranks ranks;
  for (std::unique_ptr<Communicator>& rank : world->MakeGroup(group)) {
    ranks.push_back(std::make_unique<Inhabitant>(std::move(rank), world));
  }
  return ranks;
}

// Returns the process of rank r of n.
using Layout = int (*)(int r, int n);
int EachItsOwn(int r, int) { return r; }
int OneAndTheRest(int r, int) { return r == 0 ? 0 : 1; }
int Pairs(int r, int) { return r / 2; }
int Alternating(int r, int) { return r % 2; }
int Halves(int r, int n) { return 2 * r < n ? 0 : 1; }

template <Layout kLayout>
int Processes(int size) {
  int processes = 0;
  for (int r = 0; r < size; ++r) {
    processes = std::max(processes, 1 + kLayout(r, size));
  }
  return processes;
}

template <Layout kLayout, std::size_t kEagerBytes, std::size_t kPieceBytes>
Ranks Make(int size) {
  SimWorldOptions options;
  for (int r = 0; r < size; ++r) {
    options.process_of.push_back(kLayout(r, size));
  }
  options.eager_bytes = kEagerBytes;
  options.piece_bytes = kPieceBytes;
  return MakeRanks(std::move(options));
}

template <Layout kLayout, std::size_t kEagerBytes, std::size_t kPieceBytes>
Backend Over(const char* name) {
  return {name, Make<kLayout, kEagerBytes, kPieceBytes>, /*immediate=*/false,
          Processes<kLayout>};
}

// A backend of two processes, each of which computes a half and sends it on.
Backend InTwoSteps(const char* name) {
  return {name,
          [](int size) {
            SimWorldOptions options;
            for (int r = 0; r < size; ++r) {
              options.process_of.push_back(Halves(r, size));
            }
            options.eager_bytes = 0;
            options.piece_bytes = 1000;
            options.edit = [](int, FabricOptions& fabric) {
              fabric.two_step = true;
            };
            return MakeRanks(std::move(options));
          },
          /*immediate=*/false, Processes<Halves>};
}

std::shared_ptr<SharedMemory> OneMemory() {
  static const auto memory = std::make_shared<SharedMemory>();
  return memory;
}

// A backend that sends all data by reference.
template <Layout kLayout>
Backend ByReference(const char* name) {
  return {name,
          [](int size) {
            SimWorldOptions options;
            for (int r = 0; r < size; ++r) {
              options.process_of.push_back(kLayout(r, size));
            }
            options.eager_bytes = 0;
            options.seed = 2;  // with this seed, memory is lent at once
            options.shared_memory = OneMemory();
            return MakeRanks(std::move(options));
          },
          /*immediate=*/false, Processes<kLayout>,
          []() -> nn::Allocator& { return OneMemory()->allocator(); }};
}

constexpr std::size_t kEager = 16 << 10, kPiece = 256 << 10;

INSTANTIATE_TEST_SUITE_P(
    Spanning, CommunicatorSuite,
    testing::Values(Over<EachItsOwn, kEager, kPiece>("each_its_own"),
                    Over<OneAndTheRest, kEager, kPiece>("one_and_the_rest"),
                    Over<Pairs, kEager, kPiece>("pairs"),
                    Over<Alternating, kEager, kPiece>("alternating"),
                    Over<EachItsOwn, 0, 2048>("each_its_own_in_pieces"),
                    Over<Pairs, 64, 4000>("pairs_in_pieces"),
                    Over<Halves, 1000, 1000>("halves_in_pieces"),
                    InTwoSteps("halves_in_two_steps"),
                    ByReference<EachItsOwn>("each_its_own_by_reference"),
                    ByReference<Pairs>("pairs_by_reference"),
                    ByReference<Alternating>("alternating_by_reference")),
    [](const auto& info) { return info.param.name; });

// Starts collectives with these priorities, in this order, and returns their
// indices in the order in which they end on rank 0.
std::vector<int> OrderOfEnds(const std::vector<int>& priorities) {
  SimWorldOptions options;
  options.process_of = {0, 1};
  options.eager_bytes = 0;
  options.piece_bytes = 256;
  SimWorld world(options);
  const Group group = world.MakeGroup({"wire", {0, 1}});
  nn::CachingAllocator allocator;
  std::vector<nn::Tensor> kept;
  std::vector<Event> events;
  std::vector<int> order;
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    for (const std::unique_ptr<Communicator>& rank : group) {
      // 64 pieces: many more than are in flight at a time.
      kept.push_back(nn::Tensor::Zeros({4096}, nn::DType::kF32, allocator));
      Collective sum = AllReduce(ReduceOp::kSum, kept.back());
      sum.priority = priorities[i];
      const absl::StatusOr<Event> event = rank->Start(sum, Event());
      EXPECT_TRUE(event.ok()) << event.status();
      if (rank->rank() != 0) continue;
      event->OnReady([&order, i](const absl::Status& status) {
        EXPECT_TRUE(status.ok()) << status;
        order.push_back(static_cast<int>(i));
      });
    }
  }
  while (order.size() < priorities.size()) {
    world.network().Step();
    world.Progress();
  }
  return order;
}

TEST(SpanningGroupTest, TheMostUrgentGoesFirstOnTheWire) {
  EXPECT_EQ(OrderOfEnds({0, 0, 0}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(OrderOfEnds({0, 1, 2}), (std::vector<int>{2, 1, 0}));
  EXPECT_EQ(OrderOfEnds({1, 0, 1}), (std::vector<int>{0, 2, 1}));
}

// Returns the number of frames of an all-reduce of `bytes` in two processes.
std::uint64_t FramesOf(std::size_t bytes, std::uint64_t seed) {
  SimWorldOptions options;
  options.process_of = {0, 1};
  options.seed = seed;
  options.eager_bytes = std::nullopt;
  SimWorld world(options);
  const Group group = world.MakeGroup({"frames", {0, 1}});
  nn::CachingAllocator allocator;
  std::vector<Event> events;
  for (const std::unique_ptr<Communicator>& rank : group) {
    const nn::Tensor range = nn::Tensor::Zeros(
        {static_cast<std::int64_t>(bytes) / 4}, nn::DType::kF32, allocator);
    events.push_back(*rank->Start(AllReduce(ReduceOp::kSum, range), Event()));
  }
  while (world.Progress()) {
  }
  for (const Event& event : events) EXPECT_TRUE(event.status().ok());
  return world.network().delivered();
}

TEST(SpanningGroupTest, TheLinkLimitsTheDataInANote) {
  std::set<std::size_t> limits;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimNetwork network(/*processes=*/2, seed);
    const auto links = network.LinksOf(0);
    const std::size_t limit = links[1]->eager_bytes();
    EXPECT_EQ(network.LinksOf(1)[0]->eager_bytes(), limit);
    EXPECT_EQ(FramesOf(limit, seed), 2u) << limit;
    EXPECT_EQ(FramesOf(limit + 4, seed), 4u) << limit;
    limits.insert(limit);
  }
  EXPECT_GT(limits.size(), 1u);
}

TEST(SpanningGroupTest, TwoProcessesShareTheAdditionsOfALargeTree) {
  using internal::Algorithm;
  const auto choose = [](bool tree, int targets, std::size_t bytes) {
    return internal::ChooseAlgorithm({tree, targets, /*members=*/2, bytes});
  };
  constexpr std::size_t kFrom = 2 << 20;
  EXPECT_EQ(choose(/*tree=*/true, 2, kFrom), Algorithm::kTwoStep);
  EXPECT_EQ(choose(/*tree=*/true, 2, kFrom - 1), Algorithm::kExchange);
  EXPECT_EQ(choose(/*tree=*/true, 1, kFrom), Algorithm::kExchange);
  EXPECT_EQ(choose(/*tree=*/false, 2, 100 * kFrom), Algorithm::kExchange);
  EXPECT_EQ(internal::ChooseAlgorithm({/*tree=*/true, 1, /*members=*/1, kFrom}),
            Algorithm::kExchange);
}

TEST(SpanningGroupTest, NamesOptionsThatDifferBetweenProcesses) {
  struct Case {
    std::function<void(FabricOptions& of_process_1)> edit;
    const char* differs;
  };
  const Case cases[] = {
      {[](FabricOptions& o) { o.eager_bytes = 99; },
       "eager_bytes = 99, piece_bytes = 256, two_step = unset"},
      {[](FabricOptions& o) { o.piece_bytes = 512; },
       "eager_bytes = 100, piece_bytes = 512, two_step = unset"},
      {[](FabricOptions& o) { o.two_step = true; },
       "eager_bytes = 100, piece_bytes = 256, two_step = true"},
      {[](FabricOptions& o) { o.two_step = false; },
       "eager_bytes = 100, piece_bytes = 256, two_step = false"},
  };
  for (const Case& c : cases) {
    SimWorldOptions options;
    options.process_of = {0, 1};
    options.eager_bytes = 100;
    options.piece_bytes = 256;
    options.edit = [&](int process, FabricOptions& fabric) {
      if (process == 1) c.edit(fabric);
    };
    SimWorld world(std::move(options));
    const Group group = world.MakeGroup({"dp", {0, 1}});
    const Event events[] = {*group[0]->Start(Barrier(), Event()),
                            *group[1]->Start(Barrier(), Event())};
    while (world.Progress()) {
    }
    const std::string mine =
        "process 0 (host h0, pid 10) has "
        "eager_bytes = 100, piece_bytes = 256, two_step = unset";
    const std::string theirs =
        absl::StrCat("process 1 (host h1, pid 11) has ", c.differs);
    const std::string what = "; set the same FabricOptions in all processes";
    for (const Event& event : events) {
      EXPECT_EQ(event.status().code(), absl::StatusCode::kFailedPrecondition);
      // The error is that of the process which noticed first.
      EXPECT_THAT(std::string(event.status().message()),
                  testing::AnyOf(absl::StrCat(theirs, ", but ", mine, what),
                                 absl::StrCat(mine, ", but ", theirs, what)));
    }
  }
}

}  // namespace
}  // namespace troupe::comm
