#include "actors/engine/owned_parts.h"

#include <utility>

#include "nn/tensor/tensor.h"

namespace troupe::actors {

OwnedParts::OwnedParts(const EngineSetup& setup, StrandWait* wait,
                       StepTrace trace)
    : setup_(setup), wait_(wait), trace_(std::move(trace)) {}

OwnedParts::~OwnedParts() {
  if (device_ != nullptr) device_->UseRanges({});
}

void OwnedParts::Open(std::unique_ptr<RankDevice> device, EngineHost* host,
                      bool overlaps_steps) {
  device_ = std::move(device);
  trace_.WatchMemory(&device_->kernels().allocator());
  events_.emplace(device_->kernels(), device_->update_queue());
  const pipeline::RankPlan& plan = setup_.plan->RankPlanOf(setup_.rank);
  reducer_.emplace(Reducer::Options{setup_.groups, plan.reduce_inline}, host,
                   &wait_);
  StepPosition& position =
      setup_.position == nullptr ? own_position_ : *setup_.position;
  parts_.emplace(EngineParts{setup_, *host, wait_, position, *device_, chunks_,
                             parameters_, *events_, *reducer_, outputs_,
                             overlaps_steps});
  inbox_.emplace(*parts_);
}

void OwnedParts::Add(std::unique_ptr<Chunk> chunk) {
  Watch(&chunk->parameters());
  chunks_.push_back(std::move(chunk));
}

void OwnedParts::Add(std::unique_ptr<ChunkParameters> model) {
  Watch(model.get());
  model_ = std::move(model);
}

void OwnedParts::Watch(ChunkParameters* parameters) {
  parameters_.push_back(parameters);
  events_->AddChunk(parameters->num_buckets());
}

void OwnedParts::RegisterRanges() {
  std::vector<nn::Tensor> reduced;
  for (ChunkParameters* parameters : parameters_) {
    parameters->reductions().AddRanges(reduced);
  }
  device_->UseRanges(reduced);
}

}  // namespace troupe::actors
