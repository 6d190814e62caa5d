// The suite on groups that span simulated processes, in several layouts: bits,
// rules and errors are those of the local group.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tests/comm/communicator_suite.h"
#include "tests/comm/sim_world.h"
#include "tests/comm/wrapped_communicator.h"

namespace troupe::comm {
namespace {

// A rank that keeps its world.
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

// Where rank r of n lives.
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

std::shared_ptr<SharedMemory> OneMemory() {
  static const auto memory = std::make_shared<SharedMemory>();
  return memory;
}

// All of it by reference.
template <Layout kLayout>
Backend ByReference(const char* name) {
  return {name,
          [](int size) {
            SimWorldOptions options;
            for (int r = 0; r < size; ++r) {
              options.process_of.push_back(kLayout(r, size));
            }
            options.eager_bytes = 0;
            options.seed = 2;  // memory is lent at once
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
                    ByReference<EachItsOwn>("each_its_own_by_reference"),
                    ByReference<Pairs>("pairs_by_reference"),
                    ByReference<Alternating>("alternating_by_reference")),
    [](const auto& info) { return info.param.name; });

// The numbers of collectives of these priorities, started in this order, in the
// order in which a rank has their results.
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
      // 64 pieces: many more than are on their way at a time.
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

}  // namespace
}  // namespace troupe::comm
