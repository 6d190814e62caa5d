// The step engine enqueues updates on a device with queues after their
// reductions, so that the compute queue waits for one only before its reader.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "actors/engine/snapshot.h"
#include "actors/engine/step_runner.h"
#include "comm/local/local_group.h"
#include "gtest/gtest.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/ops/loss.h"
#include "tests/actors/engine/engine_fixture.h"
#include "tests/base/seeds.h"
#include "tests/comm/wrapped_communicator.h"

namespace troupe::actors {
namespace {

// A communicator whose peers join a collective when the test says so.
class LatePeers : public comm::WrappedCommunicator {
 public:
  using WrappedCommunicator::WrappedCommunicator;
  absl::StatusOr<comm::Event> Start(const comm::Collective&,
                                    comm::Event) override {
    started_.push_back(comm::Event::Make());
    return started_.back();
  }
  int started() const { return static_cast<int>(started_.size()); }
  void Come() {
    for (const comm::Event& event : std::exchange(started_, {})) {
      event.Complete(absl::OkStatus());
    }
  }

 private:
  std::vector<comm::Event> started_;
};

std::unique_ptr<LatePeers> MakeLatePeers() {
  return std::make_unique<LatePeers>(
      std::move(comm::MakeLocalGroup({/*size=*/2})[0]));
}

// One of two ranks, on a queued device.
class Rank : private StepRunner::Host, private StrandWait {
 public:
  explicit Rank(std::uint64_t seed)
      : fixture_({/*ranks=*/2, Numbers::kFloat}, [seed](JobSpec& spec) {
          spec.device = {nn::DeviceType::kQueued, 0};
          spec.loss = nn::ops::MeanSquaredError;
          spec.kernels = [seed] {
            return nn::CreateQueuedKernels(
                nn::CreateReferenceKernels(),
                std::make_shared<nn::GuardedMemory>(std::size_t{1} << 20),
                seed);
          };
        }) {
    StepRunner::Setup setup;
    setup.spec = &fixture_.spec();
    setup.plan = &fixture_.plan();
    setup.train_table = fixture_.plan().RankPlanOf(0).train;
    auto world = MakeLatePeers();
    auto dp = MakeLatePeers();
    world_ = world.get();
    dp_ = dp.get();
    using pipeline::GroupId;
    groups_.Add({GroupId::kDpPp, /*layer_axis=*/"", "all ranks", {0, 1}},
                std::move(world));
    groups_.Add({GroupId::kDp, /*layer_axis=*/"", "replicas", {0, 1}},
                std::move(dp));
    setup.groups = &groups_;
    runner_ = StepRunner::Create(setup, this, this).value();
  }

  void Run(StepKind kind, std::int64_t step) {
    StepBatches batches = fixture_.Batches(/*rank=*/0, step);
    const pipeline::RankPlan& plan = fixture_.plan().RankPlanOf(0);
    batches.resize((kind == StepKind::kTrain ? plan.train : plan.evaluate)
                       .micro_batches());
    const absl::Status ran = runner_->RunStep(kind, step, std::move(batches));
    ASSERT_TRUE(ran.ok()) << ran;
  }
  PendingSnapshot Save(const SnapshotParts& made = {}) {
    return runner_->MakeSnapshot(/*step=*/1, made).value();
  }
  int reductions() const { return world_->started() + dp_->started(); }
  int buckets() const { return runner_->arena().num_buckets(); }
  void PeersCome() {
    world_->Come();
    dp_->Come();
  }
  // Runs the device; returns whether it completes all work of `queue`.
  bool ComesToTheEndOf(nn::Queue queue) {
    const base::Event end = nn::Record(kernels(), queue);
    while (kernels().queues()->Progress()) {
    }
    EXPECT_TRUE(end.status().ok()) << end.status();
    return end.ready();
  }

 private:
  nn::Kernels& kernels() { return runner_->kernels(); }

  // Host:
  void Launch(int action, pipeline::GroupId group,
              const comm::Collective& collective,
              const comm::Event& after) override {
    launched_.emplace_back(action,
                           groups_.Of(group).Start(collective, after).value());
  }
  void Send(int, bool, int, const nn::TensorList&,
            const base::Event&) override {}
  // StrandWait: the step goes on at once, without waiting for its device.
  void AwaitNews() override {
    for (const auto& [action, done] : std::exchange(launched_, {})) {
      const absl::Status ended =
          runner_->CollectiveDone(runner_->launched_step(), action, done);
      EXPECT_TRUE(ended.ok()) << ended;
    }
  }
  void TakeNews(bool) override { AwaitNews(); }
  absl::Status RunInline(comm::Communicator&,
                         const comm::Collective&) override {
    return absl::UnimplementedError("reductions of devices are not inline");
  }

  const EngineFixture fixture_;
  RankGroups groups_;
  LatePeers* world_ = nullptr;  // owned by groups_
  LatePeers* dp_ = nullptr;
  std::vector<std::pair<int, comm::Event>> launched_;
  std::unique_ptr<StepRunner> runner_;
};

// Runs the first step, whose reductions do not complete.
void RunFirstStep(Rank& rank) {
  rank.Run(StepKind::kTrain, 0);
  ASSERT_EQ(rank.reductions(), rank.buckets() + 1);
  EXPECT_TRUE(rank.ComesToTheEndOf(nn::Queue::kCompute))
      << "the backward does not wait for the reductions";
  EXPECT_FALSE(rank.ComesToTheEndOf(nn::Queue::kComm)) << "the updates do";
}

TEST(DeviceUpdatesTest, TheNextStepWaitsForReductionsAndNotThisOne) {
  for (std::uint64_t seed : Seeds(10)) {
    Rank rank(seed);
    RunFirstStep(rank);
    rank.Run(StepKind::kTrain, 1);
    EXPECT_FALSE(rank.ComesToTheEndOf(nn::Queue::kCompute));
    rank.PeersCome();
    EXPECT_TRUE(rank.ComesToTheEndOf(nn::Queue::kCompute));
    EXPECT_TRUE(rank.ComesToTheEndOf(nn::Queue::kComm));
  }
}

TEST(DeviceUpdatesTest, AnEvaluationWaitsForUpdates) {
  for (std::uint64_t seed : Seeds(10)) {
    Rank rank(seed);
    RunFirstStep(rank);
    rank.Run(StepKind::kEvaluate, 1);
    EXPECT_FALSE(rank.ComesToTheEndOf(nn::Queue::kCompute));
    rank.PeersCome();
    EXPECT_TRUE(rank.ComesToTheEndOf(nn::Queue::kCompute));
  }
}

TEST(DeviceUpdatesTest, ASnapshotWaitsForUpdates) {
  for (std::uint64_t seed : Seeds(10)) {
    Rank rank(seed);
    RunFirstStep(rank);
    const PendingSnapshot saved = rank.Save();
    EXPECT_FALSE(rank.ComesToTheEndOf(nn::Queue::kReadBack));
    EXPECT_FALSE(saved.ready.ready());
    rank.PeersCome();
    EXPECT_TRUE(rank.ComesToTheEndOf(nn::Queue::kReadBack));
    EXPECT_TRUE(saved.ready.ready());
  }
}

// A bucket is copied to the host and hashed after the other.
TEST(DeviceUpdatesTest, HashesWaitForUpdatesAndForEachCopy) {
  std::vector<std::uint64_t> want;
  for (std::uint64_t seed : Seeds(10)) {
    Rank rank(seed);
    RunFirstStep(rank);
    PendingSnapshot saved = rank.Save({/*copies=*/false, /*hashes=*/true});
    EXPECT_FALSE(rank.ComesToTheEndOf(nn::Queue::kReadBack));
    EXPECT_FALSE(saved.ready.ready());
    rank.PeersCome();
    int copies = -1;  // the first event is that of the updates
    for (; saved.hash != nullptr; ++copies) {
      ASSERT_TRUE(rank.ComesToTheEndOf(nn::Queue::kReadBack));
      ASSERT_TRUE(saved.ready.ready());
      ASSERT_TRUE(AdvanceHash(saved).ok());
    }
    EXPECT_GE(copies, rank.buckets());
    const std::vector<std::uint64_t>& hashes = saved.snapshot->hashes;
    EXPECT_EQ(hashes.size(), static_cast<std::size_t>(rank.buckets()));
    EXPECT_TRUE(saved.snapshot->tensors.model.empty());
    if (want.empty()) want = hashes;
    EXPECT_EQ(hashes, want) << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe::actors
