#include "actors/chunks/chunk_parameters.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/state_dict.h"
#include "actors/spec/job_spec.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/autograd/tape.h"
#include "nn/optim/arena_optimizer.h"
#include "pipeline/ties.h"

namespace troupe::actors {
namespace {

// Returns a copy of `tensor` in host memory, made by the queue kReadBack.
absl::StatusOr<nn::Tensor> HostCopy(const nn::Tensor& tensor,
                                    const std::string& name,
                                    nn::Kernels& kernels) {
  absl::StatusOr<nn::Tensor> copy =
      nn::CopyToHost(kernels, nn::Queue::kReadBack, tensor);
  if (copy.ok()) return copy;
  return absl::Status(copy.status().code(),
                      absl::StrCat("a copy of ", name, " for a checkpoint: ",
                                   copy.status().message()));
}

using ByName = absl::flat_hash_map<std::string, nn::Parameter*>;

absl::Status OtherModel(int stage, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      base::FieldName<&JobSpec::model>(),
      " made another model than the one that was planned: ", what, " in stage ",
      stage, "; it must make the same model each time"));
}

// Checks that the factory made the same parameters as for the plan. They
// differ, for example, if a module declares parameters only in its forward.
absl::Status CheckSameModel(const pipeline::StagePlan& stage, int number,
                            const ByName& by_name) {
  for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
    const std::string& name = stage.parameters[i];
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      return OtherModel(number, absl::StrCat("there is no ", name));
    }
    const nn::Parameter& parameter = *found->second;
    if (parameter.shape.numel() != stage.parameter_elems[i] ||
        parameter.dtype != stage.parameter_dtypes[i]) {
      return OtherModel(
          number, absl::StrCat(name, " is ", nn::DTypeName(parameter.dtype),
                               parameter.shape.ToString(), ", not ",
                               stage.parameter_elems[i], " elements of ",
                               nn::DTypeName(stage.parameter_dtypes[i])));
    }
  }
  if (by_name.size() == stage.parameters.size()) return absl::OkStatus();
  const std::set<std::string> planned(stage.parameters.begin(),
                                      stage.parameters.end());
  for (const auto& [name, parameter] : by_name) {
    if (planned.count(name) > 0) continue;
    return OtherModel(number, absl::StrCat("there is a ", name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChunkParameters>> ChunkParameters::Create(
    const Setup& setup, nn::Module& module) {
  std::unique_ptr<ChunkParameters> parameters(new ChunkParameters(setup));
  TROUPE_RETURN_IF_ERROR(parameters->Init(module));
  return parameters;
}

absl::Status ChunkParameters::Init(nn::Module& module) {
  const pipeline::StagePlan& stage = setup_.plan->stages[setup_.stage];
  ByName by_name;
  for (nn::Parameter* parameter : module.Parameters()) {
    by_name[parameter->name] = parameter;
  }
  TROUPE_RETURN_IF_ERROR(CheckSameModel(stage, setup_.stage, by_name));
  copies_ = pipeline::CopiesIn(setup_.plan->stages, setup_.stage);
  // These four are indexed by part, that is by dtype.
  std::vector<nn::DType> dtypes;
  std::vector<std::vector<int>> copied;
  std::vector<std::vector<std::vector<nn::Parameter*>>> buckets;
  std::vector<std::vector<nn::Parameter*>> frozen;
  const auto part_of = [&](const nn::Parameter& parameter) {
    const auto found = std::find(dtypes.begin(), dtypes.end(), parameter.dtype);
    const auto part = static_cast<int>(found - dtypes.begin());
    if (found == dtypes.end()) {
      dtypes.push_back(parameter.dtype);
      buckets.emplace_back();
      copied.emplace_back();
      frozen.emplace_back();
    }
    return part;
  };
  for (const std::vector<int>& bucket : stage.buckets) {
    std::vector<nn::Parameter*> chosen;
    for (int i : bucket) chosen.push_back(by_name[stage.parameters[i]]);
    const int part = part_of(*chosen[0]);
    const auto k = static_cast<int>(buckets[part].size());
    places_.push_back({part, k, /*tied=*/false, /*reduction=*/nullptr});
    if (copies_.count(chosen[0]->name) > 0) copied[part].push_back(k);
    buckets[part].push_back(std::move(chosen));
  }
  for (int i : stage.frozen) {
    nn::Parameter* const parameter = by_name[stage.parameters[i]];
    parameter->unused = std::exchange(parameter->requires_grad, false);
    frozen[part_of(*parameter)].push_back(parameter);
  }
  if (dtypes.empty()) {  // parts_ is never empty: users need no special case
    buckets.emplace_back();
    copied.emplace_back();
    frozen.emplace_back();
  }
  for (std::size_t part = 0; part < buckets.size(); ++part) {
    TROUPE_RETURN_IF_ERROR(
        AddPart(buckets[part], frozen[part], std::move(copied[part])));
  }
  // A slot has the number of its bucket in the part; callers use the plan's.
  for (int bucket = 0; bucket < num_buckets(); ++bucket) {
    for (int i : stage.buckets[bucket]) {
      bucket_of_[by_name[stage.parameters[i]]->index] = bucket;
    }
  }
  FindShared();
  TROUPE_RETURN_IF_ERROR(AddReductions());
  TROUPE_RETURN_IF_ERROR(AddBuffers(module));
  if (setup_.weights != nullptr) {
    TROUPE_RETURN_IF_ERROR(ReadWeights(*setup_.weights));
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
      TROUPE_RETURN_IF_ERROR(ReadWideCopies(*setup_.weights, *part.arena));
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

template <typename Read>
absl::Status ChunkParameters::Fill(const nn::Tensor& tensor, const Read& read) {
  if (tensor.host_accessible()) return read(tensor);
  nn::Kernels& kernels = *setup_.kernels;
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor host,
                          nn::Tensor::Create(tensor.shape(), tensor.dtype(),
                                             nn::HostAllocator(kernels)));
  TROUPE_RETURN_IF_ERROR(read(host));
  nn::CopyBytes(kernels, nn::Queue::kCompute, host, tensor);
  return absl::OkStatus();
}

absl::Status ChunkParameters::ReadWeights(const nn::WeightFile& weights) {
  // A tensor that the file lacks keeps its value.
  const auto fill = [&](const auto& named) -> absl::Status {
    if (!weights.Has(named)) return absl::OkStatus();
    return Fill(named.value, [&](const nn::Tensor& host) {
      return weights.Read(named, host).status();
    });
  };
  for (const Part& part : parts_) {
    for (const nn::ArenaSlot& slot : part.arena->slots()) {
      TROUPE_RETURN_IF_ERROR(fill(*slot.parameter));
    }
  }
  for (const nn::Buffer* buffer : buffers_) {
    TROUPE_RETURN_IF_ERROR(fill(*buffer));
  }
  return absl::OkStatus();
}

absl::Status ChunkParameters::ReadWideCopies(const nn::WeightFile& weights,
                                             const nn::ParameterArena& arena) {
  for (const auto& [name, state] : arena.states()) {
    if (name != nn::kMasterState && name != nn::kAverageState) continue;
    if (state.dtype() == arena.values().dtype()) continue;
    for (const nn::ArenaSlot& slot : arena.slots()) {
      if (!weights.Has(*slot.parameter)) continue;
      TROUPE_RETURN_IF_ERROR(
          Fill(arena.View(state, slot), [&](const nn::Tensor& host) {
            return weights.Read(*slot.parameter, host).status();
          }));
    }
  }
  return absl::OkStatus();
}

absl::Status ChunkParameters::AddPart(
    const std::vector<std::vector<nn::Parameter*>>& buckets,
    const std::vector<nn::Parameter*>& frozen, std::vector<int> copied) {
  const pipeline::Plan& plan = *setup_.plan;
  nn::ParameterArena::Options options;
  options.copied_buckets = std::move(copied);
  options.frozen = frozen;
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
  options.keep_grads = setup_.keeps_grads || buckets.size() < 2 ||
                       plan.micro_batches > 1 ||
                       setup_.update_queue != nn::Queue::kCompute;
  // If backward may update rows, the gradients of even the largest bucket may
  // need no memory.
  options.grads_ahead = !AllowsRows();
  Part part;
  TROUPE_ASSIGN_OR_RETURN(part.arena,
                          nn::ParameterArena::Create(buckets, options, memory));
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

template <typename Each>
absl::Status ChunkParameters::ForEachSaved(const Checkpoint* saved,
                                           const Each& each) const {
  for (const Part& part : parts_) {
    for (const nn::ArenaSlot& slot : part.arena->slots()) {
      if (saved == nullptr && copies_.count(slot.parameter->name) > 0) continue;
      const std::string& name = saved == nullptr
                                    ? slot.parameter->name
                                    : SavedName(*saved, *slot.parameter);
      TROUPE_RETURN_IF_ERROR(
          each(name, slot.parameter->value, /*of_optimizer=*/false));
      for (const auto& [state_name, state] : part.arena->states()) {
        TROUPE_RETURN_IF_ERROR(each(absl::StrCat(name, ".", state_name),
                                    part.arena->View(state, slot),
                                    /*of_optimizer=*/true));
      }
    }
  }
  for (const nn::Buffer* buffer : buffers_) {
    TROUPE_RETURN_IF_ERROR(
        each(buffer->name, buffer->value, /*of_optimizer=*/false));
  }
  return absl::OkStatus();
}

absl::Status ChunkParameters::CopyInto(const nn::Tensor& scalars,
                                       CheckpointShard& shard) const {
  for (const Part& part : parts_) {
    if (part.optimizer == nullptr || !part.optimizer->CountsUpdates()) continue;
    TROUPE_RETURN_IF_ERROR(part.counts.CopyInto(*part.arena, scalars, copies_,
                                                *setup_.kernels, shard));
  }
  return ForEachSaved(nullptr,
                      [&](const std::string& name, const nn::Tensor& tensor,
                          bool of_optimizer) -> absl::Status {
                        TROUPE_ASSIGN_OR_RETURN(
                            nn::Tensor copy,
                            HostCopy(tensor, name, *setup_.kernels));
                        (of_optimizer ? shard.optimizer : shard.model)
                            .push_back({name, std::move(copy)});
                        return absl::OkStatus();
                      });
}

absl::Status ChunkParameters::Restore(const Checkpoint& checkpoint,
                                      double updates) {
  TROUPE_RETURN_IF_ERROR(RestoreTensors(checkpoint, /*states=*/false));
  for (Part& part : parts_) {
    if (part.optimizer == nullptr) continue;
    // Sets the initial values of states that the checkpoint may lack.
    TROUPE_RETURN_IF_ERROR(part.optimizer->Begin(*setup_.kernels, *part.arena));
    if (!part.optimizer->CountsUpdates()) continue;
    TROUPE_RETURN_IF_ERROR(
        part.counts.Restore(checkpoint, *part.arena, updates));
    part.optimizer->SetFirstUpdates(*part.arena, part.counts.first_updates());
  }
  return RestoreTensors(checkpoint, /*states=*/true);
}

absl::Status ChunkParameters::RestoreTensors(const Checkpoint& checkpoint,
                                             bool states) {
  return ForEachSaved(
      &checkpoint,
      [&](const std::string& name, const nn::Tensor& tensor,
          bool of_optimizer) -> absl::Status {
        if (of_optimizer != states) return absl::OkStatus();
        const bool missing = states ? checkpoint.FindOptimizer(name) == nullptr
                                    : checkpoint.FindModel(name) == nullptr;
        if (missing && setup_.allow_missing) {
          return absl::OkStatus();
        }
        return Fill(tensor, [&](const nn::Tensor& host) {
          return states ? checkpoint.ReadOptimizer(name, host)
                        : ReadModelTensor(checkpoint, name, host,
                                          nn::HostAllocator(*setup_.kernels));
        });
      });
}

}  // namespace troupe::actors
