#include "actors/engine/loop/loop_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/engine/actions/actions.h"
#include "actors/engine/loop/hook_action.h"
#include "actors/engine/loop/joint_backward.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/step_scalars.h"
#include "nn/ops/loss.h"
#include "pipeline/parameter_plan.h"

namespace troupe::actors {

using pipeline::ActionKind;
using pipeline::SignalKind;

namespace {

// Number of the sum of marks among the collectives: it is no action of a table.
constexpr int kUsesAction = -1;

constexpr char kUsesPart[] = "marks of used parameters";

}  // namespace

absl::StatusOr<std::unique_ptr<LoopEngine>> LoopEngine::Create(
    const Setup& setup, EngineHost* host, StrandWait* wait) {
  std::unique_ptr<LoopEngine> engine(new LoopEngine(setup, wait));
  TROUPE_RETURN_IF_ERROR(engine->Init(host));
  return engine;
}

LoopEngine::LoopEngine(const Setup& setup, StrandWait* wait)
    : setup_(setup),
      plan_(*setup.plan),
      wait_(wait),
      trace_(setup.trace, setup.rank) {}

LoopEngine::~LoopEngine() {
  if (device_ != nullptr) device_->UseRanges({});
}

absl::Status LoopEngine::Init(EngineHost* host) {
  engine_setup_.rank = setup_.rank;
  engine_setup_.plan = &plan_;
  engine_setup_.groups = setup_.groups == nullptr ? &no_groups_ : setup_.groups;
  RankDevice::Options device;
  device.groups = engine_setup_.groups;
  device.wait = &wait_;
  device_ = RankDevice::Over(device, setup_.kernels);
  trace_.WatchMemory(&kernels().allocator());
  events_.emplace(kernels(), device_->update_queue());
  reducer_.emplace(
      Reducer::Options{engine_setup_.groups,
                       plan_.RankPlanOf(setup_.rank).reduce_inline},
      host, &wait_);
  TROUPE_RETURN_IF_ERROR(MakeParameters());
  StepPosition& position =
      setup_.position == nullptr ? own_position_ : *setup_.position;
  parts_.emplace(EngineParts{engine_setup_, *host, wait_, position, *device_,
                             chunks_, parameters_by_chunk_, *events_, *reducer_,
                             outputs_});
  inbox_.emplace(*parts_);
  TROUPE_ASSIGN_OR_RETURN(uses_, UseMarks::Create(*parameters_, kernels()));
  ledger_.emplace(GradientLedger::Setup{/*chunk=*/0, parameters_.get(), &trace_,
                                        /*gated=*/false, uses_.get()},
                  static_cast<GradientLedger::Listener*>(this));
  return MakeDispatcher();
}

absl::Status LoopEngine::MakeParameters() {
  ChunkParameters::Setup setup;
  setup.plan = &plan_;
  setup.replica = plan_.mesh.CoordOf(setup_.rank, pipeline::kDpAxis);
  setup.kernels = setup_.kernels;
  setup.seed = setup_.seed;
  setup.averages = !setup_.exact_mean;
  setup.keeps_grads = true;
  setup.start_threads = setup_.start_threads;
  setup.grad_allocator = setup_.grad_allocator;
  setup.update_queue = events_->update_queue();
  TROUPE_ASSIGN_OR_RETURN(parameters_,
                          ChunkParameters::Create(setup, *setup_.module));
  parameters_by_chunk_ = {parameters_.get()};
  events_->AddChunk(parameters_->num_buckets());
  std::vector<nn::Tensor> reduced;
  parameters_->AddReduced(reduced);
  device_->UseRanges(reduced);
  return absl::OkStatus();
}

absl::Status LoopEngine::MakeDispatcher() {
  const nn::Optimizer* const optimizer = parameters_->optimizer();
  const nn::Queue queue = events_->update_queue();
  if (optimizer != nullptr && optimizer->MaySkipSteps()) {
    TROUPE_ASSIGN_OR_RETURN(
        scaler_,
        LossScaler::Create(kernels(),
                           {/*initial=*/1, nn::LossScaleRule::Fixed(), queue}));
  }
  // An average is divided already.
  const nn::ops::LossReduction reduction = setup_.exact_mean
                                               ? nn::ops::LossReduction::kMean
                                               : nn::ops::LossReduction::kSum;
  TROUPE_ASSIGN_OR_RETURN(
      StepLosses losses,
      StepLosses::Create(kernels(),
                         {/*stop_on_nan=*/false, /*loss_scale=*/1, queue,
                          scaler_.get(), reduction},
                         /*overlap=*/false));
  pipeline::LoopTableOptions table;
  table.updates = optimizer != nullptr;
  table.reduce_loss = setup_.exact_mean;
  table.update_needs_all_buckets =
      optimizer != nullptr && optimizer->NeedsAllBuckets();
  plan_.update_needs_all_buckets = table.update_needs_all_buckets;
  const int buckets = parameters_->num_buckets();
  StepActions actions = MakeActions(*parts_);
  if (hook_ != nullptr) {
    actions[static_cast<int>(ActionKind::kReduceBucket)] =
        std::make_unique<HookAction>(*parts_, hook_);
  }
  dispatcher_.reset();  // it refers to the losses
  losses_.emplace(std::move(losses));
  dispatcher_.emplace(
      Dispatcher::Options{pipeline::LoopTable(buckets, table), {}, {buckets}},
      *parts_, std::move(actions), *inbox_, *losses_, trace_);
  return absl::OkStatus();
}

absl::Status LoopEngine::AttachOptimizer(
    const ChunkParameters::MakeOptimizerFn& make) {
  if (dispatcher_->present().under_way) {
    return absl::FailedPreconditionError(
        "an optimizer is attached before the first backward of a step: make it "
        "before, or discard the gradients with ZeroGrad()");
  }
  TROUPE_RETURN_IF_ERROR(parameters_->AttachOptimizer(make));
  return MakeDispatcher();
}

absl::Status LoopEngine::SetHook(BucketHook* hook) {
  if (plan_.reduction_dtype.has_value()) {
    return absl::InvalidArgumentError(
        "a communication hook takes the place of reductions in another dtype; "
        "leave out reduction_dtype, or the hook");
  }
  if (dispatcher_->present().under_way) {
    return absl::FailedPreconditionError(
        "a communication hook is registered before the first backward of a "
        "step: register it before, or discard the gradients with ZeroGrad()");
  }
  hook_ = hook;
  plan_.fuse_updates = false;
  return MakeDispatcher();
}

absl::Status LoopEngine::StepInBackward() {
  const nn::Optimizer* const optimizer = parameters_->optimizer();
  if (optimizer == nullptr) {
    return absl::FailedPreconditionError(
        "StepInBackward() without an optimizer; make one for this model first");
  }
  if (optimizer->NeedsAllBuckets()) {
    return absl::InvalidArgumentError(
        "StepInBackward() updates a bucket before the next one is reduced, and "
        "this optimizer needs the norm of all gradients first; leave out "
        "clipping, the skipping of steps and layerwise rates, or call Step() "
        "after the backward alone");
  }
  if (dispatcher_->present().under_way) {
    return absl::FailedPreconditionError(
        "StepInBackward() comes before the first backward of a step; call it "
        "before, or discard the gradients with ZeroGrad()");
  }
  steps_in_backward_ = true;
  // Neither a sum over ranks nor a count of the loss comes between a gradient
  // and its update.
  plan_.fuse_updates =
      plan_.mesh.size() == 1 && hook_ == nullptr && !setup_.exact_mean;
  return absl::OkStatus();
}

absl::Status LoopEngine::CheckStepInBackward(bool synced) const {
  if (!steps_in_backward_) return absl::OkStatus();
  if (!synced) {
    return absl::FailedPreconditionError(
        "a backward under NoSync() in a loop with StepInBackward(): gradients "
        "are used up as soon as they are reduced, and cannot add up; leave out "
        "one of them");
  }
  if (!reducing_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a second backward in a step with StepInBackward(): the first one has "
      "updated the parameters already; call Step() between them");
}

absl::Status LoopEngine::CheckOutsideHook() const {
  if (hook_ == nullptr || !hook_->running()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a communication hook may not run backwards, steps or ZeroGrad() of its "
      "model, nor wait for its gradients; it reduces the bucket it is given");
}

void LoopEngine::BucketReady(int chunk, int bucket) {
  dispatcher_->listener()->BucketReady(chunk, bucket);
}

void LoopEngine::BucketReleased(int chunk, int bucket) {
  dispatcher_->listener()->BucketReleased(chunk, bucket);
}

absl::Status LoopEngine::CheckBackward(const LoopBackward& backward,
                                       bool synced) const {
  TROUPE_RETURN_IF_ERROR(CheckStepInBackward(synced));
  if (!setup_.exact_mean) return absl::OkStatus();
  if (backward.seed.defined()) {
    return absl::InvalidArgumentError(
        "exact_mean divides by the counts of losses, and this backward begins "
        "at a tensor that has none; use a loss of nn/ops/loss.h");
  }
  if (!reducing_ || !synced) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "exact_mean adds up over the ranks once a step, and a backward of this "
      "step has done so; run all backwards but the last one under NoSync()");
}

absl::Status LoopEngine::Backward(const LoopBackward& backward) {
  const BackwardModel self{this, backward.synced};
  const absl::Status status =
      JointBackward(absl::MakeConstSpan(&self, 1)).Run(backward);
  backward.tape->Reset();
  return status;
}

absl::Status LoopEngine::BeginBackward(const LoopBackward& backward,
                                       std::deque<TraceScope>& scopes) {
  StepInFlight& step = dispatcher_->present();
  if (!step.under_way) {
    backwards_ = 0;
    TROUPE_RETURN_IF_ERROR(
        dispatcher_->Begin(StepKind::kTrain, step_, /*batches=*/{}));
  }
  action_ = {ActionKind::kBackward, backwards_++, {}};
  scopes.emplace_back(trace_, action_);
  if (setup_.exact_mean) {
    TROUPE_RETURN_IF_ERROR(step.loss->Add(action_.index, backward.loss));
  }
  synced_ = backward.synced;
  if (synced_) {
    // Gradients that are averaged already are equal on all ranks: averaging
    // them once more keeps them, and adds the average of this backward's.
    if (reducing_) step.cursor.Begin();
    reducing_ = true;
  }
  if (!backward.uses) uses_->Close();
  std::vector<nn::Parameter*> read = backward.tape->parameters();
  read.erase(std::remove_if(read.begin(), read.end(),
                            [this](const nn::Parameter* parameter) {
                              return !parameters_->Has(*parameter);
                            }),
             read.end());
  // A rank whose loss leaves out parameters must hear what its peers use before
  // it updates: in Step().
  updating_ = steps_in_backward_ && backward.uses && uses_->AreAll(read);
  if (updating_) {
    parameters_->LeaveOut({});
    step.cursor.Give({SignalKind::kStepAsked});
  }
  ledger_->BeginStep();
  if (updating_ && plan_.fuse_updates) {
    TROUPE_RETURN_IF_ERROR(step.loss->PassToUpdates());
    ledger_->UpdateInBackward(step.loss->scalars());
  }
  ledger_->BeginPass(read, GradientLedger::Mode::kWhole, /*last=*/synced_);
  return absl::OkStatus();
}

void LoopEngine::EndPass() {
  uses_due_ = synced_ && plan_.mesh.dp() > 1 && !static_unused_.has_value();
}

absl::Status LoopEngine::GoOn() {
  return reducing_ ? StartReductions() : absl::OkStatus();
}

absl::Status LoopEngine::StartReductions() {
  for (bool ran = true; ran;) {
    TROUPE_ASSIGN_OR_RETURN(
        ran, dispatcher_->RunNext(dispatcher_->present(), /*busy=*/true));
  }
  // All ranks start it after the last collective of the table.
  const bool starts = uses_due_ && dispatcher_->present().cursor.draining();
  return starts ? ReduceUses() : absl::OkStatus();
}

absl::Status LoopEngine::ReduceUses() {
  uses_due_ = false;
  uses_in_flight_ = true;
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor marks, uses_->Publish());
  const auto sum = comm::AllReduce(comm::ReduceOp::kSum, std::move(marks));
  const absl::StatusOr<bool> done =
      reducer_->Start(kUsesAction, pipeline::GroupId::kDp, sum, uses_->ready());
  if (!done.ok()) return CollectiveFailed(step_, kUsesAction, done.status());
  if (*done) uses_in_flight_ = false;
  return absl::OkStatus();
}

absl::Status LoopEngine::AwaitUses() {
  while (uses_due_ || uses_in_flight_) {
    TROUPE_RETURN_IF_ERROR(StartReductions());
    if (uses_due_ || uses_in_flight_) wait_.AwaitNews();
  }
  return absl::OkStatus();
}

absl::Status LoopEngine::CollectiveDone(std::int64_t step, int action,
                                        const base::Event& done) {
  if (action != kUsesAction) {
    return dispatcher_->CollectiveDone(step, action, done);
  }
  reducer_->Finish();
  uses_->NoteSummed(done);
  uses_in_flight_ = false;
  return absl::OkStatus();
}

absl::Status LoopEngine::CollectiveFailed(std::int64_t step, int action,
                                          const absl::Status& why) const {
  if (action != kUsesAction) {
    return dispatcher_->CollectiveFailed(step, action, why);
  }
  return absl::Status(why.code(), absl::StrCat("step ", step + 1, ", ",
                                               kUsesPart, ": ", why.message()));
}

std::string LoopEngine::Unfinished() const {
  const std::string actions = dispatcher_->Unfinished();
  if (!uses_due_ && !uses_in_flight_) return actions;
  return absl::StrCat(actions, actions.empty() ? "" : ", ", kUsesPart);
}

absl::Status LoopEngine::LeaveOutUnused() {
  const std::vector<nn::Parameter*> here = uses_->UnusedHere();
  if (static_unused_.has_value()) {
    if (!uses_->closed()) {
      TROUPE_RETURN_IF_ERROR(static_unused_->Check(here, step_));
    }
    parameters_->LeaveOut(static_unused_->anywhere);
    return absl::OkStatus();
  }
  std::vector<nn::Parameter*> unused = uses_->Unused();
  if (!unused.empty() && plan_.mesh.dp() > 1) {
    TROUPE_RETURN_IF_ERROR(AwaitUses());
    TROUPE_RETURN_IF_ERROR(uses_->TakeSum());
    unused = uses_->Unused();
  }
  if (setup_.static_graph) static_unused_ = StaticUses{here, unused};
  parameters_->LeaveOut(unused);
  return absl::OkStatus();
}

absl::Status LoopEngine::CountLeftOut(const StepLoss& loss) {
  if (!parameters_->leaves_out()) return absl::OkStatus();
  if (parameters_->optimizer()->MaySkipSteps()) {
    TROUPE_ASSIGN_OR_RETURN(
        const nn::Tensor non_finite,
        nn::CopyToHost(kernels(), events_->update_queue(),
                       loss.scalars().FlatView(nn::kNonFiniteScalar, {1})));
    TROUPE_RETURN_IF_ERROR(nn::Synchronize(
        kernels(), nn::Record(kernels(), events_->update_queue())));
    if (non_finite.data<double>()[0] != 0) return absl::OkStatus();
  }
  parameters_->CountLeftOut();
  return absl::OkStatus();
}

absl::Status LoopEngine::AwaitGradients() {
  TROUPE_RETURN_IF_ERROR(CheckOutsideHook());
  if (!reducing_) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(StartReductions());
  while (reducer_->in_flight() > 0) {
    wait_.AwaitNews();
    TROUPE_RETURN_IF_ERROR(StartReductions());
  }
  events_->AwaitAllGradients();
  nn::Wait(kernels(), nn::Queue::kCompute,
           nn::Record(kernels(), events_->update_queue()));
  return absl::OkStatus();
}

absl::Status LoopEngine::Step() {
  TROUPE_RETURN_IF_ERROR(CheckOutsideHook());
  if (parameters_->optimizer() == nullptr) {
    return absl::FailedPreconditionError(
        "Step() without an optimizer; make one for this model first");
  }
  if (!synced_) {
    return absl::FailedPreconditionError(
        reducing_ || dispatcher_->present().under_way
            ? "Step() after a backward under NoSync(): its gradients are not "
              "reduced over the ranks; run the last backward without it"
            : "Step() without gradients; call Backward() first");
  }
  StepInFlight& step = dispatcher_->present();
  TROUPE_RETURN_IF_ERROR(LeaveOutUnused());
  if (updating_) {
    parameters_->LeaveOut({});
  } else {
    step.cursor.Give({SignalKind::kStepAsked});
  }
  TROUPE_RETURN_IF_ERROR(dispatcher_->Walk());
  TROUPE_RETURN_IF_ERROR(AwaitUses());
  TROUPE_RETURN_IF_ERROR(dispatcher_->EndStep(step));
  TROUPE_RETURN_IF_ERROR(CountLeftOut(*step.loss));
  events_->AwaitAllUpdates();
  ++step_;
  reducing_ = synced_ = false;
  // The program has its own losses. A device returns its errors here.
  for (bool taken = true; taken;) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<LossBits> bits,
                            losses_->Take());
    taken = bits.has_value();
  }
  return absl::OkStatus();
}

absl::Status LoopEngine::ZeroGrad() {
  TROUPE_RETURN_IF_ERROR(AwaitGradients());
  if (steps_in_backward_ && dispatcher_->present().under_way) {
    return absl::FailedPreconditionError(
        "ZeroGrad() after a backward that has updated the parameters "
        "(StepInBackward()): there is no gradient left to discard; call Step() "
        "first, which ends the step");
  }
  if (dispatcher_->present().under_way) {
    dispatcher_->present().under_way = false;
    parts_->position.EndStep();
  }
  reducing_ = synced_ = false;
  parameters_->BeginStep();
  uses_->Clear();
  return absl::OkStatus();
}

}  // namespace troupe::actors
