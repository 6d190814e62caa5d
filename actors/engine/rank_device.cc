#include "actors/engine/rank_device.h"

#include <cstddef>
#include <utility>

#include "base/check.h"
#include "base/event.h"
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

// The making of a communicator is work of a queue, and waits for all its ranks.
// So a rank makes its own one after the other, in the plan's order, which all
// ranks share; and it starts no collective before the last is made, since a
// kernel that waits for peers could keep a device from making another.
void RankDevice::JoinGroups() {
  base::Event made;
  const auto join = [&made](const RankGroup& group, QueueWork* work) {
    if (work == nullptr) return false;
    work->Wait(made);
    const bool on_device = group.comm->UseDevice(work);
    made = work->Record();
    return on_device;
  };
  const RankGroups& groups = *options_.groups;
  if (QueueWork* const work = AddWork(0)) {
    for (const RankGroup& group : groups.of_table()) {
      const bool on_device = join(group, work);
      if (group.plan.id == GroupId::kDpPp) reduces_on_device_ = on_device;
    }
  }
  int axis = 0;
  for (const RankGroup& group : groups.of_layers()) {
    const bool on_device = join(group, AddWork(++axis));
    layer_collectives_.push_back(std::make_unique<LayerCollectives>(
        group.comm.get(), kernels_.get(), options_.wait, on_device));
    axes_.push_back({group.plan.layer_axis, layer_collectives_.back().get()});
  }
  for (const auto& work : works_) work->Wait(made);
}

}  // namespace troupe::actors
