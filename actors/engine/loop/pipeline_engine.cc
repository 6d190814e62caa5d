#include "actors/engine/loop/pipeline_engine.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/chunks/step/loss_check.h"
#include "actors/engine/engine_inputs.h"
#include "actors/engine/share_state.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/step_scalars.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {
namespace {

using pipeline::ActionKind;

// Returns whether an action of the kind may end after Run() has returned.
bool FollowsGradients(ActionKind kind) {
  return pipeline::IsOfGradients(kind) || kind == ActionKind::kReduceFindings;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PipelineEngine>> PipelineEngine::Create(
    const Setup& setup, EngineHost* host, StrandWait* wait) {
  std::unique_ptr<PipelineEngine> engine(new PipelineEngine(setup, wait));
  TROUPE_RETURN_IF_ERROR(engine->Init(host));
  return engine;
}

PipelineEngine::PipelineEngine(const Setup& setup, StrandWait* wait)
    : setup_(setup),
      plan_(*setup.plan),
      parts_(engine_setup_, wait,
             StepTrace(setup.trace, setup.rank, plan_.StagesOf(setup.rank),
                       plan_.mesh.CoordsOf(setup.rank).dp)) {}

absl::Status PipelineEngine::Init(EngineHost* host) {
  engine_setup_.rank = setup_.rank;
  engine_setup_.spec = setup_.spec;
  engine_setup_.plan = &plan_;
  engine_setup_.groups = setup_.groups;
  RankDevice::Options device;
  device.groups = setup_.groups;
  device.wait = parts_.wait();
  parts_.Open(RankDevice::Over(device, setup_.kernels), host);
  for (int stage : plan_.StagesOf(setup_.rank)) {
    Chunk::Setup chunk = ChunkSetupOf(*parts_, stage, chunk_count());
    chunk.trace = &parts_.trace();
    TROUPE_ASSIGN_OR_RETURN(
        std::unique_ptr<Chunk> made,
        Chunk::Create(chunk, static_cast<Chunk::Listener*>(this)));
    parts_.Add(std::move(made));
  }
  parts_.RegisterRanges();
  return MakeDispatcher();
}

absl::Status PipelineEngine::MakeDispatcher() {
  plan_.update_needs_all_buckets =
      optimizer() != nullptr && optimizer()->NeedsAllBuckets();
  LoopDispatcher::Options options;
  options.exact_mean = true;  // updates divide by the count of all targets
  options.tables = Dispatcher::Options{TrainTable(), EvaluateTable(),
                                       BucketsOf(plan_, setup_.rank)};
  TROUPE_ASSIGN_OR_RETURN(dispatcher_, LoopDispatcher::Create(options, parts_));
  return absl::OkStatus();
}

pipeline::StepTable PipelineEngine::TrainTable() const {
  pipeline::StepTable table;
  for (const pipeline::Action& action :
       plan_.RankPlanOf(setup_.rank).train.actions) {
    const bool updates =
        pipeline::RuleOf(action.kind).Has(pipeline::kMakesParameters);
    if (updates && optimizer() == nullptr) continue;
    if (action.kind == ActionKind::kReduceFindings &&
        !plan_.update_needs_all_buckets) {
      continue;
    }
    table.actions.push_back(action);
  }
  pipeline::ReductionOptions needs;
  needs.update_needs_all_buckets = plan_.update_needs_all_buckets;
  needs.updates_on_request = true;
  return BoundedTable(pipeline::WithNeeds(std::move(table), needs), plan_,
                      setup_.rank);
}

pipeline::StepTable PipelineEngine::EvaluateTable() const {
  pipeline::StepTable table;
  for (const pipeline::Action& action :
       plan_.RankPlanOf(setup_.rank).evaluate.actions) {
    if (pipeline::IsOfForward(action.kind)) table.actions.push_back(action);
  }
  return pipeline::WithNeeds(std::move(table), {});
}

absl::Status PipelineEngine::AttachOptimizer(
    const ChunkParameters::MakeOptimizerFn& make) {
  TROUPE_RETURN_IF_ERROR(CheckNoGradients("an optimizer is made"));
  for (ChunkParameters* parameters : parts_->parameters) {
    TROUPE_RETURN_IF_ERROR(parameters->AttachOptimizer(make));
  }
  return MakeDispatcher();
}

absl::Status PipelineEngine::CheckNoGradients(const char* call) const {
  if (!has_gradients_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      call,
      " while the gradients of a Run() wait for a step; call Step() first, or "
      "discard them with ZeroGrad(). Those of two Run() do not add up: make "
      "one of more micro-batches"));
}

absl::StatusOr<LossBits> PipelineEngine::Run(StepBatches batches) {
  TROUPE_RETURN_IF_ERROR(CheckNoGradients("another Run() begins"));
  TROUPE_RETURN_IF_ERROR(
      dispatcher().Begin(StepKind::kTrain, step_, std::move(batches)));
  has_gradients_ = true;
  made_ = 0;
  StepInFlight& step = dispatcher().present();
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(const bool ran,
                            dispatcher().RunNext(step, /*busy=*/false));
    if (ran) continue;
    if (GradientsMade()) break;
    parts_->wait.AwaitNews();
  }
  return ReadLoss();
}

bool PipelineEngine::GradientsMade() {
  const StepInFlight& step = dispatcher().present();
  const auto& actions = step.cursor.table().actions;
  while (made_ < actions.size() && (FollowsGradients(actions[made_].kind) ||
                                    step.IsDone(static_cast<int>(made_)))) {
    ++made_;
  }
  return made_ == actions.size();
}

absl::StatusOr<LossBits> PipelineEngine::ReadLoss() {
  StepLoss& loss = *dispatcher().present().loss;
  TROUPE_RETURN_IF_ERROR(loss.PassToUpdates());
  const nn::Queue queue = parts_->events.update_queue();
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor host,
                          nn::CopyToHost(kernels(), queue, loss.scalars()));
  TROUPE_RETURN_IF_ERROR(
      nn::Synchronize(kernels(), nn::Record(kernels(), queue)));
  return LossIn(nn::ScalarsIn(host));
}

absl::Status PipelineEngine::Step() {
  if (optimizer() == nullptr) {
    return absl::FailedPreconditionError(
        "Step() without an optimizer; make one for this model first");
  }
  if (!has_gradients_) {
    return absl::FailedPreconditionError(
        "Step() without gradients; call Run() first");
  }
  StepInFlight& step = dispatcher().present();
  step.cursor.Give({pipeline::SignalKind::kStepAsked});
  TROUPE_RETURN_IF_ERROR(dispatcher().Walk());
  TROUPE_RETURN_IF_ERROR(dispatcher().EndStep(step));
  parts_->events.AwaitAllUpdates();
  has_gradients_ = false;
  ++step_;
  return dispatcher_->TakeLosses();
}

absl::Status PipelineEngine::ZeroGrad() {
  if (!has_gradients_) return absl::OkStatus();
  StepInFlight& step = dispatcher().present();
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(const bool ran,
                            dispatcher().RunNext(step, /*busy=*/false));
    if (ran) continue;
    if (parts_->reducer.in_flight() == 0) break;
    parts_->wait.AwaitNews();
  }
  parts_->events.AwaitAllGradients();
  nn::Wait(kernels(), nn::Queue::kCompute,
           nn::Record(kernels(), parts_->events.update_queue()));
  step.under_way = false;
  parts_->position.EndStep();
  has_gradients_ = false;
  return absl::OkStatus();
}

absl::Status PipelineEngine::AwaitReadBack() {
  return nn::Synchronize(kernels(),
                         nn::Record(kernels(), nn::Queue::kReadBack));
}

absl::StatusOr<LossBits> PipelineEngine::Evaluate(StepKind kind,
                                                  data::Batch batch) {
  TROUPE_RETURN_IF_ERROR(CheckNoGradients("an evaluation runs"));
  StepBatches batches;
  batches.push_back(std::move(batch));
  TROUPE_RETURN_IF_ERROR(AwaitReadBack());
  TROUPE_RETURN_IF_ERROR(dispatcher_->TakeLosses());  // leaves none of training
  TROUPE_RETURN_IF_ERROR(dispatcher().RunStep(kind, step_, std::move(batches)));
  // The loss, and the output before it, are on their way to the host.
  TROUPE_RETURN_IF_ERROR(AwaitReadBack());
  TROUPE_ASSIGN_OR_RETURN(const std::optional<LossBits> loss,
                          dispatcher_->TakeLoss());
  TROUPE_CHECK(loss.has_value(), "what was copied to the host is there");
  return *loss;
}

absl::Status PipelineEngine::ShareBuffers() {
  return ShareState(*parts_, StepKind::kShareBuffers, step_);
}

}  // namespace troupe::actors
