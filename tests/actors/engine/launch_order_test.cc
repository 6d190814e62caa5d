#include "actors/engine/loop/launch_order.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "pipeline/buckets.h"
#include "tests/actors/engine/loop_ranks.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;

// The order of a leader, whose broadcasts end at once.
class Leader {
 public:
  explicit Leader(int buckets, int fixed = 0,
                  std::shared_ptr<nn::Kernels> kernels = nullptr)
      : kernels_(kernels ? std::move(kernels) : nn::CreateReferenceKernels()),
        order_(LaunchOrder::Create({buckets, fixed}, *kernels_).value()) {}

  // Runs `times` backwards that complete these buckets. Returns the number of
  // changes.
  int Run(int times, const std::vector<int>& complete, bool counts = true) {
    int changes = 0;
    for (int i = 0; i < times; ++i) {
      changes += order_->TakeAgreed().value();
      if (order_->BeginBackward()) {
        EXPECT_TRUE(order_->Publish().ok());
        order_->NoteSent(order_->ready());
      }
      order_->BucketComplete(0);  // it has no gradients, unless it comes again
      order_->Observe(counts);
      for (const int bucket : complete) order_->BucketComplete(bucket);
      order_->EndBackward();
    }
    return changes;
  }
  // Expects that of `times` such backwards the last one alone changes it.
  void ExpectChangeAtLast(int times, const std::vector<int>& complete) {
    EXPECT_EQ(Run(times - 1, complete), 0);
    EXPECT_EQ(Run(1, complete), 1);
  }
  const std::vector<int>& order() const { return order_->order(); }

 private:
  const std::shared_ptr<nn::Kernels> kernels_;
  const std::unique_ptr<LaunchOrder> order_;
};

TEST(LaunchOrderTest, FollowsWhatTwentyBackwardsHaveCompleted) {
  Leader leader(3);
  EXPECT_THAT(leader.order(), ElementsAre(0, 1, 2));
  leader.ExpectChangeAtLast(22, {2, 0, 1});
  EXPECT_THAT(leader.order(), ElementsAre(2, 0, 1));
  EXPECT_EQ(leader.Run(100, {2, 0, 1}), 0);
}

// The order changes at backward 30, and is that of the last 20 at 61.
TEST(LaunchOrderTest, FollowsAgain) {
  Leader leader(3);
  EXPECT_EQ(leader.Run(29, {2, 0, 1}), 1);
  leader.ExpectChangeAtLast(33, {1, 2, 0});
  EXPECT_THAT(leader.order(), ElementsAre(1, 2, 0));
}

TEST(LaunchOrderTest, OneOtherBackwardOfTwentyKeepsIt) {
  Leader leader(3);
  for (int period = 0; period < 3; ++period) {
    EXPECT_EQ(leader.Run(10, {2, 1, 0}), 0);
    EXPECT_EQ(leader.Run(1, {1, 2, 0}), 0);
    EXPECT_EQ(leader.Run(9, {2, 1, 0}), 0);
  }
  EXPECT_THAT(leader.order(), ElementsAre(0, 1, 2));
}

TEST(LaunchOrderTest, ABucketWithoutGradientsKeepsItsPlace) {
  Leader leader(4);
  EXPECT_EQ(leader.Run(22, {3, 2, 1}), 1);
  EXPECT_THAT(leader.order(), ElementsAre(0, 3, 2, 1));
  // Bucket 2 has none now.
  EXPECT_EQ(leader.Run(40, {0, 1, 3}), 1);
  EXPECT_THAT(leader.order(), ElementsAre(0, 1, 2, 3));
}

TEST(LaunchOrderTest, TheLastBucketsMayBeFixed) {
  Leader leader(4, /*fixed=*/2);
  EXPECT_EQ(leader.Run(22, {3, 1, 2, 0}), 1);
  EXPECT_THAT(leader.order(), ElementsAre(1, 0, 2, 3));
}

TEST(LaunchOrderTest, ABackwardThatIsNotObservedTellsNothing) {
  Leader leader(2);
  EXPECT_EQ(leader.Run(15, {1, 0}), 0);
  EXPECT_EQ(leader.Run(20, {0, 1}, /*counts=*/false), 0);
  leader.ExpectChangeAtLast(7, {1, 0});
  EXPECT_THAT(leader.order(), ElementsAre(1, 0));
}

// The device lets the host read only what it has waited for.
TEST(LaunchOrderTest, IsReadBackFromADevice) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Leader leader(3, /*fixed=*/0,
                  nn::CreateQueuedKernels(
                      nn::CreateReferenceKernels(),
                      std::make_shared<nn::GuardedMemory>(1 << 20), seed));
    EXPECT_EQ(leader.Run(22, {2, 0, 1}), 1);
    EXPECT_EQ(leader.Run(40, {1, 2, 0}), 1);
    EXPECT_THAT(leader.order(), ElementsAre(1, 2, 0));
  }
}

// Three layers, which a forward uses in the order of their declaration or the
// reverse. One bucket each: of the last layer first.
class Turned : public nn::Module {
 public:
  explicit Turned(bool turns)
      : turns_(turns),
        a_(Add<nn::Linear>("a", 4, 4)),
        b_(Add<nn::Linear>("b", 4, 4)),
        c_(Add<nn::Linear>("c", 4, 4)),
        last_(Add<nn::Linear>("last", 4, 2)) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    return last_(ctx, turns_ ? a_(ctx, b_(ctx, c_(ctx, x)))
                             : c_(ctx, b_(ctx, a_(ctx, x))));
  }

 private:
  const bool turns_;
  nn::Linear &a_, &b_, &c_, &last_;
};

// Records the backwards of rank 1, "!2" when bucket 2 becomes ready, and "AR2"
// when its reduction is launched.
class LaunchSink : public TraceSink {
 public:
  bool Wants(std::int64_t step) const override { return step >= 20; }
  void Record(const TraceEvent& event) override {
    const bool ready = event.kind == TraceKind::kBucketReady;
    const bool begins = event.phase == TracePhase::kBegin &&
                        (event.kind == TraceKind::kCollective ||
                         event.action == pipeline::ActionKind::kBackward);
    if (event.rank != 1 || !(ready || begins)) return;
    absl::MutexLock lock(&mutex_);
    absl::StrAppend(&text_, text_.empty() ? "" : " ",
                    ready ? absl::StrCat("!", event.bucket) : event.name);
  }
  std::string text() const {
    absl::MutexLock lock(&mutex_);
    return text_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

// Returns the parameters after 23 steps of two ranks.
ParameterValues TrainTurned(bool turns, bool run_inline,
                            const pipeline::BucketOptions& buckets,
                            TraceSink* sink) {
  constexpr int kSteps = 23;
  const EngineFixture job(
      {/*ranks=*/2, Numbers::kFloat, kSteps},
      PowersOfTwo(2, 1, [&](JobSpec& spec) { spec.plan.buckets = buckets; }));
  LoopOptions options;
  options.model = [turns] { return std::make_unique<Turned>(turns); };
  options.run_inline = run_inline;
  options.trace = sink;
  LoopRanks ranks(job, options);
  ranks.Train(kSteps);
  return ValuesOf(ranks.rank(1).engine().parameters().arena(0));
}

TEST(LaunchOrderTest, ReductionsAreLaunchedInIt) {
  constexpr pipeline::BucketOptions kLayers = {40, 80};
  constexpr pipeline::BucketOptions kOne = {1 << 20, 1 << 20};
  for (const bool run_inline : {false, true}) {
    LaunchSink turned, straight;
    const ParameterValues have =
        TrainTurned(true, run_inline, kLayers, &turned);
    EXPECT_EQ(turned.text(),
              "B0 !0 AR0 !3 !2 !1 AR1 AR2 AR3 "
              "B0 !0 AR0 !3 AR3 !2 AR2 !1 AR1 "
              "B0 !0 AR0 !3 AR3 !2 AR2 !1 AR1");
    TrainTurned(false, run_inline, kLayers, &straight);
    EXPECT_EQ(straight.text(),
              "B0 !0 AR0 !1 AR1 !2 AR2 !3 AR3 "
              "B0 !0 AR0 !1 AR1 !2 AR2 !3 AR3 "
              "B0 !0 AR0 !1 AR1 !2 AR2 !3 AR3");
    // A single bucket has no order.
    EXPECT_EQ(have, TrainTurned(true, run_inline, kOne, nullptr));
  }
}

}  // namespace
}  // namespace troupe::actors
