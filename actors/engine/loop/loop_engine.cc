#include "actors/engine/loop/loop_engine.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "actors/engine/loop/joint_backward.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

using pipeline::ActionKind;
using pipeline::SignalKind;

absl::StatusOr<std::unique_ptr<LoopEngine>> LoopEngine::Create(
    const Setup& setup, EngineHost* host, StrandWait* wait) {
  std::unique_ptr<LoopEngine> engine(new LoopEngine(setup, wait));
  TROUPE_RETURN_IF_ERROR(engine->Init(host));
  return engine;
}

LoopEngine::LoopEngine(const Setup& setup, StrandWait* wait)
    : setup_(setup),
      plan_(*setup.plan),
      parts_(engine_setup_, wait, StepTrace(setup.trace, setup.rank)),
      state_(setup.exact_mean) {}

absl::Status LoopEngine::Init(EngineHost* host) {
  engine_setup_.rank = setup_.rank;
  engine_setup_.plan = &plan_;
  engine_setup_.groups = setup_.groups == nullptr ? &no_groups_ : setup_.groups;
  engine_setup_.position = setup_.position;
  RankDevice::Options device;
  device.groups = engine_setup_.groups;
  device.wait = parts_.wait();
  parts_.Open(RankDevice::Over(device, setup_.kernels), host);
  TROUPE_RETURN_IF_ERROR(MakeParameters());
  TROUPE_ASSIGN_OR_RETURN(
      uses_, AgreedUses::Create({plan_.mesh.dp(), setup_.static_graph},
                                parameters(), kernels()));
  ledger_.emplace(
      GradientLedger::Setup{/*chunk=*/0, &parameters(), &parts_.trace(),
                            /*gated=*/false, &uses_->marks()},
      static_cast<GradientLedger::Listener*>(this));
  TROUPE_ASSIGN_OR_RETURN(
      order_, AgreedOrder::Create({plan_.mesh.dp(), parameters().num_buckets(),
                                   setup_.delayed_buckets},
                                  kernels()));
  return MakeDispatcher();
}

absl::Status LoopEngine::MakeParameters() {
  ChunkParameters::Setup setup;
  setup.plan = &plan_;
  setup.rank = setup_.rank;
  setup.kernels = setup_.kernels;
  setup.seed = setup_.seed;
  setup.averages = !setup_.exact_mean && !setup_.sums;
  setup.keeps_grads = true;
  setup.start_threads = setup_.start_threads;
  setup.peer_memory.allocator = setup_.grad_allocator;
  setup.update_queue = parts_->events.update_queue();
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ChunkParameters> model,
                          ChunkParameters::Create(setup, *setup_.module));
  parts_.Add(std::move(model));
  parts_.RegisterRanges();
  return absl::OkStatus();
}

absl::Status LoopEngine::MakeDispatcher() {
  const nn::Optimizer* const optimizer = parameters().optimizer();
  plan_.update_needs_all_buckets =
      optimizer != nullptr && optimizer->NeedsAllBuckets();
  TROUPE_ASSIGN_OR_RETURN(
      dispatcher_,
      LoopDispatcher::Create({setup_.exact_mean, state_.hook(), launch_order()},
                             parts_));
  return absl::OkStatus();
}

absl::Status LoopEngine::AttachOptimizer(
    const ChunkParameters::MakeOptimizerFn& make) {
  TROUPE_RETURN_IF_ERROR(state_.CheckAttachOptimizer(under_way()));
  TROUPE_RETURN_IF_ERROR(parameters().AttachOptimizer(make));
  return MakeDispatcher();
}

absl::Status LoopEngine::SetHook(BucketHook* hook) {
  TROUPE_RETURN_IF_ERROR(
      state_.CheckSetHook(plan_.reduction_dtype.has_value(), under_way()));
  state_.set_hook(hook);
  order_->GoByNumber();
  plan_.fuse_updates = false;
  return MakeDispatcher();
}

absl::Status LoopEngine::StepInBackward() {
  TROUPE_RETURN_IF_ERROR(
      state_.CheckStepInBackward(parameters().optimizer(), under_way()));
  state_.set_steps_in_backward();
  // Neither a sum over ranks nor a count of the loss comes between a gradient
  // and its update.
  plan_.fuse_updates =
      plan_.mesh.size() == 1 && state_.hook() == nullptr && !setup_.exact_mean;
  return absl::OkStatus();
}

void LoopEngine::BucketReady(int chunk, int bucket, int micro_batch) {
  order_->BucketComplete(bucket);
  dispatcher().listener()->BucketReady(chunk, bucket, micro_batch);
}

void LoopEngine::BucketReleased(int chunk, int bucket) {
  dispatcher().listener()->BucketReleased(chunk, bucket);
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
  StepInFlight& step = dispatcher().present();
  const bool first = !step.under_way;
  if (first) {
    TROUPE_RETURN_IF_ERROR(
        dispatcher().Begin(StepKind::kTrain, state_.step(), /*batches=*/{}));
  }
  action_ = {ActionKind::kBackward, state_.BeginBackward(first), {}};
  scopes.emplace_back(parts_.trace(), action_);
  if (setup_.exact_mean) {
    TROUPE_RETURN_IF_ERROR(step.loss->Add(action_.index, backward.loss));
  }
  if (backward.synced) {
    TROUPE_RETURN_IF_ERROR(AgreeOnOrder(backward.leader));
    // Gradients that are averaged already are equal on all ranks: averaging
    // them once more keeps them, and adds the average of this backward's.
    if (state_.reducing()) step.cursor.Begin();
  }
  state_.NoteSynced(backward.synced);
  if (!backward.uses) uses().Close();
  std::vector<nn::Parameter*> read = backward.tape->parameters();
  read.erase(std::remove_if(read.begin(), read.end(),
                            [this](const nn::Parameter* parameter) {
                              return !parameters().Has(*parameter);
                            }),
             read.end());
  // A rank whose loss leaves out parameters must hear what its peers use before
  // it updates: in Step().
  updating_ =
      state_.steps_in_backward() && backward.uses && uses().AreAll(read);
  if (updating_) {
    parameters().updates().LeaveOut({});
    step.cursor.Give({SignalKind::kStepAsked});
  }
  ledger_->BeginStep();
  if (updating_ && plan_.fuse_updates) {
    TROUPE_RETURN_IF_ERROR(step.loss->PassToUpdates());
    ledger_->UpdateInBackward(step.loss->scalars());
  }
  ledger_->BeginPass(read, GradientLedger::Mode::kWhole,
                     /*last=*/state_.synced());
  order_->Observe(/*counts=*/backward.uses);
  return absl::OkStatus();
}

void LoopEngine::EndPass() {
  order_->EndBackward(state_.synced());
  uses_->EndBackward(state_.synced());
}

absl::Status LoopEngine::AgreeOnOrder(int leader) {
  TROUPE_ASSIGN_OR_RETURN(const bool changed, order_->TakeAgreed());
  if (changed) dispatcher_->Reorder(order_->order());
  return order_->BeginBackward(leader, state_.step(), parts_->reducer);
}

absl::Status LoopEngine::GoOn() {
  return state_.reducing() ? StartReductions() : absl::OkStatus();
}

absl::Status LoopEngine::StartReductions() {
  for (bool ran = true; ran;) {
    TROUPE_ASSIGN_OR_RETURN(
        ran, dispatcher().RunNext(dispatcher().present(), /*busy=*/true));
  }
  // All ranks start it after the last collective of the table.
  const bool starts = uses_->due() && dispatcher().present().cursor.draining();
  return starts ? uses_->StartSum(state_.step(), parts_->reducer)
                : absl::OkStatus();
}

absl::Status LoopEngine::AwaitAgreements() {
  const auto waits = [this] {
    return uses_->waits() || order_->broadcast().in_flight();
  };
  while (waits()) {
    TROUPE_RETURN_IF_ERROR(StartReductions());
    if (waits()) parts_->wait.AwaitNews();
  }
  return absl::OkStatus();
}

absl::Status LoopEngine::CollectiveDone(std::int64_t step, int action,
                                        const base::Event& done) {
  if (action == order_->broadcast().action()) {
    order_->EndBroadcast(done, parts_->reducer);
    return absl::OkStatus();
  }
  if (action == uses_->sum().action()) {
    uses_->EndSum(done, parts_->reducer);
    return absl::OkStatus();
  }
  return dispatcher().CollectiveDone(step, action, done);
}

absl::Status LoopEngine::CollectiveFailed(std::int64_t step, int action,
                                          const absl::Status& why) const {
  for (const SideCollective* side : {&order_->broadcast(), &uses_->sum()}) {
    if (action == side->action()) return side->Failed(step, why);
  }
  return dispatcher().CollectiveFailed(step, action, why);
}

std::string LoopEngine::Unfinished() const {
  std::string left = dispatcher().Unfinished();
  const auto add = [&left](bool is_left, const SideCollective& side) {
    if (!is_left) return;
    absl::StrAppend(&left, left.empty() ? "" : ", ", side.part());
  };
  add(uses_->waits(), uses_->sum());
  add(order_->broadcast().in_flight(), order_->broadcast());
  return left;
}

absl::Status LoopEngine::AwaitGradients() {
  TROUPE_RETURN_IF_ERROR(state_.CheckOutsideHooks());
  if (!state_.reducing()) return absl::OkStatus();
  state_.set_busy(true);
  const absl::Cleanup ended = [this] { state_.set_busy(false); };
  TROUPE_RETURN_IF_ERROR(StartReductions());
  while (parts_->reducer.in_flight() > 0) {
    parts_->wait.AwaitNews();
    TROUPE_RETURN_IF_ERROR(StartReductions());
  }
  parts_->events.AwaitAllGradients();
  nn::Wait(kernels(), nn::Queue::kCompute,
           nn::Record(kernels(), parts_->events.update_queue()));
  return absl::OkStatus();
}

absl::Status LoopEngine::Step() {
  TROUPE_RETURN_IF_ERROR(state_.CheckOutsideHooks());
  TROUPE_RETURN_IF_ERROR(
      state_.CheckStep(parameters().optimizer(), under_way()));
  state_.set_busy(true);
  const absl::Cleanup ended = [this] { state_.set_busy(false); };
  StepInFlight& step = dispatcher().present();
  TROUPE_RETURN_IF_ERROR(
      uses_->LeaveOut(state_.step(), [this] { return AwaitAgreements(); }));
  if (updating_) {
    parameters().updates().LeaveOut({});
  } else {
    step.cursor.Give({SignalKind::kStepAsked});
  }
  TROUPE_RETURN_IF_ERROR(dispatcher().Walk());
  TROUPE_RETURN_IF_ERROR(AwaitAgreements());
  TROUPE_RETURN_IF_ERROR(dispatcher().EndStep(step));
  TROUPE_RETURN_IF_ERROR(
      uses_->CountLeftOut(step.loss->scalars(), parts_->events.update_queue()));
  parts_->events.AwaitAllUpdates();
  state_.EndStep();
  return dispatcher_->TakeLosses();
}

absl::Status LoopEngine::ZeroGrad() {
  TROUPE_RETURN_IF_ERROR(AwaitGradients());
  TROUPE_RETURN_IF_ERROR(state_.CheckZeroGrad(under_way()));
  if (under_way()) {
    dispatcher().present().under_way = false;
    parts_->position.EndStep();
  }
  state_.Discard();
  parameters().BeginStep();
  uses().Clear();
  return absl::OkStatus();
}

}  // namespace troupe::actors
