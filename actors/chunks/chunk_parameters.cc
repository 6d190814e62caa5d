#include "actors/chunks/chunk_parameters.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "nn/autograd/tape.h"
#include "pipeline/ties.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<ChunkParameters>> ChunkParameters::Create(
    const Setup& setup, nn::Module& module) {
  std::unique_ptr<ChunkParameters> parameters(new ChunkParameters(setup));
  TROUPE_RETURN_IF_ERROR(parameters->Init(module));
  return parameters;
}

absl::Status ChunkParameters::Init(nn::Module& module) {
  const pipeline::StagePlan& stage = setup_.plan->stages[setup_.stage];
  copies_ = pipeline::CopiesIn(setup_.plan->stages, setup_.stage);
  TROUPE_ASSIGN_OR_RETURN(
      const ArenaLayout layout,
      LayOutArenas(stage, setup_.stage, copies_, module.Parameters()));
  for (const ArenaLayout::Place& place : layout.places) {
    places_.push_back(
        {place.arena, place.k, /*tied=*/false, /*reduction=*/nullptr});
  }
  for (const ArenaLayout::Arena& arena : layout.arenas) {
    TROUPE_RETURN_IF_ERROR(AddPart(arena));
  }
  // A slot has the number of its bucket in the part; callers use the plan's.
  for (int bucket = 0; bucket < num_buckets(); ++bucket) {
    const Place& place = places_[bucket];
    for (const nn::Parameter* parameter :
         layout.arenas[place.part].buckets[place.k]) {
      bucket_of_[parameter->index] = bucket;
    }
  }
  FindShared();
  TROUPE_RETURN_IF_ERROR(AddReductions());
  TROUPE_RETURN_IF_ERROR(AddBuffers(module));
  if (setup_.weights != nullptr) {
    TROUPE_RETURN_IF_ERROR(Saved().ReadWeights(*setup_.weights));
  }
  return setup_.make_optimizer == nullptr
             ? absl::OkStatus()
             : AttachOptimizer(setup_.make_optimizer);
}

absl::Status ChunkParameters::AttachOptimizer(const MakeOptimizerFn& make) {
  if (optimizer() != nullptr) {
    return absl::FailedPreconditionError(
        "AttachOptimizer(): the parameters have an optimizer already; call it "
        "once");
  }
  for (Part& part : parts_) {
    TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<nn::Optimizer> optimizer, make());
    TROUPE_RETURN_IF_ERROR(optimizer->Attach(*part.arena));
    TROUPE_RETURN_IF_ERROR(optimizer->Begin(*setup_.kernels, *part.arena));
    if (setup_.weights != nullptr) {
      TROUPE_RETURN_IF_ERROR(
          Saved().ReadWideCopies(*setup_.weights, *part.arena));
    }
    for (int k = 0; k < part.arena->num_buckets(); ++k) {
      part.updates.push_back(std::make_shared<BucketUpdate>(
          setup_.kernels, optimizer, part.arena, k, setup_.scalars));
    }
    part.optimizer = std::move(optimizer);
  }
  return absl::OkStatus();
}

absl::Status ChunkParameters::AddBuffers(nn::Module& module) {
  buffers_ = module.Buffers();
  if (!setup_.plan->stages[setup_.stage].shares_buffers) {
    return nn::BindBuffers(buffers_, *setup_.kernels);
  }
  TROUPE_ASSIGN_OR_RETURN(shared_buffers_,
                          nn::BindBuffersInBlocks(buffers_, *setup_.kernels));
  return absl::OkStatus();
}

void ChunkParameters::FindShared() {
  for (const pipeline::Tie& tie : pipeline::TiesOf(setup_.plan->stages)) {
    for (const pipeline::TieMember& member : tie.members) {
      if (member.stage == setup_.stage) places_[member.bucket].tied = true;
    }
  }
  for (const Part& part : parts_) {
    for (const nn::ArenaSlot& slot : part.arena->slots()) {
      nn::Parameter& parameter = *slot.parameter;
      parameter.grad_per_use =
          parameter.requires_grad && parameter.other_names.size() == 1;
      if (parameter.grad_per_use) used_twice_.push_back(&parameter);
    }
  }
}

bool ChunkParameters::Has(const nn::Parameter& parameter) const {
  for (const Part& part : parts_) {
    const std::vector<nn::ArenaSlot>& slots = part.arena->slots();
    const int slot = parameter.index - part.arena->first_index();
    if (slot < 0 || slot >= static_cast<int>(slots.size())) continue;
    return slots[slot].parameter == &parameter &&
           slots[slot].bucket != nn::kNoBucket;
  }
  return false;
}

absl::Status ChunkParameters::AddUses(int bucket) {
  for (nn::Parameter* parameter : used_twice_) {
    if (BucketOf(*parameter) != bucket) continue;
    TROUPE_RETURN_IF_ERROR(nn::AddUses(*setup_.kernels, *parameter));
  }
  return absl::OkStatus();
}

nn::Tensor ChunkParameters::TiedGrads(int bucket) const {
  const Place& place = places_[bucket];
  const nn::ParameterArena& arena = *parts_[place.part].arena;
  // The bucket's bounds include padding, which depends on the stage.
  nn::ArenaRange range = {arena.range(place.k).end, 0};
  for (const nn::ArenaSlot& slot : arena.slots()) {
    if (slot.bucket != place.k) continue;
    range.begin = std::min(range.begin, slot.begin);
    range.end = std::max(range.end, slot.begin + slot.parameter->shape.numel());
  }
  return arena.BucketGrads(place.k).FlatView(
      range.begin - arena.range(place.k).begin, {range.size()});
}

absl::Status ChunkParameters::AddPart(const ArenaLayout::Arena& layout) {
  for (nn::Parameter* const parameter : layout.frozen) {
    parameter->unused = std::exchange(parameter->requires_grad, false);
  }
  const pipeline::Plan& plan = *setup_.plan;
  nn::ParameterArena::Options options;
  options.copied_buckets = layout.copied;
  options.frozen = layout.frozen;
  options.pad_elems *= plan.mesh.dp();
  options.threads = setup_.start_threads;
  options.kernels = setup_.kernels.get();
  options.grad_dtype = plan.grad_dtype;
  nn::Allocator& memory = setup_.kernels->allocator();
  if (&ReducedMemory() != &memory) options.grad_allocator = &ReducedMemory();
  options.first_index = static_cast<int>(bucket_of_.size());
  // With one micro-batch, a bucket is updated soon after it is complete, and
  // the next one can use the memory of its gradients. With several, all buckets
  // need gradients at a time.
  options.keep_grads = setup_.keeps_grads || layout.buckets.size() < 2 ||
                       plan.micro_batches > 1 ||
                       setup_.update_queue != nn::Queue::kCompute;
  // If backward may update rows, the gradients of even the largest bucket may
  // need no memory.
  options.grads_ahead = !AllowsRows();
  Part part;
  TROUPE_ASSIGN_OR_RETURN(
      part.arena, nn::ParameterArena::Create(layout.buckets, options, memory));
  TROUPE_RETURN_IF_ERROR(part.arena->Initialize(setup_.seed));
  bucket_of_.resize(bucket_of_.size() + part.arena->slots().size(),
                    nn::kNoBucket);
  parts_.push_back(std::move(part));
  return absl::OkStatus();
}

void ChunkParameters::BeginStep() {
  for (Part& part : parts_) {
    part.arena->BeginStep();
    part.updated.clear();
    part.left_out.clear();
  }
}

comm::Collective ChunkParameters::ReduceUpdate(int bucket) const {
  const Place& place = places_[bucket];
  const Part& part = parts_[place.part];
  return comm::ReduceUpdate(comm::ReduceOp::kSum,
                            part.arena->BucketGrads(place.k),
                            part.updates[place.k]);
}

absl::Status ChunkParameters::Inspect(const nn::Tensor& scalars) {
  const nn::QueueScope scope(*setup_.kernels, setup_.update_queue);
  for (Part& part : parts_) {
    TROUPE_RETURN_IF_ERROR(
        part.optimizer->Inspect(*setup_.kernels, scalars, *part.arena));
  }
  return absl::OkStatus();
}

absl::Status ChunkParameters::Conclude(nn::Tensor scalars) {
  const nn::QueueScope scope(*setup_.kernels, setup_.update_queue);
  return parts_[0].optimizer->Conclude(*setup_.kernels, scalars);
}

SavedTensors ChunkParameters::Saved() {
  std::vector<SavedTensors::Part> parts;
  for (Part& part : parts_) {
    parts.push_back({part.arena.get(), part.optimizer.get(), &part.counts});
  }
  return SavedTensors(std::move(parts), buffers_, copies_, *setup_.kernels);
}

absl::Status ChunkParameters::CopyInto(const nn::Tensor& scalars,
                                       CheckpointShard& shard) {
  return Saved().CopyInto(scalars, shard);
}

absl::Status ChunkParameters::Restore(const Checkpoint& checkpoint,
                                      double updates) {
  return Saved().Restore(checkpoint, updates, setup_.allow_missing);
}

}  // namespace troupe::actors
