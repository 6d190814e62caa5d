#include "actors/engine/loop/agreed_order.h"

#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/actors/engine/test_groups.h"
#include "tests/actors/engine/thread_host.h"

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;

// A rank of two, which reduces inline.
class Ordered {
 public:
  Ordered(const AgreedOrder::Options& options, const RankGroups& groups)
      : order_(AgreedOrder::Create(options, *kernels_).value()),
        reducer_({&groups, /*run_inline=*/true}, nullptr, &wait_) {}

  // Runs `times` backwards that complete these buckets; rank 1 leads. Returns
  // the number of changes.
  int Run(int times, const std::vector<int>& complete) {
    int changes = 0;
    for (int i = 0; i < times; ++i) {
      changes += order_->TakeAgreed().value() ? 1 : 0;
      EXPECT_TRUE(order_->BeginBackward(/*leader=*/1, i, reducer_).ok());
      EXPECT_FALSE(order_->broadcast().in_flight());
      order_->Observe(/*counts=*/true);
      for (const int bucket : complete) order_->BucketComplete(bucket);
      order_->EndBackward(/*synced=*/true);
    }
    return changes;
  }
  AgreedOrder& get() { return *order_; }

 private:
  const std::shared_ptr<nn::Kernels> kernels_ = nn::CreateReferenceKernels();
  const std::unique_ptr<AgreedOrder> order_;
  ThreadWait wait_;
  Reducer reducer_;
};

TEST(AgreedOrderTest, AllRanksTakeTheLeadersInTheSameBackward) {
  const std::vector<RankGroups> groups = MakeTestGroups(pipeline::Mesh(2, 1));
  std::vector<std::thread> ranks;
  for (const int rank : {0, 1}) {
    ranks.emplace_back([&groups, rank] {
      Ordered ordered({/*ranks=*/2, /*buckets=*/3}, groups[rank]);
      const std::vector<int> complete =
          rank == 1 ? std::vector<int>{2, 0, 1} : std::vector<int>{1, 2, 0};
      EXPECT_THAT(ordered.get().order(), ElementsAre(0, 1, 2));
      EXPECT_EQ(ordered.Run(LaunchOrder::kPeriod + 1, complete), 0);
      EXPECT_EQ(ordered.Run(1, complete), 1);
      EXPECT_THAT(ordered.get().order(), ElementsAre(2, 0, 1));
      ordered.get().GoByNumber();
      EXPECT_EQ(ordered.Run(3 * LaunchOrder::kPeriod, complete), 0);
      EXPECT_THAT(ordered.get().order(), ElementsAre(0, 1, 2));
    });
  }
  for (std::thread& rank : ranks) rank.join();
}

// The peer of a broadcast would be missing here.
TEST(AgreedOrderTest, NothingIsAgreedOnWithoutPeersOrChoice) {
  const std::vector<RankGroups> groups = MakeTestGroups(pipeline::Mesh(2, 1));
  for (const AgreedOrder::Options& options :
       {AgreedOrder::Options{/*ranks=*/1, /*buckets=*/3},
        AgreedOrder::Options{/*ranks=*/2, /*buckets=*/1},
        AgreedOrder::Options{/*ranks=*/2, /*buckets=*/3, /*fixed=*/2}}) {
    Ordered ordered(options, groups[1]);
    const std::vector<int> by_number = ordered.get().order();
    EXPECT_EQ(static_cast<int>(by_number.size()), options.buckets);
    EXPECT_EQ(ordered.Run(3 * LaunchOrder::kPeriod, {0}), 0);
    EXPECT_EQ(ordered.get().order(), by_number);
  }
}

}  // namespace
}  // namespace troupe::actors
