#include "actors/chunks/chunk_parameters.h"

#include <utility>
#include <vector>

#include "actors/chunks/arena_layout.h"
#include "base/check.h"
#include "nn/autograd/tape.h"
#include "nn/kernels/device_queues.h"
#include "pipeline/ties.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<ChunkParameters>> ChunkParameters::Create(
    const Setup& setup, nn::Module& module) {
  std::unique_ptr<ChunkParameters> parameters(new ChunkParameters(setup));
  TROUPE_RETURN_IF_ERROR(parameters->Init(module));
  return parameters;
}

absl::Status ChunkParameters::Init(nn::Module& module) {
  copies_ = pipeline::CopiesIn(setup_.plan->stages, setup_.stage);
  TROUPE_RETURN_IF_ERROR(MakeArenas(module));
  FindShared();
  BucketReductions::Options reductions;
  reductions.plan = setup_.plan;
  reductions.replica =
      setup_.plan->mesh.CoordOf(setup_.rank, pipeline::kDpAxis);
  reductions.kernels = setup_.kernels.get();
  reductions.memory = &ReducedMemory();
  reductions.hook = setup_.hook;
  reductions.averages = setup_.averages;
  TROUPE_ASSIGN_OR_RETURN(reductions_,
                          BucketReductions::Create(reductions, *arenas_));
  TROUPE_RETURN_IF_ERROR(AddBuffers(module));
  updates_ = std::make_unique<BucketUpdates>(
      BucketUpdates::Options{setup_.kernels, setup_.update_queue,
                             setup_.scalars},
      *arenas_);
  if (setup_.weights != nullptr) {
    HoldAllValues();
    TROUPE_RETURN_IF_ERROR(Saved().ReadWeights(*setup_.weights));
    ReleaseAllValues();
  }
  return setup_.make_optimizer == nullptr
             ? absl::OkStatus()
             : AttachOptimizer(setup_.make_optimizer);
}

absl::Status ChunkParameters::MakeArenas(nn::Module& module) {
  const pipeline::Plan& plan = *setup_.plan;
  TROUPE_ASSIGN_OR_RETURN(
      const ArenaLayout layout,
      LayOutArenas(plan.stages[setup_.stage], setup_.stage, CountedElsewhere(),
                   module.Parameters()));
  BucketArenas::Options options;
  options.kernels = setup_.kernels.get();
  options.seed = setup_.seed;
  options.replicas = plan.mesh.dp();
  options.owners = plan.owners();
  if (options.owners > 1) {
    options.owner = plan.mesh.CoordOf(setup_.rank, pipeline::kDpAxis);
  }
  options.release_values = plan.gathers_values();
  options.threads = setup_.start_threads;
  options.grad_dtype = plan.grad_dtype;
  options.grad_allocator = &ReducedMemory();
  // Peers gather the slices of owners. Of values that are released between uses
  // only these slices are shared: the rest stays private to the process, whose
  // pages the system takes back faster.
  if (ExchangesValues()) options.value_allocator = &ReducedMemory();
  options.share_pages = setup_.peer_memory.share_pages;
  // A bucket of a single micro-batch is updated soon after it is complete, and
  // the next one can use the memory of its gradients. Several micro-batches
  // need the gradients of all buckets at a time.
  options.slice_grads = plan.SlicesGradients();
  options.keep_grads = setup_.keeps_grads || plan.micro_batches > 1 ||
                       setup_.update_queue != nn::Queue::kCompute;
  // If backward may update rows, the gradients of even the largest bucket may
  // need no memory.
  options.grads_ahead = !AllowsRows();
  TROUPE_ASSIGN_OR_RETURN(arenas_, BucketArenas::Create(layout, options));
  return absl::OkStatus();
}

std::set<std::string> ChunkParameters::CountedElsewhere() const {
  std::set<std::string> names = copies_;
  if (!setup_.plan->SplitsParameters() ||
      setup_.plan->mesh.CoordOf(setup_.rank, pipeline::kTpAxis) == 0) {
    return names;
  }
  // Findings are summed over the ranks along tp, too, of which the first one
  // counts whole parameters.
  const pipeline::StagePlan& stage = setup_.plan->stages[setup_.stage];
  for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
    if (!stage.IsSplit(static_cast<int>(i))) names.insert(stage.parameters[i]);
  }
  return names;
}

bool ChunkParameters::AllowsRows() const {
  const pipeline::Plan& plan = *setup_.plan;
  return plan.fuse_updates && plan.mesh.dp() == 1 && plan.micro_batches == 1 &&
         !plan.grad_dtype && !plan.update_needs_all_buckets &&
         setup_.update_queue == nn::Queue::kCompute &&
         setup_.kernels->queues() == nullptr;
}

nn::Allocator& ChunkParameters::ReducedMemory() const {
  nn::Allocator& memory = setup_.kernels->allocator();
  const bool on_host = &memory == &nn::HostAllocator(*setup_.kernels);
  nn::Allocator* const exchanged = setup_.peer_memory.allocator;
  return on_host && exchanged != nullptr ? *exchanged : memory;
}

bool ChunkParameters::ExchangesValues() const {
  const pipeline::Plan& plan = *setup_.plan;
  return plan.owners() > 1 && !plan.gathers_values() &&
         &ReducedMemory() != &setup_.kernels->allocator();
}

std::size_t ChunkParameters::exchanged_value_bytes() const {
  std::size_t bytes = 0;
  if (!ExchangesValues()) return bytes;
  for (int i = 0; i < num_arenas(); ++i) bytes += arena(i).values().bytes();
  return bytes;
}

absl::Status ChunkParameters::AttachOptimizer(const MakeOptimizerFn& make) {
  if (optimizer() != nullptr) {
    return absl::FailedPreconditionError(
        "AttachOptimizer(): the parameters have an optimizer already; call it "
        "once");
  }
  TROUPE_RETURN_IF_ERROR(updates_->Attach(make));
  if (setup_.weights == nullptr) return absl::OkStatus();
  for (int i = 0; i < num_arenas(); ++i) {
    TROUPE_RETURN_IF_ERROR(Saved().ReadWideCopies(*setup_.weights, arena(i)));
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
  tied_.resize(num_buckets());
  for (const pipeline::Tie& tie : pipeline::TiesOf(setup_.plan->stages)) {
    for (const pipeline::TieMember& member : tie.members) {
      if (member.stage == setup_.stage) tied_[member.bucket] = true;
    }
  }
  for (int i = 0; i < num_arenas(); ++i) {
    for (const nn::ArenaSlot& slot : arena(i).slots()) {
      nn::Parameter& parameter = *slot.parameter;
      parameter.first_use.apart =
          parameter.requires_grad && parameter.other_names.size() == 1;
      if (parameter.first_use.apart) used_twice_.push_back(&parameter);
    }
  }
}

absl::Status ChunkParameters::AddUses(int bucket) {
  for (nn::Parameter* parameter : used_twice_) {
    if (BucketOf(*parameter) != bucket) continue;
    TROUPE_RETURN_IF_ERROR(nn::AddUses(*setup_.kernels, *parameter));
  }
  return absl::OkStatus();
}

absl::Status ChunkParameters::BeginReduction(int bucket) {
  if (slices_grads()) arenas_->DetachGrads(bucket);
  // The reduction of a bucket that stages share begins after the sum over the
  // stages.
  return IsTied(bucket) || reductions_->begins_late(bucket)
             ? absl::OkStatus()
             : reductions_->Begin(bucket);
}

void ChunkParameters::BeginStep() {
  arenas_->BeginStep();
  updates_->BeginStep();
}

SavedTensors ChunkParameters::Saved() {
  std::vector<SavedTensors::Part> parts;
  for (int i = 0; i < num_arenas(); ++i) {
    parts.push_back({arenas_->handle(i).get(), updates_->optimizer(i),
                     &updates_->counts(i)});
    if (!wholes_.empty()) parts.back().wholes = wholes_[i];
  }
  return SavedTensors(std::move(parts), buffers_, copies_, *setup_.kernels);
}

absl::Status ChunkParameters::CopyInto(const nn::Tensor& scalars, bool in_place,
                                       CheckpointShard& shard) {
  const pipeline::Mesh& mesh = setup_.plan->mesh;
  SavedTensors::Share share;
  share.in_place = in_place;
  share.first_replica = mesh.CoordOf(setup_.rank, pipeline::kDpAxis) == 0;
  share.first_piece = mesh.CoordOf(setup_.rank, pipeline::kTpAxis) == 0;
  const absl::Status status = Saved().CopyInto(scalars, share, shard);
  wholes_.clear();
  return status;
}

absl::Status ChunkParameters::Restore(const Checkpoint& checkpoint,
                                      double updates) {
  return Saved().Restore(checkpoint, updates, setup_.allow_missing);
}

}  // namespace troupe::actors
