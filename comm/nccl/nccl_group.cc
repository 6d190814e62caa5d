#include "comm/nccl/nccl_group.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "comm/device/queued_communicator.h"
#include "comm/nccl/local_ranks.h"
#include "comm/nccl/nccl_id.h"
#include "comm/nccl/nccl_rank.h"

namespace troupe::comm {
namespace {

using internal::LocalRanks;
using internal::NcclId;
using internal::NcclRank;

// NCCL's messages have no tags, so the group has no messages.
class NcclCommunicator final : public QueuedCommunicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclRank> rank, NcclRank::AbortAll abort_all)
      : QueuedCommunicator("an NCCL group"),
        rank_(std::move(rank)),
        abort_all_(std::move(abort_all)) {}
  ~NcclCommunicator() override { rank_->Leave(); }

  int rank() const override { return rank_->rank(); }
  int size() const override { return rank_->size(); }
  bool UseDevice(DeviceWork* work) override {
    rank_->Use(work);
    return true;
  }
  absl::StatusOr<Event> Start(const Collective& collective,
                              Event after) override {
    return rank_->Start({&collective, 1}, after);
  }
  absl::StatusOr<Event> StartTogether(absl::Span<const Collective> collectives,
                                      const Event& after) override {
    return rank_->Start(collectives, after);
  }
  void UseRanges(absl::Span<const nn::Tensor> ranges) override {
    rank_->Register(ranges);
  }
  std::vector<Waiting> Waits() const override { return rank_->Waits(); }
  void Abort(absl::Status status) override { abort_all_(status); }

 private:
  const std::shared_ptr<NcclRank> rank_;
  const NcclRank::AbortAll abort_all_;
};

}  // namespace

absl::StatusOr<Group> OpenNcclGroup(const NcclGroupOptions& options,
                                    Store& store) {
  TROUPE_ASSIGN_OR_RETURN(const NcclId id, NcclId::Exchange(options, store));
  const int size = static_cast<int>(options.ranks.size());
  const auto local =
      std::make_shared<LocalRanks>(size, options.local, options.in_flight_max);
  // Weak, since each rank holds this list.
  const auto all = std::make_shared<std::vector<std::weak_ptr<NcclRank>>>();
  const NcclRank::AbortAll abort_all = [all](const absl::Status& status) {
    for (const std::weak_ptr<NcclRank>& weak : *all) {
      if (const auto rank = weak.lock()) rank->Abort(status);
    }
  };
  Group group(size);
  for (int place : options.local) {
    const auto rank =
        std::make_shared<NcclRank>(options, place, id, local, abort_all);
    all->push_back(rank);
    group[place] = std::make_unique<NcclCommunicator>(rank, abort_all);
  }
  return group;
}

}  // namespace troupe::comm
