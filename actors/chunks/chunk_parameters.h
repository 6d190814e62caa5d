// Owns all that a chunk trains and saves: its parameters, in one arena per
// dtype, each with an optimizer of its own, and its buffers. Buckets are those
// of the plan, by number. It needs no job: a hand-written training loop has one
// with a plan of parameters alone (pipeline/parameter_plan.h), and attaches its
// optimizer later.
//
//   TROUPE_ASSIGN_OR_RETURN(auto parameters,
//                           ChunkParameters::Create(setup, *module));
//   parameters->BeginStep();
//   parameters->HoldGrads(k);        // before their backward
//   TROUPE_RETURN_IF_ERROR(parameters->BeginReduction(k));
//   comm->RunInline(*parameters->Reduce(k), timeout);
//   TROUPE_RETURN_IF_ERROR(parameters->EndReduction(k));
//   TROUPE_RETURN_IF_ERROR(parameters->Update(k, scalars));
//
// The module outlives it and uses its memory. Threads: one at a time.

#ifndef ACTORS_CHUNKS_CHUNK_PARAMETERS_H_
#define ACTORS_CHUNKS_CHUNK_PARAMETERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/chunks/arena_layout.h"
#include "actors/chunks/bucket_update.h"
#include "actors/chunks/saved_tensors.h"
#include "actors/chunks/update_counts.h"
#include "actors/spec/bucket_reduction.h"
#include "comm/communicator.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/buffer.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "nn/optim/optimizer.h"
#include "nn/serialize/weight_file.h"
#include "pipeline/plan.h"

namespace troupe::actors {

class ChunkParameters {
 public:
  // Makes an optimizer, one for each dtype.
  using MakeOptimizerFn =
      std::function<absl::StatusOr<std::unique_ptr<nn::Optimizer>>()>;

  struct Setup {
    const pipeline::Plan* plan = nullptr;  // outlives it, like all pointers
    int stage = 0;
    int replica = 0;
    std::shared_ptr<nn::Kernels> kernels;
    std::uint64_t seed = 0;  // seed of initial values
    // File of initial values that take the place of drawn ones; null: none.
    const nn::WeightFile* weights = nullptr;
    // Null: the owner calls AttachOptimizer().
    MakeOptimizerFn make_optimizer;
    // Reduction in place of an all-reduce; null: none. It must be the plan's.
    const CommunicationHook* hook = nullptr;
    // Whether reductions average gradients over the replicas. False: they add
    // them up, and updates divide.
    bool averages = false;
    // Whether gradients stay until the next BeginStep(), so that a program may
    // read them, and no bucket's memory is used by another.
    bool keeps_grads = false;
    // Whether Restore() may leave out a tensor that the checkpoint lacks.
    bool allow_missing = false;
    // Number of threads that fill the parameters before the first step.
    int start_threads = 1;
    nn::Tensor scalars;  // read by updates in a reduction
    // Allocator of gradients in host memory; null: that of all tensors.
    nn::Allocator* grad_allocator = nullptr;
    // Queue of updates on a device with queues. If it is not kCompute, buckets
    // never share memory for gradients: one bucket's backward would have to
    // wait for another's update.
    nn::Queue update_queue = nn::Queue::kCompute;
  };

  // Gives the parameters and buffers of `module` memory and initial values:
  // those of Setup::weights, else of their initialisers.
  //   kInvalidArgument: the module is not that of the plan.
  static absl::StatusOr<std::unique_ptr<ChunkParameters>> Create(
      const Setup& setup, nn::Module& module);

  // Makes the optimizers, whose states begin with the present values.
  //   kFailedPrecondition: it has optimizers already.
  absl::Status AttachOptimizer(const MakeOptimizerFn& make);
  // Returns the optimizer of the first dtype; null before AttachOptimizer().
  const nn::Optimizer* optimizer() const { return parts_[0].optimizer.get(); }

  int num_buckets() const { return static_cast<int>(places_.size()); }
  int BucketOf(const nn::Parameter& parameter) const {
    return bucket_of_[parameter.index];
  }

  // Returns whether the parameter is one of these, and trained.
  bool Has(const nn::Parameter& parameter) const;

  // These do the same as the nn::ParameterArena methods of their names.
  void BeginStep();
  absl::Status HoldGrads(int bucket) {
    return ArenaOf(bucket).HoldGrads(places_[bucket].k);
  }
  void ReleaseGrads(int bucket) {
    ArenaOf(bucket).ReleaseGrads(places_[bucket].k);
  }
  absl::Status ZeroUnwritten(int bucket) {
    return ArenaOf(bucket).ZeroUnwritten(places_[bucket].k);
  }
  // Adds the gradients per use of shared parameters (nn::AddUses). Call it when
  // no backward of the step adds more to the bucket.
  absl::Status AddUses(int bucket);

  // Returns the gradients of a bucket, flat, with the padding of its arena.
  // They need memory (HoldGrads()).
  nn::Tensor BucketGrads(int bucket) const { return Grads(places_[bucket]); }

  // Returns whether other stages have the bucket too (pipeline/ties.h).
  bool IsTied(int bucket) const { return places_[bucket].tied; }
  // Returns the gradients of a tied bucket, without padding: all stages have
  // the same number of elements.
  nn::Tensor TiedGrads(int bucket) const;

  // The reduction of a bucket's gradients over the replicas
  // (BucketReduction): BeginReduction() comes before the collective of each
  // round, EndReduction() after the last one. It begins once the gradients are
  // complete (for a tied bucket: summed over stages).
  absl::Status BeginReduction(int bucket, int round = 0);
  std::optional<comm::Collective> Reduce(int bucket, int round = 0) const;
  absl::Status EndReduction(int bucket);
  // Returns whether BeginReduction() and EndReduction() do nothing.
  bool ReducesInPlace(int bucket) const {
    return places_[bucket].reduction->in_place();
  }
  // Adds the memory that reductions work on, as far as it keeps its address.
  void AddReduced(std::vector<nn::Tensor>& ranges) const;
  // Returns the collective that reduces them and updates the parameters in one
  // pass. Call ReleaseGrads() once it has ended.
  comm::Collective ReduceUpdate(int bucket) const;
  // Lets the optimizers inspect all gradients (Optimizer::Inspect), which adds
  // the findings to `scalars`. Enqueued in update_queue, like Update().
  absl::Status Inspect(const nn::Tensor& scalars);
  // Sets the scalars that follow from the findings of all stages
  // (Optimizer::Conclude). Call it for one chunk of a rank.
  absl::Status Conclude(nn::Tensor scalars);
  // Returns whether UpdateRows() may be called: an update needs only the
  // parameter's own gradient, and nothing else reads that.
  bool UpdatesByRows() const;
  // Updates a parameter's rows [begin, begin + grads.dim(0)), with gradients
  // `grads`. Update() leaves the parameter out in this step, so all of its rows
  // must be updated before.
  absl::Status UpdateRows(const nn::Parameter& parameter, std::int64_t begin,
                          const nn::Tensor& grads, const nn::Tensor& scalars);
  // Returns whether UpdateRows() has updated all parameters of the bucket. Its
  // gradients are then not needed, and may have no memory.
  bool IsUpdated(int bucket) const;
  // Leaves these parameters out of the updates until the next call, or
  // BeginStep(): values, states and averages stay as they are. They must be
  // trained, and all replicas must leave out the same ones.
  void LeaveOut(absl::Span<nn::Parameter* const> parameters);
  // Returns whether LeaveOut() was given any.
  bool leaves_out() const;
  // Ends a step whose updates have left them out: their states are as old as
  // before (Optimizer::CountsUpdates). Not to be called for a skipped step.
  void CountLeftOut();
  // Updates the bucket with these scalars, and releases its gradients.
  absl::Status Update(int bucket, const nn::Tensor& scalars);
  // Returns the optimizer's scalars of step `step` (Optimizer::FillScalars).
  nn::StepScalars ScalarsOf(std::int64_t step) const {
    nn::StepScalars values;
    if (optimizer() != nullptr) optimizer()->FillScalars(step, values);
    return values;
  }

  // Returns the bucket's parameters and optimizer states, flat.
  std::vector<nn::Tensor> StateOf(int bucket) const {
    const nn::ParameterArena& arena = *parts_[places_[bucket].part].arena;
    const int k = places_[bucket].k;
    std::vector<nn::Tensor> tensors = {arena.BucketValues(k)};
    for (const auto& [name, state] : arena.states()) {
      tensors.push_back(arena.View(state, k));
    }
    return tensors;
  }

  // Adds copies of parameters, buffers and optimizer states to `shard`, in host
  // memory; the device's queue kReadBack makes them. A parameter that an
  // earlier stage has too is saved there. `scalars` holds StepScalars on the
  // device whose step is the number of the run's updates (UpdateCounts).
  //   kResourceExhausted: there is no memory for them; names the tensor.
  absl::Status CopyInto(const nn::Tensor& scalars, CheckpointShard& shard);
  // Reads all of these from `checkpoint`. `updates`: number of the run's
  // updates so far. Errors: those of Checkpoint::ReadModel(), which name the
  // tensor that is missing or of another shape.
  absl::Status Restore(const Checkpoint& checkpoint, double updates);

  // Returns the memory of the buffers that replicas share
  // (pipeline::StagePlan::shares_buffers): one block for each dtype.
  const std::vector<nn::Tensor>& shared_buffers() const {
    return shared_buffers_;
  }

  // The arenas are in the order of the dtypes' first buckets. A model of one
  // dtype has one.
  int num_arenas() const { return static_cast<int>(parts_.size()); }
  const nn::ParameterArena& arena(int i) const { return *parts_[i].arena; }

 private:
  // The parameters of one dtype.
  struct Part {
    std::shared_ptr<nn::ParameterArena> arena;
    std::shared_ptr<nn::Optimizer> optimizer;  // null until it is attached
    UpdateCounts counts;  // saved if Optimizer::CountsUpdates()
    std::vector<std::shared_ptr<BucketUpdate>> updates;  // one per bucket
    // Whether UpdateRows() was called in this step, by slot; empty if never.
    std::vector<bool> updated;
    // Whether updates leave a parameter out, by slot; empty: none.
    std::vector<bool> left_out;
  };
  // Place of a bucket of the plan: bucket k of a part.
  struct Place {
    int part = 0;
    int k = 0;
    bool tied = false;
    std::unique_ptr<BucketReduction> reduction;
  };

  explicit ChunkParameters(const Setup& setup) : setup_(setup) {}
  // Returns whether the plan never needs the whole gradient of a parameter.
  bool AllowsRows() const;
  absl::Status Init(nn::Module& module);
  absl::Status AddBuffers(nn::Module& module);
  // Adds the parameters of one dtype.
  absl::Status AddPart(const ArenaLayout::Arena& layout);
  // Marks the tied buckets, and the parameters that modules of this stage
  // share.
  void FindShared();
  absl::Status AddReductions();
  // Calls each(range) for the ranges of a bucket that UpdateRows() has not
  // updated and that are not left out.
  template <typename Each>
  absl::Status ForEachLeft(const Part& part, int k, const Each& each) const;
  // Returns the allocator of tensors that collectives work on.
  nn::Allocator& ReducedMemory() const;
  // Returns a view of the tensors that are saved, for one call.
  SavedTensors Saved();
  nn::Tensor Grads(const Place& place) const {
    return parts_[place.part].arena->BucketGrads(place.k);
  }
  nn::ParameterArena& ArenaOf(int bucket) {
    return *parts_[places_[bucket].part].arena;
  }

  const Setup setup_;
  std::vector<Part> parts_;
  std::vector<Place> places_;  // indexed by bucket of the plan
  // Bucket of each parameter, indexed by Parameter::index; kNoBucket: frozen.
  std::vector<int> bucket_of_;
  std::set<std::string> copies_;  // parameters that an earlier stage saves
  std::vector<nn::Parameter*> used_twice_;  // each keeps a gradient per use
  std::vector<nn::Buffer*> buffers_;
  std::vector<nn::Tensor> shared_buffers_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_CHUNK_PARAMETERS_H_
