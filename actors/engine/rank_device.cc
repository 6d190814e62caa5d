#include "actors/engine/rank_device.h"

#include <cstddef>
#include <utility>

#include "base/check.h"
#include "comm/communicator.h"
#include "pipeline/group_id.h"

namespace troupe::actors {

using pipeline::GroupId;

absl::StatusOr<std::unique_ptr<RankDevice>> RankDevice::Open(
    const Options& options) {
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<nn::Kernels> kernels,
                          OpenRankKernels(*options.spec, options.local_rank));
  return Over(options, std::move(kernels));
}

std::unique_ptr<RankDevice> RankDevice::Over(
    const Options& options, std::shared_ptr<nn::Kernels> kernels) {
  return std::unique_ptr<RankDevice>(
      new RankDevice(options, std::move(kernels)));
}

RankDevice::RankDevice(const Options& options,
                       std::shared_ptr<nn::Kernels> kernels)
    : options_(options), kernels_(std::move(kernels)) {
  JoinGroups();
}

nn::Queue RankDevice::update_queue() const {
  return has_queues() && options_.groups->SizeOf(GroupId::kDpPp) > 1
             ? nn::CommQueue(0)
             : nn::Queue::kCompute;
}

void RankDevice::UseRanges(const std::vector<nn::Tensor>& reduced) {
  if (reduces_on_device_) options_.groups->Of(GroupId::kDp).UseRanges(reduced);
}

LayerCollectives* RankDevice::Along(absl::string_view axis) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].axis == axis) return layer_collectives_[i].get();
  }
  return nullptr;
}

QueueWork* RankDevice::AddWork(int axis) {
  if (!has_queues()) return nullptr;
  works_.push_back(std::make_unique<QueueWork>(*kernels_, nn::CommQueue(axis)));
  return works_.back().get();
}

void RankDevice::JoinGroups() {
  const RankGroups& groups = *options_.groups;
  if (QueueWork* const work = AddWork(0)) {
    for (const RankGroup& group : groups.of_table()) {
      const bool on_device = group.comm->UseDevice(work);
      if (group.plan.id == GroupId::kDpPp) reduces_on_device_ = on_device;
    }
  }
  int axis = 0;
  for (const RankGroup& group : groups.of_layers()) {
    QueueWork* const work = AddWork(++axis);
    const bool on_device = work != nullptr && group.comm->UseDevice(work);
    layer_collectives_.push_back(std::make_unique<LayerCollectives>(
        group.comm.get(), kernels_.get(), options_.wait, on_device));
    axes_.push_back({group.plan.layer_axis, layer_collectives_.back().get()});
  }
}

}  // namespace troupe::actors
