// The step engine of a hand-written loop whose model is cut into stages over
// the ranks (pipeline parallelism), as LoopEngine (loop_engine.h) is that of a
// whole model. It walks the tables of a job's plan with a job's chunks, so that
// its bits are the job's; updates wait until the program asks for them.
//
//   PipelineEngine::Setup setup;
//   setup.spec = &spec;                        // model, loss, seed
//   setup.plan = &plan;                        // pipeline::MakePlan()
//   setup.kernels = kernels;
//   setup.groups = &groups;                    // those of GroupsOf(plan)
//   TROUPE_ASSIGN_OR_RETURN(auto engine,
//                           PipelineEngine::Create(setup, &host, &wait));
//   TROUPE_RETURN_IF_ERROR(engine->AttachOptimizer(
//       [] { return std::make_unique<nn::Sgd>(nn::SgdOptions{0.1}); }));
//   for (StepBatches& batches : steps) {
//     TROUPE_ASSIGN_OR_RETURN(LossBits loss, engine->Run(batches));
//     TROUPE_RETURN_IF_ERROR(engine->Step());
//   }
//
// Run() runs the forwards and backwards of all micro-batches, and returns with
// the loss while gradients are still being reduced. Gradients are those of the
// sum over all targets of the global batch, as a job's: Step() divides by their
// number. They do not add up over several calls; more micro-batches do. Every
// parameter is updated, with zeros if the loss does not depend on it.
//
// The plan is one whose updates need all buckets
// (ReductionOptions::update_needs_all_buckets) and are not fused: its tables
// then have all actions that some optimizer needs, and the engine leaves out
// the others.
//
// It blocks in StrandWait, as a job's engine does. Meanwhile its owner calls
// CollectiveDone() for each Launch(), and Deliver() with what other stages have
// sent. In an evaluation stages send no gradients, nor credits.
//
// Errors: those of kernels and collectives end the engine; they name step,
// micro-batch and module. A call in the wrong order gives kFailedPrecondition
// and changes nothing.
// Threads: one at a time.

#ifndef ACTORS_ENGINE_LOOP_PIPELINE_ENGINE_H_
#define ACTORS_ENGINE_LOOP_PIPELINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/chunk.h"
#include "actors/chunks/chunk_parameters.h"
#include "actors/chunks/step/step_trace.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/fiber/strand_wait.h"
#include "actors/engine/loop/loop_dispatcher.h"
#include "actors/engine/owned_parts.h"
#include "actors/engine/rank_groups.h"
#include "actors/spec/job_spec.h"
#include "base/event.h"
#include "data/batch.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"
#include "pipeline/plan.h"

namespace troupe::actors {

class PipelineEngine : private Chunk::Listener {
 public:
  // All pointers outlive the engine; it copies the plan.
  struct Setup {
    int rank = 0;
    // Model, loss and seed. The loss may change between steps; the optimizer
    // is null.
    const JobSpec* spec = nullptr;
    const pipeline::Plan* plan = nullptr;
    std::shared_ptr<nn::Kernels> kernels;
    const RankGroups* groups = nullptr;
    TraceSink* trace = nullptr;  // null: nothing is traced
  };

  static absl::StatusOr<std::unique_ptr<PipelineEngine>> Create(
      const Setup& setup, EngineHost* host, StrandWait* wait);
  PipelineEngine(const PipelineEngine&) = delete;
  PipelineEngine& operator=(const PipelineEngine&) = delete;

  // Makes the optimizers of all chunks.
  //   kFailedPrecondition: they have some, or gradients wait for a step.
  absl::Status AttachOptimizer(const ChunkParameters::MakeOptimizerFn& make);

  // Runs the forwards and backwards of a step. `batches`: one per micro-batch;
  // only the first stage reads their inputs and only the last their targets.
  // Returns the loss over all ranks.
  //   kFailedPrecondition: gradients of the last call wait for a step.
  absl::StatusOr<LossBits> Run(StepBatches batches);
  // Updates the parameters.
  //   kFailedPrecondition: there is no optimizer, or no Run() to use.
  absl::Status Step();
  // Discards the gradients. Waits for their reductions.
  absl::Status ZeroGrad();
  // Runs a forward alone, of one micro-batch, without gradients. `kind`:
  // kEvaluate or kPredict. Returns the loss of an evaluation on the rank of the
  // last stage, and zeros elsewhere.
  //   kFailedPrecondition: gradients wait for a step.
  absl::StatusOr<LossBits> Evaluate(StepKind kind, data::Batch batch);
  // Returns the output of a prediction, in host memory, on the rank of the last
  // stage. Call it after Evaluate().
  nn::Tensor TakeOutput() { return parts_->outputs.Take(); }
  bool has_outputs() const { return parts_->chunks.back()->is_last(); }
  // Gives all replicas the first one's buffers (share_state.h).
  absl::Status ShareBuffers();

  // Delivers tensors of another stage (StepRunner::Deliver).
  absl::Status Deliver(const Transfer& transfer) {
    return parts_.inbox().Deliver(transfer, dispatcher());
  }
  // Ends the collective of an action (StepRunner::CollectiveDone).
  absl::Status CollectiveDone(std::int64_t step, int action,
                              const base::Event& done = {}) {
    return dispatcher().CollectiveDone(step, action, done);
  }
  // Returns the error of a collective that failed with `why`.
  absl::Status CollectiveFailed(std::int64_t step, int action,
                                const absl::Status& why) const {
    return dispatcher().CollectiveFailed(step, action, why);
  }

  // Number of the next step, and of its random draws: the number of calls of
  // Step(), unless it is set.
  std::int64_t step() const { return step_; }
  void set_step(std::int64_t step) { step_ = step; }
  // Returns the kind of the step under way, or of the last one.
  StepKind kind() const { return dispatcher().present().kind; }
  // Returns the error of a call for which no gradients may wait for a step.
  //   kFailedPrecondition: some do.
  absl::Status CheckNoGradients(const char* call) const;
  const pipeline::Plan& plan() const { return plan_; }
  int chunk_count() const { return static_cast<int>(parts_->chunks.size()); }
  Chunk& chunk(int i) { return *parts_->chunks[i]; }
  nn::Kernels& kernels() { return parts_->kernels(); }
  bool reduces_on_device() const { return parts_->device.reduces_on_device(); }
  // Returns the actions that have not ended, for errors of a stalled step.
  std::string Unfinished() const { return dispatcher().Unfinished(); }

 private:
  PipelineEngine(const Setup& setup, StrandWait* wait);
  absl::Status Init(EngineHost* host);
  // Makes the dispatcher, for the optimizer that there is.
  absl::Status MakeDispatcher();
  pipeline::StepTable TrainTable() const;
  pipeline::StepTable EvaluateTable() const;
  const nn::Optimizer* optimizer() const {
    return parts_->parameters[0]->optimizer();
  }
  Dispatcher& dispatcher() { return dispatcher_->get(); }
  const Dispatcher& dispatcher() const { return dispatcher_->get(); }

  // Chunk::Listener:
  void BucketReady(int chunk, int bucket, int micro_batch) override {
    dispatcher().listener()->BucketReady(chunk, bucket, micro_batch);
  }
  void BucketReleased(int chunk, int bucket) override {
    dispatcher().listener()->BucketReleased(chunk, bucket);
  }

  // Returns whether all of the step has ended but what follows its gradients.
  bool GradientsMade();
  absl::StatusOr<LossBits> ReadLoss();
  // Waits until all copies to the host are complete.
  absl::Status AwaitReadBack();

  const Setup setup_;
  pipeline::Plan plan_;
  EngineSetup engine_setup_;
  OwnedParts parts_;
  std::unique_ptr<LoopDispatcher> dispatcher_;
  std::int64_t step_ = 0;
  bool has_gradients_ = false;
  // Actions of the table before this one have ended, or follow the gradients.
  std::size_t made_ = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_PIPELINE_ENGINE_H_
