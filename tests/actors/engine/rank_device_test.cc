// A rank on a device with queues makes its communicators in one order, and its
// host runs ahead of the collectives of layers by a limited number.

#include "actors/engine/rank_device.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "comm/local/local_group.h"
#include "gtest/gtest.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/actors/engine/test_groups.h"
#include "tests/comm/wrapped_communicator.h"

namespace troupe::actors {
namespace {

std::shared_ptr<nn::Kernels> QueuedKernels() {
  return nn::CreateQueuedKernels(
      nn::CreateReferenceKernels(),
      std::make_shared<nn::GuardedMemory>(std::size_t{1} << 20), /*seed=*/1);
}

void Drain(nn::Kernels& kernels) {
  while (kernels.queues()->Progress()) {
  }
}

// A communicator that is made by its queue when the test says so, as NCCL's are
// when all ranks have come.
class MadeLater : public comm::WrappedCommunicator {
 public:
  MadeLater(std::unique_ptr<Communicator> inner,
            std::vector<MadeLater*>* in_order)
      : WrappedCommunicator(std::move(inner)), in_order_(in_order) {}
  bool UseDevice(comm::DeviceWork* work) override {
    in_order_->push_back(this);
    begun = work->Record();
    work->Wait(made);
    return true;
  }

  base::Event begun;
  const base::Event made = base::Event::Make();

 private:
  std::vector<MadeLater*>* const in_order_;
};

TEST(RankDeviceTest, CommunicatorsAreMadeOneAfterTheOther) {
  std::vector<MadeLater*> all;
  const std::vector<RankGroups> groups = MakeTestGroups(
      pipeline::Mesh(/*dp=*/2), [&](const comm::LocalGroupOptions& options) {
        comm::Group group = comm::MakeLocalGroup(options);
        for (auto& rank : group) {
          rank = std::make_unique<MadeLater>(std::move(rank), &all);
        }
        return group;
      });
  const std::shared_ptr<nn::Kernels> kernels = QueuedKernels();
  RankDevice::Options options;
  options.groups = &groups[1];
  const auto device = RankDevice::Over(options, kernels);
  ASSERT_EQ(all.size(), 3u) << "of losses, of gradients, of layers";
  const base::Event of_table = nn::Record(*kernels, nn::CommQueue(0));
  const base::Event of_layers = nn::Record(*kernels, nn::CommQueue(1));
  for (std::size_t i = 0; i < all.size(); ++i) {
    Drain(*kernels);
    EXPECT_TRUE(all[i]->begun.ready()) << i;
    for (std::size_t later = i + 1; later < all.size(); ++later) {
      EXPECT_FALSE(all[later]->begun.ready()) << later << " beside " << i;
    }
    EXPECT_FALSE(of_table.ready()) << i;
    EXPECT_FALSE(of_layers.ready()) << i;
    all[i]->made.Complete(absl::OkStatus());
  }
  Drain(*kernels);
  EXPECT_TRUE(of_table.ready());
  EXPECT_TRUE(of_layers.ready());
}

// The peers of a rank, on its device: they join a collective when its host
// waits and its device has nothing else to do.
class PatientPeers : public comm::WrappedCommunicator, public StrandWait {
 public:
  explicit PatientPeers(nn::Kernels& kernels)
      : WrappedCommunicator(std::move(comm::MakeLocalGroup({/*size=*/2})[0])),
        kernels_(kernels) {}
  absl::StatusOr<comm::Event> Start(const comm::Collective&,
                                    comm::Event) override {
    pending.push_back(comm::Event::Make());
    return pending.back();
  }
  void AwaitNews() override {
    if (kernels_.queues()->Progress()) return;
    ASSERT_FALSE(pending.empty());
    pending.front().Complete(absl::OkStatus());
    pending.pop_front();
  }
  void TakeNews(bool) override {}
  absl::Status RunInline(comm::Communicator&,
                         const comm::Collective&) override {
    return absl::InternalError("it runs on the device");
  }

  std::deque<comm::Event> pending;

 private:
  nn::Kernels& kernels_;
};

TEST(LayerCollectivesTest, TheHostWaitsForADeviceThatFallsBehind) {
  const std::shared_ptr<nn::Kernels> kernels = QueuedKernels();
  PatientPeers peers(*kernels);
  LayerCollectives layers(&peers, kernels.get(), &peers, /*on_device=*/true);
  const nn::Tensor range =
      nn::Tensor::Empty({4}, nn::DType::kF32, kernels->allocator());
  constexpr std::size_t kMax = LayerCollectives::kAheadMax;
  for (std::size_t i = 1; i <= kMax + 1; ++i) {
    ASSERT_TRUE(layers.AllReduce(nn::ReduceOp::kSum, range).ok());
    ASSERT_EQ(peers.pending.size(), i) << "the host does not wait";
  }
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(layers.AllReduce(nn::ReduceOp::kSum, range).ok());
    ASSERT_EQ(peers.pending.size(), kMax + 1);
  }
}

}  // namespace
}  // namespace troupe::actors
