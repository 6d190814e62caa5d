// The step engine of a hand-written training loop, as StepRunner
// (step_runner.h) is that of a job: the program calls forward, Backward() and
// Step() itself, and the engine reduces gradients over the ranks while the
// backward runs, as PyTorch's DistributedDataParallel does, and updates the
// parameters. Buckets, collectives, actions and traces are those of jobs.
//
//   LoopEngine::Setup setup;
//   setup.plan = &plan;                        // pipeline::MakeParameterPlan()
//   setup.module = model.get();
//   setup.kernels = kernels;
//   setup.groups = &groups;                    // none: a model without peers
//   TROUPE_ASSIGN_OR_RETURN(auto engine,
//                           LoopEngine::Create(setup, &host, &wait));
//   TROUPE_RETURN_IF_ERROR(engine->AttachOptimizer(
//       [] { return std::make_unique<nn::Sgd>(nn::SgdOptions{0.1}); }));
//   for (const nn::Tensor& x : batches) {
//     TROUPE_RETURN_IF_ERROR(engine->ZeroGrad());
//     const nn::Tensor loss = Loss(ctx, (*model)(ctx, x));   // on `tape`
//     TROUPE_RETURN_IF_ERROR(engine->Backward({&tape, loss, 1 / count}));
//     TROUPE_RETURN_IF_ERROR(engine->Step());
//   }
//
// Gradients. A loss's gradients are multiplied by LoopBackward::scale, and
// averaged over the ranks: with 1 / count they are those of the mean. With
// Setup::exact_mean they are added up, as are the counts of the losses, and
// updates divide by the sum, so that ranks may have different counts; the scale
// is then 1. For counts and numbers of ranks that are powers of two, both give
// the bits of a job.
//
// Several backwards before one Step() add to the same gradients. All but the
// last one should have synced false, as under PyTorch's no_sync(): they reduce
// nothing, and the last one reduces all. A backward begins by waiting for the
// reductions of the one before. ZeroGrad() makes the next gradients overwrite.
//
// A parameter that no backward since ZeroGrad() has used, on any rank, is left
// alone by Step(): neither weight decay nor momentum moves it, and Adam does
// not count the step for it (PyTorch: .grad is None). If one rank has used it,
// all update it, with the average in which the other ranks count as zeros. So
// that all ranks know (use_marks.h), one small all-reduce follows the last
// bucket's. A rank whose own backwards have left out parameters waits for it
// before the first update; on a device with queues, so does its host. With
// Setup::static_graph only the first step has that all-reduce.
//
// Buckets are reduced in the order of their numbers at first, and later in that
// in which backwards complete them (agreed_order.h). This changes no bit. With
// a hook, buckets are reduced by number.
//
// The engine blocks in StrandWait, as a job's does. Meanwhile its owner calls
// CollectiveDone() for each Launch(). After a Step() the compute queue waits
// for all updates.
//
// Errors: those of kernels and collectives end the engine. A call in the wrong
// order gives kFailedPrecondition and changes nothing.
// Threads: one at a time.

#ifndef ACTORS_ENGINE_LOOP_LOOP_ENGINE_H_
#define ACTORS_ENGINE_LOOP_LOOP_ENGINE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/chunk_parameters.h"
#include "actors/chunks/gradient_ledger.h"
#include "actors/chunks/step/step_trace.h"
#include "actors/chunks/use_marks.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/fiber/strand_wait.h"
#include "actors/engine/loop/agreed_order.h"
#include "actors/engine/loop/agreed_uses.h"
#include "actors/engine/loop/bucket_hook.h"
#include "actors/engine/loop/loop_dispatcher.h"
#include "actors/engine/loop/loop_state.h"
#include "actors/engine/owned_parts.h"
#include "actors/engine/rank_groups.h"
#include "actors/engine/step_position.h"
#include "base/event.h"
#include "nn/autograd/tape.h"
#include "nn/modules/module.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// One backward of a loop.
struct LoopBackward {
  nn::Tape* tape = nullptr;  // Backward() resets it, also after an error
  // Where gradients begin: the statistics of a loss (nn/ops/loss.h), or, with
  // `seed`, any tensor of the tape.
  nn::Tensor loss;
  double scale = 1;  // factor of a loss's gradients
  // Gradient of `loss`, of its shape; undefined: `loss` is a loss's statistics.
  nn::Tensor seed = {};
  // Whether gradients are reduced: no later backward before Step() adds more.
  bool synced = true;
  // Whether the parameters that it uses count as used. Not in the backward of a
  // rank without data of its own, which only keeps its peers company.
  bool uses = true;
  // Rank along dp whose backwards decide the order of reductions, the same one
  // on all ranks: one with data of its own.
  int leader = 0;
};

class LoopEngine : private GradientLedger::Listener {
 public:
  // All pointers outlive the engine, except `plan`, which it copies.
  struct Setup {
    int rank = 0;
    const pipeline::Plan* plan = nullptr;  // made by MakeParameterPlan()
    // Groups of the plan's ranks (pipeline::GroupsOf); null: the rank has no
    // peers.
    const RankGroups* groups = nullptr;
    std::shared_ptr<nn::Kernels> kernels;
    // Create() gives its parameters and buffers memory and initial values.
    nn::Module* module = nullptr;
    std::uint64_t seed = 0;
    bool exact_mean = false;
    bool sums = false;  // whether gradients are added up, and not averaged
    // Whether the backwards of each step use the same parameters as those of
    // the first one, on each rank. Step() checks that locally, and no marks of
    // used parameters are exchanged after the first step.
    bool static_graph = false;
    // Number of the plan's last buckets that are reduced after all others, in
    // any order of reductions (pipeline::DelayedBuckets()).
    int delayed_buckets = 0;
    TraceSink* trace = nullptr;        // null: no trace
    StepPosition* position = nullptr;  // read by other threads; may be null
    int start_threads = 1;  // number of those that fill the parameters
    // Allocator of gradients in host memory; null: that of all tensors.
    nn::Allocator* grad_allocator = nullptr;
  };

  static absl::StatusOr<std::unique_ptr<LoopEngine>> Create(const Setup& setup,
                                                            EngineHost* host,
                                                            StrandWait* wait);
  LoopEngine(const LoopEngine&) = delete;
  LoopEngine& operator=(const LoopEngine&) = delete;

  // Makes the optimizer, one for each dtype of parameters.
  //   kFailedPrecondition: there is one already; or a backward has run since
  //   the last ZeroGrad() or Step().
  absl::Status AttachOptimizer(const ChunkParameters::MakeOptimizerFn& make);

  // Lets `hook`, which outlives the engine, reduce the buckets from now on in
  // place of all-reduces; nothing then averages gradients or rounds them.
  //   kInvalidArgument: the plan has a reduction_dtype.
  //   kFailedPrecondition: a backward has run since the last ZeroGrad() or
  //   Step().
  absl::Status SetHook(BucketHook* hook);

  // Makes every backward update each bucket as soon as it is reduced, from now
  // on; Step() then ends the step. A step has one backward, which is synced. If
  // it leaves out parameters, Step() updates. A rank without peers updates row
  // by row (Chunk::UpdateInBackward), and the gradients of such parameters are
  // not written.
  //   kFailedPrecondition: there is no optimizer, or a backward has run since
  //   the last ZeroGrad() or Step().
  //   kInvalidArgument: the optimizer's updates need all gradients.
  absl::Status StepInBackward();

  // Runs the backward to its end. If it is synced, starts the reduction of each
  // bucket as soon as its gradients are complete, and returns while reductions
  // may be in flight.
  //   kInvalidArgument: the loss was computed from a parameter of another
  //   model, for which there is JointBackward (joint_backward.h); or has no
  //   statistics, which exact_mean needs.
  //   kFailedPrecondition: with exact_mean, a second synced backward.
  absl::Status Backward(const LoopBackward& backward);
  // Waits until the gradients of the last synced backward are reduced, so that
  // the program, or later work of the compute queue, may read them.
  absl::Status AwaitGradients();
  // Starts the reductions under way that may start now, after news. For a loop
  // that waits elsewhere.
  absl::Status GoOn();
  // Updates the parameters, each bucket as soon as it is reduced.
  //   kFailedPrecondition: there is no optimizer; or no backward to use, or the
  //   last one was not synced; or, with static_graph, the step has used other
  //   parameters than the first one: names them.
  absl::Status Step();
  // Discards all gradients: the next backward overwrites them. Touches no
  // memory; waits for reductions in flight.
  //   kFailedPrecondition: a backward has updated parameters with them already
  //   (StepInBackward()).
  absl::Status ZeroGrad();

  // Ends the collective of an action (StepRunner::CollectiveDone).
  absl::Status CollectiveDone(std::int64_t step, int action,
                              const base::Event& done = {});
  // Returns the error of a collective that failed with `why`.
  absl::Status CollectiveFailed(std::int64_t step, int action,
                                const absl::Status& why) const;

  // Returns the number of calls of Step() so far.
  std::int64_t step() const { return state_.step(); }
  bool exact_mean() const { return setup_.exact_mean; }
  // Returns the buckets in the order in which backwards reduce them.
  std::vector<int> launch_order() const { return order_->order(); }
  const pipeline::Plan& plan() const { return plan_; }
  ChunkParameters& parameters() { return *parts_->parameters[0]; }
  const ChunkParameters& parameters() const { return *parts_->parameters[0]; }
  // Marks of the parameters that have gradients, for a program that averages
  // gradients itself: it adds up the marks, too.
  UseMarks& uses() { return uses_->marks(); }
  nn::Kernels& kernels() { return parts_->kernels(); }
  bool reduces_on_device() const { return parts_->device.reduces_on_device(); }
  // Returns the actions that have not ended, for errors of a stalled loop.
  std::string Unfinished() const;

 private:
  friend class JointBackward;  // joint_backward.h

  LoopEngine(const Setup& setup, StrandWait* wait);
  absl::Status Init(EngineHost* host);
  absl::Status MakeParameters();
  // Makes the dispatcher, for the optimizer and the hook that there are.
  absl::Status MakeDispatcher();
  Dispatcher& dispatcher() { return dispatcher_->get(); }
  const Dispatcher& dispatcher() const { return dispatcher_->get(); }
  // Whether a backward has run since the last ZeroGrad() or Step().
  bool under_way() const { return dispatcher().present().under_way; }

  // GradientLedger::Listener:
  void BucketReady(int chunk, int bucket, int micro_batch) override;
  void BucketReleased(int chunk, int bucket) override;

  absl::Status CheckBackward(const LoopBackward& backward, bool synced) const {
    return state_.CheckBackward(!backward.seed.defined(), synced);
  }
  // Begins the pass of a backward that may be begun and may use other models'
  // parameters, too; and the action in the trace, in `scopes`.
  absl::Status BeginBackward(const LoopBackward& backward,
                             std::deque<TraceScope>& scopes);
  // Notes that the pass has ended.
  void EndPass();
  // Reduces in the order that the ranks have agreed on, from now on.
  absl::Status AgreeOnOrder(int leader);
  absl::Status StartReductions();
  // Waits for the sum of the marks of used parameters, and for the broadcast of
  // an order.
  absl::Status AwaitAgreements();

  const Setup setup_;
  pipeline::Plan plan_;
  const RankGroups no_groups_;
  EngineSetup engine_setup_;
  OwnedParts parts_;
  LoopState state_;
  std::unique_ptr<LoopDispatcher> dispatcher_;
  std::unique_ptr<AgreedUses> uses_;
  std::optional<GradientLedger> ledger_;
  std::unique_ptr<AgreedOrder> order_;
  pipeline::Action action_;  // the last backward, for the trace
  // Whether the step's backward updates, and so all trained parameters.
  bool updating_ = false;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_LOOP_ENGINE_H_
