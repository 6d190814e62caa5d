// One contiguous part of the model on one rank: module, parameters, optimizer,
// and what its micro-batches hold between forward and backward. The table says
// when each part of it runs; the chunk knows neither tables nor other ranks.
//
//   TROUPE_ASSIGN_OR_RETURN(auto chunk, Chunk::Create(setup, &listener));
//   chunk->BeginStep(StepKind::kTrain, step, batches);
//   TROUPE_RETURN_IF_ERROR(chunk->Forward(0));
//   chunk->BeginBackward(0, nn::BackwardPass::Mode::kWhole);
//   while (*chunk->NextPiece()) {          // the listener hears of buckets
//   }
//   Reduce(chunk->arena().BucketGrads(k));  // over the replicas
//   TROUPE_RETURN_IF_ERROR(chunk->Update(k));
//
// What comes from a neighbouring chunk is given by ReceiveActivations and
// ReceiveGradients before it is needed; what goes to one is taken by
// TakeOutputs() after a forward and TakeInputGradients() after a backward: the
// activation first, then what travels beside it (StagePlan::skips). Sums keep
// the order of the backwards, so their micro-batches come in order.
//
// Errors: kInvalidArgument and what kernels return, naming step, micro-batch
// and module.
// Threads: one at a time. Several chunks of one rank share kernels.

#ifndef ACTORS_CHUNKS_CHUNK_H_
#define ACTORS_CHUNKS_CHUNK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/chunks/chunk_parameters.h"
#include "actors/chunks/memory_holders.h"
#include "actors/chunks/staged_copy.h"
#include "actors/chunks/step_trace.h"
#include "actors/chunks/step_types.h"
#include "actors/spec/job_spec.h"
#include "comm/communicator.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
#include "nn/autograd/tape.h"
#include "nn/collectives.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "pipeline/plan.h"

namespace troupe::actors {

class Chunk : private nn::GradientSink, private nn::ParameterGate {
 public:
  using Mode = nn::BackwardPass::Mode;

  // Told, in the backward of a step's last micro-batch, what has become of each
  // bucket of chunk `chunk`; each of the two at most once a step.
  class Listener {
   public:
    virtual ~Listener() = default;
    // This step adds nothing more to the bucket's gradients.
    virtual void BucketReady(int chunk, int bucket) = 0;
    // Nothing in this step reads the bucket's parameters any more.
    virtual void BucketReleased(int chunk, int bucket) = 0;
    // Asked in a training step, where Setup::gated, before the bucket's
    // parameters are read or its gradients written: returns when the step
    // before has updated them, or what reads and writes will wait for that.
    virtual absl::Status AwaitUpdate(int /*chunk*/, int /*bucket*/) {
      return absl::OkStatus();
    }
  };

  struct Setup {
    const JobSpec* spec = nullptr;  // model, loss, optimizer, dtype, seed
    const pipeline::Plan* plan = nullptr;
    int stage = 0;
    int chunk = 0;  // its number on the rank
    std::shared_ptr<nn::Kernels> kernels;
    StepTrace* trace = nullptr;
    // Peers of its layers; those of axes that are not here have none.
    absl::Span<const nn::AxisCollectives> axes;
    // Number of threads that fill the parameters before the first step.
    int start_threads = 1;
    // Where gradients live that are the host's; null: where all tensors do.
    nn::Allocator* grad_allocator = nullptr;
    // What updates read where none are given (nn/kernels/step_scalars.h).
    nn::Tensor scalars;
    // The gradient that the loss has (LossScaler::seed); undefined: the plan's
    // loss scale.
    nn::Tensor loss_seed;
    // Forwards ask the listener before they read parameters.
    bool gated = false;
    // Where updates go on a device with queues (ChunkParameters::Setup).
    nn::Queue update_queue = nn::Queue::kCompute;
  };

  // All pointers outlive the chunk.
  static absl::StatusOr<std::unique_ptr<Chunk>> Create(const Setup& setup,
                                                       Listener* listener);
  ~Chunk() override;

  int stage() const { return setup_.stage; }
  bool is_first() const { return first_; }
  bool is_last() const { return last_; }

  // Starts a step. `batches`: one per micro-batch.
  void BeginStep(StepKind kind, std::int64_t step, StepBatches batches);
  // The step is recorded: its layers draw where these say when they run, i32[2]
  // for each micro-batch (DropoutMask::place). After BeginStep().
  void DrawAt(const nn::Tensor& draws) { draws_ = draws; }

  absl::Status Forward(int micro_batch);
  // The activation, or the loss's statistics (nn/ops/loss.h) on the last chunk,
  // but in a prediction.
  const nn::Tensor& output(int micro_batch) const;
  // All that the next chunk gets; from here on it is that chunk's memory.
  nn::TensorList TakeOutputs(int micro_batch);

  // In this step a backward may update a parameter as soon as its gradient is
  // there, part by part while that is in the cache, and without memory for the
  // whole: the loss of all ranks is there. What it has updated so, Update()
  // leaves out. Before BeginBackward(); nothing where the parameters do not
  // allow it (ChunkParameters::UpdatesByRows).
  void UpdateInBackward() { updates_ = parameters_->UpdatesByRows(); }
  // A backward has updated all of the bucket.
  bool IsUpdated(int bucket) const { return parameters_->IsUpdated(bucket); }
  void BeginBackward(int micro_batch, Mode mode);
  // Runs a piece of the backward (nn/autograd/tape.h). False when it is done.
  absl::StatusOr<bool> NextPiece();

  //   kInvalidArgument: there are not as many as the plan has for this stage,
  //     or for the next.
  absl::Status ReceiveActivations(int micro_batch,
                                  const nn::TensorList& tensors);
  absl::Status ReceiveGradients(int micro_batch, const nn::TensorList& tensors);
  // The gradients of all inputs, in their order. Where the loss does not depend
  // on one: zeros for the first, undefined for others. Empty in evaluation.
  nn::TensorList TakeInputGradients(int micro_batch);

  // As those of ChunkParameters.
  bool IsTied(int bucket) const { return parameters_->IsTied(bucket); }
  nn::Tensor TiedGrads(int bucket) const {
    return parameters_->TiedGrads(bucket);
  }
  absl::Status Pack(int bucket) { return parameters_->Pack(bucket); }
  void AddReduced(std::vector<nn::Tensor>& ranges) const {
    parameters_->AddReduced(ranges);
  }
  comm::Collective Reduce(int bucket) const {
    return parameters_->Reduce(bucket);
  }
  comm::Collective ReduceUpdate(int bucket) const {
    return parameters_->ReduceUpdate(bucket);
  }
  absl::Status Inspect(const nn::Tensor& scalars) {
    return parameters_->Inspect(scalars);
  }
  absl::Status Conclude(const nn::Tensor& scalars) {
    return parameters_->Conclude(scalars);
  }
  absl::Status Update(int bucket) { return Update(bucket, setup_.scalars); }
  absl::Status Update(int bucket, const nn::Tensor& scalars) {
    return parameters_->Update(bucket, scalars);
  }
  nn::StepScalars ScalarsOf(std::int64_t step) const {
    return parameters_->ScalarsOf(step);
  }
  // Nobody reads the bucket's gradients any more: after ReduceUpdate.
  void ReleaseGrads(int bucket) { parameters_->ReleaseGrads(bucket); }
  absl::Status CopyInto(CheckpointShard& shard) const {
    return parameters_->CopyInto(shard);
  }
  absl::Status Restore(const Checkpoint& checkpoint) {
    return parameters_->Restore(checkpoint);
  }

  // Its parameters, their gradients and states.
  void AddTo(MemoryHolders& holders) const;
  // The first dtype's.
  const nn::ParameterArena& arena() const { return parameters_->arena(0); }

 private:
  struct MicroBatch;
  struct Bucket {
    int grads_left = 0;
    int readers_left = 0;
    bool ready = false;
    bool released = false;
  };
  // The backward that is going on.
  struct Backward {
    nn::BackwardPass pass;
    int micro_batch;
    Mode mode;
  };

  Chunk(const Setup& setup, Listener* listener);
  absl::Status Init();

  // GradientSink:
  absl::Status GradientNeeded(nn::Parameter& parameter) override;
  bool TakesRows(const nn::Parameter&) override { return updates_; }
  absl::Status TakeRows(nn::Parameter& parameter, std::int64_t begin,
                        const nn::Tensor& rows) override {
    return parameters_->UpdateRows(parameter, begin, rows);
  }
  void GradientComplete(nn::Parameter& parameter) override;
  void LastReaderDone(nn::Parameter& parameter) override;
  // ParameterGate:
  absl::Status AwaitValue(const nn::Parameter& parameter) override;

  absl::Status RunForward(int micro_batch);
  absl::StatusOr<bool> RunPiece();
  // An error, with step and micro-batch in front.
  absl::Status InStep(int micro_batch, const absl::Status& status) const;

  // The inputs of the module; what is to be popped goes into `ctx`.
  absl::StatusOr<nn::TensorList> Inputs(nn::Context& ctx, int micro_batch);
  nn::TensorList RunModule(nn::Context& ctx, const nn::TensorList& inputs);
  // What was stashed for later chunks becomes an output, too.
  absl::Status AddSkips(nn::Context& ctx, nn::TensorList& outputs) const;
  // How many tensors go to the next chunk.
  int sent_tensors() const;
  nn::Tensor Loss(nn::Context& ctx, int micro_batch, nn::Tensor output);
  // `loaded`, where the kernels find it, in the model's dtype where it is
  // floating: tokens stay integers.
  absl::StatusOr<nn::Tensor> AsModelType(const nn::Tensor& loaded,
                                         StagedCopy& copy);
  void CountGradients(const nn::Tape& tape);
  void TellWhatIsDone();
  void TellIfDone(int bucket);

  const Setup setup_;
  Listener* const listener_;
  const bool first_, last_;
  nn::Kernels& kernels_;
  StagedCopy inputs_, targets_;  // of a device with queues

  std::unique_ptr<nn::Module> module_;
  std::unique_ptr<ChunkParameters> parameters_;

  StepKind kind_ = StepKind::kTrain;
  std::int64_t step_ = -1;
  StepBatches batches_;
  nn::Tensor draws_;  // undefined: the step is not recorded
  std::vector<MicroBatch> micro_batches_;
  std::optional<Backward> backward_;
  // Only what the last micro-batch adds completes a gradient.
  bool counting_ = false;
  bool weights_begun_ = false;  // of that micro-batch
  bool updates_ = false;        // backward updates what it can
  absl::Status bucket_status_;  // what kept a bucket from becoming ready
  std::vector<Bucket> buckets_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_CHUNK_H_
