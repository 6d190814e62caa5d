// One contiguous part of the model on one rank: module, parameters, optimizer,
// and the tapes and tensors that its micro-batches keep between forward and
// backward. It depends on neither tables nor other ranks: the step engine calls
// it as the table says.
//
//   TROUPE_ASSIGN_OR_RETURN(auto chunk, Chunk::Create(setup, &listener));
//   chunk->BeginStep(StepKind::kTrain, step, batches);
//   TROUPE_RETURN_IF_ERROR(chunk->Forward(0));
//   chunk->BeginBackward(0, nn::BackwardPass::Mode::kWhole);
//   while (*chunk->NextPiece()) {          // calls the listener for buckets
//   }
//   comm->RunInline(*chunk->parameters().reductions().Exchange(k), timeout);
//   TROUPE_RETURN_IF_ERROR(chunk->parameters().reductions().End(k));
//   TROUPE_RETURN_IF_ERROR(chunk->parameters().updates().Update(k, scalars));
//
// Tensors of neighbouring chunks are passed to ReceiveActivations() and
// ReceiveGradients() before they are needed. Tensors for them are taken with
// TakeOutputs() after a forward and TakeInputGradients() after a backward: the
// activations first, then the skip connections (StagePlan::skips). Gradients
// are added in the order of the backwards, so these run in micro-batch order.
//
// Errors: kInvalidArgument, and those of kernels; they name step, micro-batch
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
#include "actors/chunks/gradient_ledger.h"
#include "actors/chunks/memory_holders.h"
#include "actors/chunks/peer_memory.h"
#include "actors/chunks/step/model_batches.h"
#include "actors/chunks/step/step_trace.h"
#include "actors/chunks/step/step_types.h"
#include "actors/spec/job_spec.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
#include "nn/autograd/kv_cache.h"
#include "nn/autograd/tape.h"
#include "nn/collectives.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "pipeline/plan.h"

namespace troupe::actors {

class Chunk {
 public:
  using Mode = nn::BackwardPass::Mode;
  using Listener = GradientLedger::Listener;

  struct Setup {
    const JobSpec* spec = nullptr;  // model, loss, optimizer, dtype, seed
    const pipeline::Plan* plan = nullptr;
    int stage = 0;
    int chunk = 0;  // number of the chunk on its rank
    int rank = 0;   // number in the mesh of the plan
    std::shared_ptr<nn::Kernels> kernels;
    StepTrace* trace = nullptr;
    // Collectives of its layers, by axis. Axes that are not listed have no
    // peers.
    absl::Span<const nn::AxisCollectives> axes;
    // Number of threads that fill the parameters before the first step.
    int start_threads = 1;
    // Memory of what ranks exchange.
    PeerMemory peer_memory;
    // Scalars that updates in a reduction or by rows read
    // (nn/kernels/step_scalars.h).
    nn::Tensor scalars;
    // Gradient of the loss (LossScaler::seed); undefined: the plan's loss
    // scale.
    nn::Tensor loss_seed;
    // Whether Listener::AwaitUpdate() is called.
    bool gated = false;
    // Queue of updates on a device with queues (ChunkParameters::Setup).
    nn::Queue update_queue = nn::Queue::kCompute;
  };

  // All pointers outlive the chunk.
  static absl::StatusOr<std::unique_ptr<Chunk>> Create(const Setup& setup,
                                                       Listener* listener);
  ~Chunk();
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  int stage() const { return setup_.stage; }
  bool is_first() const { return first_; }
  bool is_last() const { return last_; }
  nn::Module& module() { return *module_; }  // its part of the model

  // Starts a step. `batches`: one per micro-batch.
  void BeginStep(StepKind kind, std::int64_t step, StepBatches batches);
  // Sets `draws`, i32[2] for each micro-batch, for a step that is recorded: its
  // layers read from it, when they run, where to draw random numbers
  // (DropoutMask::place). Call it after BeginStep().
  void DrawAt(const nn::Tensor& draws) { draws_ = draws; }

  absl::Status Forward(int micro_batch);
  // Returns the activation; on the last chunk, except in a prediction, the
  // statistics of the loss (nn/ops/loss.h).
  const nn::Tensor& output(int micro_batch) const;
  // Returns the tensors for the next chunk; this one no longer holds their
  // memory.
  nn::TensorList TakeOutputs(int micro_batch);

  // Lets backwards of this step update parameters row by row as their gradients
  // are computed: each row is still in the cache, and the whole gradient needs
  // no memory. The step's loss must be reduced over all ranks.
  // BucketUpdates::Update() leaves out such parameters. Call it before
  // BeginBackward(); it has no effect if the parameters do not allow it
  // (ChunkParameters::UpdatesByRows).
  void UpdateInBackward() { ledger_->UpdateInBackward(setup_.scalars); }
  void BeginBackward(int micro_batch, Mode mode);
  // Runs a piece of the backward (nn/autograd/tape.h). Returns false once the
  // backward has ended.
  absl::StatusOr<bool> NextPiece();

  // Take the tensors of the previous chunk, or of the next one.
  //   kInvalidArgument: their number is not that of the plan.
  absl::Status ReceiveActivations(int micro_batch,
                                  const nn::TensorList& tensors);
  absl::Status ReceiveGradients(int micro_batch, const nn::TensorList& tensors);
  // Returns the gradients of all inputs, in their order. If the loss does not
  // depend on an input: zeros for the first input, undefined for others. Empty
  // in evaluation.
  nn::TensorList TakeInputGradients(int micro_batch);

  // Returns what it trains and saves. BeginStep() and the backwards of its
  // micro-batches use it, too.
  ChunkParameters& parameters() { return *parameters_; }
  const ChunkParameters& parameters() const { return *parameters_; }

  // Adds its parameters, their gradients and states.
  void AddTo(MemoryHolders& holders) const;
  // Returns the arena of the first dtype.
  const nn::ParameterArena& arena() const { return parameters_->arena(0); }

 private:
  struct MicroBatch;
  // The backward under way.
  struct Backward {
    nn::BackwardPass pass;
    int micro_batch;
    Mode mode;
  };

  explicit Chunk(const Setup& setup);
  absl::Status Init(Listener* listener);

  absl::Status RunForward(int micro_batch);
  absl::StatusOr<bool> RunPiece();
  // Returns `status`; an error gets step and micro-batch in front.
  absl::Status InStep(int micro_batch, const absl::Status& status) const;

  // Returns the inputs of the module. Skip connections go into ctx.stashed().
  absl::StatusOr<nn::TensorList> Inputs(nn::Context& ctx, int micro_batch);
  nn::TensorList RunModule(nn::Context& ctx, const nn::TensorList& inputs);
  // Adds the tensors that were stashed for later chunks to `outputs`.
  //   kInvalidArgument: the outputs are not those of the plan.
  absl::Status AddSkips(nn::Context& ctx, nn::TensorList& outputs) const;
  // Returns the number of tensors that go to the next chunk.
  int sent_tensors() const;
  nn::Tensor Loss(nn::Context& ctx, int micro_batch, nn::Tensor output);

  const Setup setup_;
  const bool first_, last_;
  nn::Kernels& kernels_;
  ModelBatches batches_;

  std::unique_ptr<nn::Module> module_;
  std::unique_ptr<ChunkParameters> parameters_;
  std::optional<GradientLedger> ledger_;

  StepKind kind_ = StepKind::kTrain;
  std::int64_t step_ = -1;
  nn::KvCache cache_;  // for generation
  nn::Tensor draws_;   // undefined if the step is not recorded
  std::vector<MicroBatch> micro_batches_;
  std::optional<Backward> backward_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_CHUNK_H_
