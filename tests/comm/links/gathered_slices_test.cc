// Tests gathers of values that owners have slices of (ZeRO, stage 3) between
// processes of a host: by reference if the slices are shared in place, and over
// links if they are private; the values are the same.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "comm/fabric.h"
#include "comm/shm/shared_memory.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/arena/released_values.h"
#include "tests/comm/links/linked_group.h"

namespace troupe::comm {
namespace {

// It comes with the links of the suite.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommunicatorSuite);

constexpr absl::Duration kTimeout = absl::Minutes(2);

nn::Parameter OnesOf(const std::string& name, std::int64_t elems) {
  nn::Parameter p;
  p.name = name;
  p.shape = {elems};
  p.init = nn::Initializer::Constant(1);
  return p;
}

// One of two processes, with the arena of its rank.
class Owner {
 public:
  Owner(int number, std::unique_ptr<Link> link, bool shares) {
    FabricOptions fabric;
    fabric.process = number;
    fabric.process_of = {0, 1};
    fabric.links.resize(2);
    fabric.links[1 - number] = std::move(link);
    fabric.shared_memory = memory_;
    fabric_ = *Fabric::Make(std::move(fabric));
    FabricGroupOptions group;
    group.name = "owners";
    group.ranks = {0, 1};
    rank_ = std::move((*fabric_->MakeGroup(group))[number]);
    nn::ParameterArena::Options options;
    options.pad_elems = 32;
    options.owner = number;
    options.owners = 2;
    arena_ = *nn::ParameterArena::Create({{&a_}, {&b_}}, options, allocator_);
    EXPECT_TRUE(arena_->Initialize(/*seed=*/1).ok());
    values_ = std::make_unique<nn::ReleasedValues>(
        *arena_, nn::kPoisonsReleased,
        shares ? nn::SharePages([this](absl::Span<const absl::Span<char>> at) {
          return memory_->Share(at);
        })
               : nullptr);
    for (const int k : {0, 1}) values_->Release(k);
  }

  // Gathers both buckets `rounds` times, or until a gather has been by
  // reference, which all agree on, and once more; adds one to the own slices
  // after each.
  void Run(int rounds) {
    const nn::Tensor over = nn::Tensor::Zeros({1}, nn::DType::kI32, allocator_);
    for (int round = 0; *over.data<std::int32_t>() == 0; ++round) {
      for (const int k : {0, 1}) {
        values_->Hold(k);
        const nn::Tensor bucket = arena_->BucketValues(k);
        const nn::Tensor own = arena_->View(arena_->values(), arena_->Owned(k));
        const absl::Status status =
            rank_->RunInline(AllGather(own, bucket), kTimeout);
        ASSERT_TRUE(status.ok()) << status;
        for (const float value :
             arena_->slots()[k].parameter->value.span<float>()) {
          ASSERT_EQ(value, static_cast<float>(round + 1));
        }
        values_->Release(k);
        for (float& value : own.span<float>()) ++value;
      }
      *over.data<std::int32_t>() =
          rank_->rank() == 0 &&
          (rounds > 0 ? round + 1 == rounds : fabric_->by_reference() > 2);
      ASSERT_TRUE(
          rank_->RunInline(AllReduce(ReduceOp::kMax, over), kTimeout).ok());
    }
  }
  std::int64_t by_reference() const { return fabric_->by_reference(); }

 private:
  const std::shared_ptr<SharedMemory> memory_ =
      std::make_shared<SharedMemory>();
  nn::CachingAllocator allocator_;
  nn::Parameter a_ = OnesOf("a", (1 << 20) + 9), b_ = OnesOf("b", 100'003);
  std::unique_ptr<nn::ParameterArena> arena_;
  std::unique_ptr<nn::ReleasedValues> values_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Communicator> rank_;
};

// Returns the number of collectives by reference in process 0.
std::int64_t Gather(bool shares, int rounds) {
  LinkPair links = MakeShmPairOf(0, 1);
  Owner first(0, std::move(links.a), shares);
  Owner second(1, std::move(links.b), shares);
  std::thread peer([&] { second.Run(rounds); });
  first.Run(rounds);
  peer.join();
  return first.by_reference();
}

TEST(GatheredSlices, AreReadWhereTheyAre) {
  EXPECT_GT(Gather(/*shares=*/true, /*rounds=*/0), 0);
}

TEST(GatheredSlices, GoOverLinksIfTheyArePrivate) {
  EXPECT_EQ(Gather(/*shares=*/false, /*rounds=*/4), 0);
}

}  // namespace
}  // namespace troupe::comm
