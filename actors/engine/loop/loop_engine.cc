#include "actors/engine/loop/loop_engine.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/cleanup/cleanup.h"
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

// Numbers of collectives that are no actions of a table.
constexpr int kUsesAction = -1;
constexpr int kOrderAction = -2;

constexpr char kUsesPart[] = "marks of used parameters";
constexpr char kOrderPart[] = "order of reductions";

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
  const int buckets = parameters_->num_buckets();
  if (plan_.mesh.dp() > 1 && buckets - setup_.delayed_buckets > 1) {
    TROUPE_ASSIGN_OR_RETURN(
        order_,
        LaunchOrder::Create({buckets, setup_.delayed_buckets}, kernels()));
  }
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

std::vector<int> LoopEngine::launch_order() const {
  if (order_ != nullptr) return order_->order();
  std::vector<int> by_number(parameters_->num_buckets());
  std::iota(by_number.begin(), by_number.end(), 0);
  return by_number;
}

pipeline::StepTable LoopEngine::Table() const {
  pipeline::LoopTableOptions table;
  table.updates = parameters_->optimizer() != nullptr;
  table.reduce_loss = setup_.exact_mean;
  table.update_needs_all_buckets = plan_.update_needs_all_buckets;
  table.order = launch_order();
  return pipeline::LoopTable(parameters_->num_buckets(), table);
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
  plan_.update_needs_all_buckets =
      optimizer != nullptr && optimizer->NeedsAllBuckets();
  StepActions actions = MakeActions(*parts_);
  if (hook_ != nullptr) {
    actions[static_cast<int>(ActionKind::kReduceBucket)] =
        std::make_unique<HookAction>(*parts_, hook_);
  }
  dispatcher_.reset();  // it refers to the losses
  losses_.emplace(std::move(losses));
  dispatcher_.emplace(
      Dispatcher::Options{Table(), {}, {parameters_->num_buckets()}}, *parts_,
      std::move(actions), *inbox_, *losses_, trace_);
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
        "a communication hook takes the place of DDPOptions::reduction_dtype; "
        "leave out reduction_dtype, or the hook");
  }
  if (dispatcher_->present().under_way) {
    return absl::FailedPreconditionError(
        "a communication hook is registered before the first backward of a "
        "step: register it before, or discard the gradients with ZeroGrad()");
  }
  hook_ = hook;
  order_.reset();
  plan_.fuse_updates = false;
  return MakeDispatcher();
}

void LoopEngine::BucketReady(int chunk, int bucket) {
  if (order_ != nullptr) order_->BucketComplete(bucket);
  dispatcher_->listener()->BucketReady(chunk, bucket);
}

void LoopEngine::BucketReleased(int chunk, int bucket) {
  dispatcher_->listener()->BucketReleased(chunk, bucket);
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
    TROUPE_RETURN_IF_ERROR(AgreeOnOrder(backward.leader));
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
  if (order_ != nullptr) order_->Observe(/*counts=*/backward.uses);
  return absl::OkStatus();
}

void LoopEngine::EndPass() {
  if (synced_ && order_ != nullptr) order_->EndBackward();
  uses_due_ = synced_ && plan_.mesh.dp() > 1 && !static_unused_.has_value();
}

absl::Status LoopEngine::AgreeOnOrder(int leader) {
  if (order_ == nullptr) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const bool changed, order_->TakeAgreed());
  if (changed) dispatcher_->Reorder(Table());
  if (!order_->BeginBackward()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor proposal, order_->Publish());
  order_in_flight_ = true;
  const auto send = comm::Broadcast(leader, std::move(proposal));
  const absl::StatusOr<bool> done = reducer_->Start(
      kOrderAction, pipeline::GroupId::kDp, send, order_->ready());
  if (!done.ok()) return CollectiveFailed(step_, kOrderAction, done.status());
  if (*done) order_in_flight_ = false;
  return absl::OkStatus();
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
  const auto waits = [this] {
    return uses_due_ || uses_in_flight_ || order_in_flight_;
  };
  while (waits()) {
    TROUPE_RETURN_IF_ERROR(StartReductions());
    if (waits()) wait_.AwaitNews();
  }
  return absl::OkStatus();
}

absl::Status LoopEngine::CollectiveDone(std::int64_t step, int action,
                                        const base::Event& done) {
  if (action >= 0) return dispatcher_->CollectiveDone(step, action, done);
  reducer_->Finish();
  if (action == kOrderAction) {
    order_->NoteSent(done);
    order_in_flight_ = false;
  } else {
    uses_->NoteSummed(done);
    uses_in_flight_ = false;
  }
  return absl::OkStatus();
}

absl::Status LoopEngine::CollectiveFailed(std::int64_t step, int action,
                                          const absl::Status& why) const {
  if (action >= 0) return dispatcher_->CollectiveFailed(step, action, why);
  return absl::Status(
      why.code(), absl::StrCat("step ", step + 1, ", ",
                               action == kOrderAction ? kOrderPart : kUsesPart,
                               ": ", why.message()));
}

std::string LoopEngine::Unfinished() const {
  std::string left = dispatcher_->Unfinished();
  const auto add = [&left](bool is_left, const char* part) {
    if (is_left) absl::StrAppend(&left, left.empty() ? "" : ", ", part);
  };
  add(uses_due_ || uses_in_flight_, kUsesPart);
  add(order_in_flight_, kOrderPart);
  return left;
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
  TROUPE_RETURN_IF_ERROR(CheckOutsideHooks());
  if (!reducing_) return absl::OkStatus();
  busy_ = true;
  const absl::Cleanup ended = [this] { busy_ = false; };
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
  TROUPE_RETURN_IF_ERROR(CheckOutsideHooks());
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
  busy_ = true;
  const absl::Cleanup ended = [this] { busy_ = false; };
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
