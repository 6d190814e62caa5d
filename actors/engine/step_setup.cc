// What StepRunner makes before its first step: scaler, queues, groups, chunks.

#include <memory>
#include <utility>
#include <vector>

#include "actors/engine/step_runner.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

absl::Status StepRunner::MakeScaler() {
  const pipeline::Plan& plan = *setup_.plan;
  if (!plan.dynamic_loss_scale.has_value()) return absl::OkStatus();
  TROUPE_CHECK(plan.update_needs_all_buckets,
               "a dynamic loss scale needs what all gradients are like");
  TROUPE_ASSIGN_OR_RETURN(
      scaler_,
      LossScaler::Create(*kernels_, {plan.loss_scale, *plan.dynamic_loss_scale,
                                     UpdateQueue()}));
  return absl::OkStatus();
}

nn::Queue StepRunner::UpdateQueue() const {
  return kernels_->queues() != nullptr && setup_.groups->world->size() > 1
             ? nn::CommQueue(0)
             : nn::Queue::kCompute;
}

QueueWork* StepRunner::AddWork(int axis) {
  if (kernels_->queues() == nullptr) return nullptr;
  works_.push_back(std::make_unique<QueueWork>(*kernels_, nn::CommQueue(axis)));
  return works_.back().get();
}

void StepRunner::JoinGroups() {
  if (QueueWork* const work = AddWork(0)) {
    setup_.groups->ForEachOfTable([&](comm::Communicator& group) {
      const bool on_device = group.UseDevice(work);
      if (&group == setup_.groups->world.get()) reduces_on_device_ = on_device;
    });
  }
  int axis = 0;
  for (const AxisGroup& group : setup_.groups->layers) {
    QueueWork* const work = AddWork(++axis);
    const bool on_device = work != nullptr && group.comm->UseDevice(work);
    layer_collectives_.push_back(std::make_unique<LayerCollectives>(
        group.comm.get(), kernels_.get(), wait_, on_device));
    axes_.push_back({group.axis, layer_collectives_.back().get()});
  }
}

absl::Status StepRunner::MakeChunks() {
  for (int stage : setup_.plan->StagesOf(setup_.rank)) {
    Chunk::Setup chunk;
    chunk.spec = setup_.spec;
    chunk.plan = setup_.plan;
    chunk.stage = stage;
    chunk.chunk = chunk_count();
    chunk.kernels = kernels_;
    chunk.trace = &trace_;
    chunk.axes = axes_;
    chunk.start_threads = setup_.start_threads;
    chunk.grad_allocator = setup_.grad_allocator;
    chunk.scalars = losses_[0].scalars();
    if (scaler_ != nullptr) chunk.loss_seed = scaler_->seed();
    chunk.update_queue = events_->update_queue();
    chunk.gated =
        tail_.has_value() || chunk.update_queue != nn::Queue::kCompute;
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Chunk> made,
                            Chunk::Create(chunk, this));
    chunks_.push_back(std::move(made));
    events_->AddChunk(
        static_cast<int>(setup_.plan->stages[stage].buckets.size()));
  }
  if (reduces_on_device_) {
    std::vector<nn::Tensor> reduced;
    for (const auto& chunk : chunks_) chunk->AddReduced(reduced);
    setup_.groups->dp->UseRanges(reduced);
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors
