// What a chunk trains and saves: its parameters in one arena per dtype, each
// with an optimizer of its own, and its buffers; by the numbers of the plan's
// buckets.
//
//   TROUPE_ASSIGN_OR_RETURN(auto parameters,
//                           ChunkParameters::Create(setup, *module));
//   parameters->BeginStep();
//   parameters->HoldGrads(k);        // before the backward that fills them
//   comm->RunInline(parameters->Reduce(k), timeout);
//   TROUPE_RETURN_IF_ERROR(parameters->Update(k, scalars));
//
// The module outlives it, and works on its memory. Threads: one at a time.

#ifndef ACTORS_CHUNKS_CHUNK_PARAMETERS_H_
#define ACTORS_CHUNKS_CHUNK_PARAMETERS_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/chunks/bucket_update.h"
#include "actors/spec/job_spec.h"
#include "comm/communicator.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/buffer.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "pipeline/plan.h"

namespace troupe::actors {

class ChunkParameters {
 public:
  struct Setup {
    const JobSpec* spec = nullptr;  // optimizer, seed
    const pipeline::Plan* plan = nullptr;
    int stage = 0;
    std::shared_ptr<nn::Kernels> kernels;
    int start_threads = 1;  // fill the parameters before the first step
    nn::Tensor scalars;     // what updates read (nn/kernels/step_scalars.h)
    // Where gradients live that are the host's; null: where all tensors do.
    nn::Allocator* grad_allocator = nullptr;
    // Where updates go on a device with queues. Apart from kCompute, gradients
    // have memory of their own, all the time: one bucket's backward would have
    // to wait for another's update.
    nn::Queue update_queue = nn::Queue::kCompute;
  };

  // Gives the parameters and buffers of `module` memory and initial values:
  // those of JobSpec::init, and of their initialisers.
  static absl::StatusOr<std::unique_ptr<ChunkParameters>> Create(
      const Setup& setup, nn::Module& module);

  int num_buckets() const { return static_cast<int>(places_.size()); }
  int BucketOf(const nn::Parameter& parameter) const {
    return bucket_of_[parameter.index];
  }

  // As those of nn::ParameterArena.
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
  // When no backward of the step adds more to the bucket: AddUses() of nn for
  // what modules share.
  absl::Status AddUses(int bucket);

  // Whether other stages have the bucket too (pipeline/ties.h).
  bool IsTied(int bucket) const { return places_[bucket].tied; }
  // The gradients of such a bucket, without padding: as long in all stages.
  nn::Tensor TiedGrads(int bucket) const;

  // Between the sum over stages, where there is one, or the backward that
  // completes the bucket, and Reduce(): rounds its gradients to the dtype of
  // reductions. Nothing where they have it.
  absl::Status Pack(int bucket);
  // Adds the memory that all Reduce() work on, where it stays in its place.
  void AddReduced(std::vector<nn::Tensor>& ranges) const;
  // What reduces the bucket's gradients over the replicas.
  comm::Collective Reduce(int bucket) const;
  // What reduces them and updates the parameters in one pass.
  comm::Collective ReduceUpdate(int bucket) const;
  // The optimizers look at the gradients as a whole (Optimizer::Inspect), and
  // add to these scalars what they find. Enqueued in update_queue, as Update.
  absl::Status Inspect(const nn::Tensor& scalars);
  // What follows from what all stages found (Optimizer::Conclude). Once for all
  // chunks of a rank.
  absl::Status Conclude(nn::Tensor scalars);
  // Whether UpdateRows() may be called: a parameter needs its gradient and
  // nothing else, and nobody else needs that.
  bool UpdatesByRows() const;
  // Updates a parameter's rows [begin, begin + grads.dim(0)), whose gradients
  // these are. Update() of its bucket leaves the parameter out, in this step;
  // so all of its rows are updated before.
  absl::Status UpdateRows(const nn::Parameter& parameter, std::int64_t begin,
                          const nn::Tensor& grads);
  // UpdateRows() has updated all parameters of the bucket: nobody needs its
  // gradients, which may have no memory.
  bool IsUpdated(int bucket) const;
  // Updates the bucket by these scalars, and releases its gradients.
  absl::Status Update(int bucket, const nn::Tensor& scalars);
  // What the optimizer sets of step `step`'s scalars (Optimizer::FillScalars).
  nn::StepScalars ScalarsOf(std::int64_t step) const {
    nn::StepScalars values;
    parts_[0].optimizer->FillScalars(step, values);
    return values;
  }

  // Adds copies of parameters, buffers and optimizer states to `shard`, in
  // memory of the host; the device's queue kReadBack makes them. What an
  // earlier stage has too, that one saves.
  //   kResourceExhausted: there is no memory for them; names the tensor.
  absl::Status CopyInto(CheckpointShard& shard) const;
  // Errors as Checkpoint::ReadModel: names the tensor that is missing or of
  // another shape.
  absl::Status Restore(const Checkpoint& checkpoint);

  // In order of the dtypes' first buckets; a model of one dtype has one.
  int num_arenas() const { return static_cast<int>(parts_.size()); }
  const nn::ParameterArena& arena(int i) const { return *parts_[i].arena; }

 private:
  // The parameters of one dtype.
  struct Part {
    std::shared_ptr<nn::ParameterArena> arena;
    std::shared_ptr<nn::Optimizer> optimizer;
    std::vector<std::shared_ptr<BucketUpdate>> updates;  // by its buckets
    // What is reduced in place of gradients, by bucket; empty: they are.
    std::vector<nn::Tensor> wire;
    // By slot, where UpdateRows() was called in this step; empty: it was not.
    std::vector<bool> updated;
  };
  // Where a bucket of the plan is: bucket k of a part.
  struct Place {
    int part = 0;
    int k = 0;
    bool packed = false;  // what the gradients are to be is on the wire
    bool tied = false;
  };

  explicit ChunkParameters(const Setup& setup) : setup_(setup) {}
  // Whether the plan needs no gradient as a whole.
  bool AllowsRows() const;
  absl::Status Init(nn::Module& module);
  // `copied`: of its buckets, those that an earlier stage has too.
  absl::Status AddPart(const std::vector<std::vector<nn::Parameter*>>& buckets,
                       const std::vector<nn::Parameter*>& frozen,
                       std::vector<int> copied);
  // Marks the tied buckets, and what modules of this stage share.
  void FindShared();
  // The memory of what is reduced in place of gradients.
  absl::Status AddWire(nn::Allocator& memory, Part& part);
  // Calls each(range) for what UpdateRows() has left of a bucket.
  template <typename Each>
  absl::Status ForEachLeft(const Part& part, int k, const Each& each) const;
  // Brings back what Pack() took and a reduction has added up. Enqueued where
  // calls of kernels go.
  absl::Status Unpack(Place& place);
  // Takes what the file has; optimizers then begin with it.
  absl::Status ReadWeights(const nn::WeightFile& weights);
  // Calls read(tensor) with memory of the host for `tensor`, and copies what it
  // has read where that is not the tensor's own.
  template <typename Read>
  absl::Status Fill(const nn::Tensor& tensor, const Read& read);
  // Calls each(name, tensor, of_optimizer) for all that is saved, until one
  // fails; under the names of `saved`, where it is not null.
  template <typename Each>
  absl::Status ForEachSaved(const Checkpoint* saved, const Each& each) const;
  // The optimizers' states, or all but them.
  absl::Status RestoreTensors(const Checkpoint& checkpoint, bool states);
  nn::ParameterArena& ArenaOf(int bucket) {
    return *parts_[places_[bucket].part].arena;
  }

  const Setup setup_;
  std::vector<Part> parts_;
  std::vector<Place> places_;     // by bucket of the plan
  std::vector<int> bucket_of_;    // by Parameter::index; kNoBucket: frozen
  std::set<std::string> copies_;  // parameters that an earlier stage saves
  std::vector<nn::Parameter*> used_twice_;  // that keep a gradient per use
  std::vector<nn::Buffer*> buffers_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_CHUNK_PARAMETERS_H_
