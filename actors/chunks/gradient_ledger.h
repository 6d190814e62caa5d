// Counts, during the backwards of a step, the gradients and readers that each
// bucket still waits for, and reports when a bucket is complete, as PyTorch's
// DDP Reducer does. It is the GradientSink of the backwards: a chunk of a job
// has one (chunk.h), and so has a hand-written training loop
// (actors/engine/loop/loop_engine.h).
//
//   GradientLedger ledger({/*chunk=*/0, &parameters, &trace}, &listener);
//   ledger.BeginStep();
//   ledger.BeginPass(tape, GradientLedger::Mode::kWhole, /*last=*/true);
//   nn::BackwardPass pass(tape, kernels, ledger, GradientLedger::Mode::kWhole);
//   pass.Seed(loss);
//   while (*pass.Next()) {
//     TROUPE_RETURN_IF_ERROR(ledger.status());
//   }
//
// A step has one or more backwards, which add to the same gradients. Only the
// last one reports: until then no bucket is complete, unless the gradients of
// each micro-batch are reduced (ChunkParameters::reduced_micro_batches). A
// parameter that it does not use is complete at once; if no backward of the
// step has written its gradient, that is zeros. Setup::uses records which those
// are.
//
// When a bucket becomes ready, in this order: gradients per use are added
// (ChunkParameters::AddUses), unwritten gradients are zeroed, those of which
// ranks along tp have parts are added up, the first round of the reduction
// begins, the trace and the listener are called. Ranks along tp add up in the
// middle of a backward, as layers do: in one order, since they run the same
// backwards.
//
// Errors: status() has the first error of a listener or kernel that kept a
// bucket from becoming ready. It may be set by BeginPass(), too.
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_GRADIENT_LEDGER_H_
#define ACTORS_CHUNKS_GRADIENT_LEDGER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "actors/chunks/chunk_parameters.h"
#include "actors/chunks/step/step_trace.h"
#include "actors/chunks/use_marks.h"
#include "nn/autograd/context.h"
#include "nn/autograd/parameter.h"
#include "nn/autograd/tape.h"
#include "nn/collectives.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class GradientLedger final : public nn::GradientSink, public nn::ParameterGate {
 public:
  using Mode = nn::BackwardPass::Mode;

  // Callbacks about the buckets of chunk `chunk`. BucketReady() and
  // BucketReleased() are called in the last backward of a step, at most once a
  // step for each bucket; BucketReady() in each backward for a bucket that each
  // micro-batch reduces.
  class Listener {
   public:
    virtual ~Listener() = default;
    // This step, or micro-batch, adds nothing more to the bucket's gradients.
    // `micro_batch`: its number, if the gradients of each are reduced;
    // otherwise 0.
    virtual void BucketReady(int chunk, int bucket, int micro_batch) = 0;
    // Nothing in this step reads the bucket's parameters any more.
    virtual void BucketReleased(int chunk, int bucket) = 0;
    // Called in a training step, if Setup::gated, before the bucket's
    // parameters are read or its gradients written. Returns once the previous
    // step has updated the bucket, or once the device will wait for that.
    virtual absl::Status AwaitUpdate(int /*chunk*/, int /*bucket*/) {
      return absl::OkStatus();
    }
    // Called before a bucket gets memory for gradients that are kept as slices
    // alone. Returns once few enough reductions hold such memory.
    virtual absl::Status AwaitMemory() { return absl::OkStatus(); }
    // Called before the present forward or backward reads the parameter, if
    // values are gathered before their uses. Returns once its value is there.
    virtual absl::Status AwaitGather(int /*chunk*/, const nn::Parameter&) {
      return absl::OkStatus();
    }
  };

  struct Setup {
    int chunk = 0;  // number of the parameters among those of the rank
    ChunkParameters* parameters = nullptr;
    StepTrace* trace = nullptr;
    // Whether Listener::AwaitUpdate() is called.
    bool gated = false;
    // Receives marks of the parameters that have gradients; null: none.
    UseMarks* uses = nullptr;
    // Collectives by axis. Those along tp add up gradients of which ranks have
    // parts (pipeline::StagePlan::partial_grads).
    absl::Span<const nn::AxisCollectives> axes = {};
  };

  // All pointers outlive the ledger.
  GradientLedger(const Setup& setup, Listener* listener);

  // Starts a step: no bucket is ready or released.
  void BeginStep();
  // Lets the backwards of this step update parameters row by row, with these
  // scalars (Chunk::UpdateInBackward).
  void UpdateInBackward(const nn::Tensor& scalars) {
    updates_ = setup_.parameters->UpdatesByRows();
    scalars_ = scalars;
  }
  // Starts a backward over `tape`, or a half of one. `last`: whether it is the
  // last backward of the step. Both halves of a split backward are then the
  // last, and weight gradients of earlier ones may run between them.
  // `micro_batch`: its number in the step.
  void BeginPass(const nn::Tape& tape, Mode mode, bool last,
                 int micro_batch = 0) {
    BeginPass(tape.parameters(), mode, last, micro_batch);
  }
  // The same, over a tape that has parameters of other ledgers, too: `read` are
  // this one's.
  void BeginPass(const std::vector<nn::Parameter*>& read, Mode mode, bool last,
                 int micro_batch = 0);
  // Returns whether the forwards of a step have to ask it.
  bool IsGate(bool trains) const {
    return (trains && setup_.gated) || setup_.parameters->gathers_values();
  }
  // Returns the first error that kept a bucket from becoming ready.
  const absl::Status& status() const { return status_; }

  // nn::GradientSink:
  absl::Status GradientNeeded(nn::Parameter& parameter) override;
  bool TakesRows(const nn::Parameter& parameter) override {
    return updates_ && !parameter.sharding.partial_grad;
  }
  absl::Status TakeRows(nn::Parameter& parameter, std::int64_t begin,
                        const nn::Tensor& rows) override {
    return setup_.parameters->updates().UpdateRows(parameter, begin, rows,
                                                   scalars_);
  }
  absl::Status ValueNeeded(nn::Parameter& parameter) override {
    return AwaitGather(parameter);
  }
  void GradientComplete(nn::Parameter& parameter) override;
  void LastReaderDone(nn::Parameter& parameter) override;
  // nn::ParameterGate:
  absl::Status AwaitValue(const nn::Parameter& parameter) override;

 private:
  // Gradients of one reduction of a bucket.
  struct Pass {
    int grads_left = 0;
    bool ready = false;
  };
  struct Bucket {
    std::vector<Pass> passes;  // by micro-batch, if each is reduced; else one
    int readers_left = 0;
    bool released = false;
  };

  // Returns the reduction to which the present pass adds the last gradients;
  // null: later passes add more.
  Pass* PassOf(Bucket& bucket) const;

  absl::Status AwaitGather(const nn::Parameter& parameter);
  void CountGradients(const std::vector<nn::Parameter*>& read);
  void TellWhatIsDone();
  void TellIfDone(int bucket);
  // Adds up the bucket's gradients over the ranks along tp.
  absl::Status AddParts(int bucket);
  // Completes the gradients of a bucket to which no backward adds more, and
  // begins their reduction.
  absl::Status CompleteBucket(int bucket);

  const Setup setup_;
  Listener* const listener_;
  bool counting_ = false;       // whether the present pass completes gradients
  bool last_ = false;           // whether it is the step's last one
  int micro_batch_ = 0;         // its number
  bool weights_begun_ = false;  // whether its weight gradients have begun
  bool updates_ = false;        // whether backward updates parameters by rows
  nn::Tensor scalars_;          // read by these updates
  absl::Status status_;
  std::vector<Bucket> buckets_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_GRADIENT_LEDGER_H_
