// Owns all that a chunk trains and saves: its parameters (bucket_arenas.h),
// their reductions over the replicas (bucket_reductions.h) and updates
// (bucket_updates.h), and its buffers. Buckets are those of the plan, by
// number. It needs no job: a hand-written training loop has one with a plan of
// parameters alone (pipeline/parameter_plan.h), and attaches its optimizer
// later.
//
//   TROUPE_ASSIGN_OR_RETURN(auto parameters,
//                           ChunkParameters::Create(setup, *module));
//   parameters->BeginStep();
//   parameters->HoldGrads(k);        // before their backward
//   TROUPE_RETURN_IF_ERROR(parameters->reductions().Begin(k));
//   comm->RunInline(*parameters->reductions().Exchange(k), timeout);
//   TROUPE_RETURN_IF_ERROR(parameters->reductions().End(k));
//   TROUPE_RETURN_IF_ERROR(parameters->updates().Update(k, scalars));
//
// The module outlives it and uses its memory. Threads: one at a time.

#ifndef ACTORS_CHUNKS_CHUNK_PARAMETERS_H_
#define ACTORS_CHUNKS_CHUNK_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/chunks/bucket_arenas.h"
#include "actors/chunks/bucket_reductions.h"
#include "actors/chunks/bucket_updates.h"
#include "actors/chunks/peer_memory.h"
#include "actors/chunks/saved_tensors.h"
#include "actors/spec/bucket_reduction.h"
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
  using MakeOptimizerFn = BucketUpdates::MakeOptimizerFn;

  struct Setup {
    const pipeline::Plan* plan = nullptr;  // outlives it, like all pointers
    int stage = 0;
    int rank = 0;  // number in the mesh of the plan
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
    // Memory of what ranks exchange.
    PeerMemory peer_memory;
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
  const nn::Optimizer* optimizer() const { return updates_->optimizer(); }

  // Reductions of gradients over the replicas, and updates, by bucket.
  BucketReductions& reductions() { return *reductions_; }
  const BucketReductions& reductions() const { return *reductions_; }
  BucketUpdates& updates() { return *updates_; }
  const BucketUpdates& updates() const { return *updates_; }

  // Starts a step: gradients count as unwritten, and no parameter as updated.
  void BeginStep();

  // These do the same as the BucketArenas methods of their names.
  int num_buckets() const { return arenas_->num_buckets(); }
  int BucketOf(const nn::Parameter& parameter) const {
    return arenas_->BucketOf(parameter);
  }
  bool Has(const nn::Parameter& parameter) const {
    return arenas_->Has(parameter);
  }
  int num_arenas() const { return arenas_->num_arenas(); }
  const nn::ParameterArena& arena(int i) const { return arenas_->arena(i); }
  absl::Status HoldGrads(int bucket) { return arenas_->HoldGrads(bucket); }
  void ReleaseGrads(int bucket) { arenas_->ReleaseGrads(bucket); }
  // Returns whether values are gathered before their uses.
  bool gathers_values() const { return setup_.plan->gathers_values(); }
  void HoldValues(int bucket) { arenas_->HoldValues(bucket); }
  void ReleaseValues(int bucket) { arenas_->ReleaseValues(bucket); }
  absl::Status ZeroUnwritten(int bucket) {
    return arenas_->ZeroUnwritten(bucket);
  }
  nn::Tensor BucketGrads(int bucket) const { return arenas_->Grads(bucket); }
  bool slices_grads() const { return arenas_->slices_grads(); }
  absl::Status KeepSlice(int bucket, bool adds, nn::Queue queue) const {
    return arenas_->KeepSlice(bucket, adds, queue);
  }
  // Passes the complete gradients of a bucket to its reduction.
  absl::Status BeginReduction(int bucket);
  // Returns the number of micro-batches of a step, if the bucket's gradients of
  // each are reduced; otherwise 1.
  int reduced_micro_batches(int bucket) const {
    const pipeline::Plan& plan = *setup_.plan;
    return plan.ReducesEachMicroBatch() && !IsTied(bucket) ? plan.micro_batches
                                                           : 1;
  }
  std::vector<nn::Tensor> StateOf(int bucket) const {
    return arenas_->StateOf(bucket);
  }

  // Do so for all buckets.
  void HoldAllValues() {
    for (int k = 0; k < num_buckets(); ++k) HoldValues(k);
  }
  void ReleaseAllValues() {
    for (int k = 0; k < num_buckets(); ++k) ReleaseValues(k);
    arenas_->FreeReused();
  }
  // Returns the bytes of values that have had no memory so far.
  std::size_t never_held_bytes() const { return arenas_->never_held_bytes(); }
  // Returns the bytes of values that are not in the kernels' memory.
  std::size_t exchanged_value_bytes() const;

  // Adds the gradients per use of shared parameters (nn::AddUses). Call it when
  // no backward of the step adds more to the bucket.
  absl::Status AddUses(int bucket);
  // Returns whether a backward may update rows (BucketUpdates::UpdateRows): an
  // update needs only the parameter's own gradient, and nothing else reads
  // that.
  bool UpdatesByRows() const {
    return AllowsRows() && optimizer() != nullptr &&
           optimizer()->IsElementwise();
  }
  // Returns whether other stages have the bucket too (pipeline/ties.h).
  bool IsTied(int bucket) const { return tied_[bucket]; }
  // Returns whether ranks along tp have parts of the bucket's gradients
  // (pipeline::StagePlan::partial_grads).
  bool HasParts(int bucket) const {
    return setup_.plan->stages[setup_.stage].IsPartialBucket(bucket);
  }
  // Returns the gradients of a bucket without padding: all stages that share it
  // have the same number of elements.
  nn::Tensor UnpaddedGrads(int bucket) const {
    return arenas_->UnpaddedGrads(bucket);
  }

  // Returns the optimizer's scalars of step `step` (Optimizer::FillScalars).
  nn::StepScalars ScalarsOf(std::int64_t step) const {
    nn::StepScalars values;
    if (optimizer() != nullptr) optimizer()->FillScalars(step, values);
    return values;
  }

  // Keeps whole tensors of arena `i`, in host memory, for the next CopyInto():
  // values and states of the parameters that ranks along tp have pieces of, and
  // states that replicas have slices of (pipeline::PlanChoices::owners()).
  void KeepWholes(int i, WholeSlots wholes) {
    wholes_.resize(num_arenas());
    wholes_[i] = std::move(wholes);
  }
  // Adds copies of parameters, buffers and optimizer states to `shard`, in host
  // memory; the device's queue kReadBack makes them. A parameter that an
  // earlier stage has too is saved there. `scalars` holds StepScalars on the
  // device whose step is the number of the run's updates (UpdateCounts).
  // `in_place`: the copies are this rank's parts of all tensors, disjoint from
  // those of other replicas and ranks along tp; false: whole tensors, of which
  // KeepWholes() has got those that no rank has all of.
  //   kResourceExhausted: there is no memory for them; names the tensor.
  absl::Status CopyInto(const nn::Tensor& scalars, bool in_place,
                        CheckpointShard& shard);
  // Reads all of these from `checkpoint`. `updates`: number of the run's
  // updates so far. Errors: those of Checkpoint::ReadModel(), which name the
  // tensor that is missing or of another shape.
  absl::Status Restore(const Checkpoint& checkpoint, double updates);

  // Returns the memory of the buffers that replicas share
  // (pipeline::StagePlan::shares_buffers): one block for each dtype.
  const std::vector<nn::Tensor>& shared_buffers() const {
    return shared_buffers_;
  }

 private:
  explicit ChunkParameters(const Setup& setup) : setup_(setup) {}
  absl::Status Init(nn::Module& module);
  absl::Status MakeArenas(nn::Module& module);
  absl::Status AddBuffers(nn::Module& module);
  // Returns the parameters that another rank, or an earlier stage, counts in
  // norms.
  std::set<std::string> CountedElsewhere() const;
  // Marks the tied buckets, and the parameters that modules of this stage
  // share.
  void FindShared();
  // Returns whether the plan never needs the whole gradient of a parameter.
  bool AllowsRows() const;
  // Returns the allocator of tensors that collectives work on.
  nn::Allocator& ReducedMemory() const;
  // Returns whether values lie in that memory, apart from the kernels'.
  bool ExchangesValues() const;
  // Returns a view of the tensors that are saved, for one call.
  SavedTensors Saved();

  const Setup setup_;
  std::unique_ptr<BucketArenas> arenas_;
  std::unique_ptr<BucketReductions> reductions_;
  std::unique_ptr<BucketUpdates> updates_;
  std::vector<bool> tied_;        // indexed by bucket of the plan
  std::set<std::string> copies_;  // parameters that an earlier stage saves
  std::vector<nn::Parameter*> used_twice_;  // each keeps a gradient per use
  std::vector<nn::Buffer*> buffers_;
  std::vector<nn::Tensor> shared_buffers_;
  std::vector<WholeSlots> wholes_;  // by arena, from KeepWholes() on
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_CHUNK_PARAMETERS_H_
