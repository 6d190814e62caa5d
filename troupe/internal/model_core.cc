#include "troupe/internal/model_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/engine/loop/joint_backward.h"
#include "base/check.h"
#include "base/status_error.h"
#include "nn/kernels/device_queues.h"
#include "pipeline/mesh.h"
#include "pipeline/parameter_plan.h"
#include "pipeline/plan_groups.h"
#include "troupe/devices/device_leader.h"
#include "troupe/internal/hook_runner.h"
#include "troupe/model.h"
#include "troupe/profile/op_recorder.h"

namespace troupe {

ModelCore::ModelCore(Rank& rank, std::unique_ptr<nn::Module> module)
    : rank_(rank), module_(std::move(module)), started_(rank.strand()) {
  MakeEngine({}, {rank.number()});
  parameters_ = module_->Parameters();
  std::sort(parameters_.begin(), parameters_.end());
  rank_.AddModel(this);
}

ModelCore::~ModelCore() {
  rank_.RemoveModel(this);
  Abandon(absl::CancelledError(absl::StrCat(
      "rank ", rank_.number(), " ended while its gradients were reduced")));
}

void ModelCore::Abandon(const absl::Status& why) { started_.Abort(why); }

void ModelCore::Finish() {
  while (reduces()) AwaitNews();
}

bool ModelCore::Owns(const nn::Parameter* parameter) const {
  return std::binary_search(parameters_.begin(), parameters_.end(),
                            const_cast<nn::Parameter*>(parameter));
}

bool ModelCore::frozen() const {
  return std::none_of(
      parameters_.begin(), parameters_.end(),
      [](const nn::Parameter* parameter) { return parameter->requires_grad; });
}

void ModelCore::MakeEngine(const Distribution& distribution,
                           const std::vector<int>& ranks) {
  pipeline::ParameterPlanOptions choices;
  choices.mesh = pipeline::Mesh(static_cast<int>(ranks.size()));
  choices.buckets = distribution.buckets;
  choices.reduction_dtype = distribution.reduction_dtype;
  choices.bucket_limits = distribution.bucket_limits;
  choices.delayed = distribution.delayed;
  const pipeline::Plan plan = base::OrThrow(pipeline::MakeParameterPlan(
      choices, module_->Parameters(), rank_.kernels().device()));
  actors::LoopEngine::Setup setup;
  const auto own = std::find(ranks.begin(), ranks.end(), rank_.number());
  setup.rank = static_cast<int>(own - ranks.begin());
  setup.plan = &plan;
  setup.kernels = rank_.shared_kernels();
  setup.module = module_.get();
  setup.seed = rank_.seed();
  setup.exact_mean = distribution.exact_mean;
  setup.sums = distribution.sums;
  setup.static_graph = distribution.static_graph;
  setup.delayed_buckets =
      distribution.sums ? static_cast<int>(plan.stages[0].buckets.size())
                        : pipeline::DelayedBuckets(plan, distribution.delayed);
  setup.trace = &rank_.recorder();
  if (ranks.size() > 1) {
    for (const pipeline::PlanGroup& group : pipeline::GroupsOf(plan)) {
      std::vector<int> members;
      for (int member : group.ranks) members.push_back(ranks[member]);
      groups_.Add(group, base::OrThrow(rank_.strand().MakeGroup(members)));
    }
    setup.groups = &groups_;
  }
  engine_ = base::OrThrow(actors::LoopEngine::Create(setup, this, this));
  std::int64_t bytes = 0;
  const actors::ChunkParameters& parameters = engine_->parameters();
  for (int i = 0; i < parameters.num_arenas(); ++i) {
    const nn::ParameterArena& arena = parameters.arena(i);
    for (int k = 0; k < arena.num_buckets(); ++k) {
      bytes += static_cast<std::int64_t>(arena.BucketGrads(k).bytes());
    }
  }
  started_.set_hands_over(ranks.size() > 1 && rank_.strand().HandsOver(bytes));
}

void ModelCore::Lead(std::unique_ptr<DeviceLeader> leader) {
  leader_ = std::move(leader);
}

void ModelCore::OnRead(const nn::Parameter& parameter,
                       SavedModel::ReadFn read) {
  optimizer_.OnRead(parameter, std::move(read), rank_.kernels(),
                    engine_->parameters());
  if (leader_ != nullptr) leader_->ShareState();
}

void ModelCore::Distribute(const Distribution& distribution,
                           const std::vector<int>& ranks) {
  if (optimizer_.attached() || distributed_) {
    throw base::StatusError(absl::FailedPreconditionError(
        distributed_ ? "the model has a DDP already; make one for each model"
                     : "the model has an optimizer already; make the DDP "
                       "first, and the optimizer of the DDP"));
  }
  // The buckets are others, and so is the memory.
  std::vector<Tensor> values;
  const auto each = [&](const auto& visit) {
    for (nn::Parameter* parameter : module_->Parameters()) {
      visit(parameter->value);
    }
    for (nn::Buffer* buffer : module_->Buffers()) visit(buffer->value);
  };
  nn::Kernels& kernels = rank_.kernels();
  each([&](const Tensor& value) {
    values.push_back(base::OrThrow(
        nn::Tensor::Create(value.shape(), value.dtype(), kernels.allocator())));
    nn::CopyBytes(kernels, nn::Queue::kCompute, value, values.back());
  });
  engine_.reset();
  MakeEngine(distribution, ranks);
  std::size_t next = 0;
  each([&](Tensor value) {
    nn::CopyBytes(kernels, nn::Queue::kCompute, values[next++], value);
  });
  distributed_ = true;
}

void ModelCore::BroadcastParameters(int root) {
  const actors::ChunkParameters& parameters = engine_->parameters();
  for (int i = 0; i < parameters.num_arenas(); ++i) {
    rank_.Axis("dp").Broadcast(parameters.arena(i).values(), root);
  }
  optimizer_.ShareValues(root);
}

Var ModelCore::Forward(const Var& x) {
  if (leader_ != nullptr) return leader_->Forward(x);
  if (!rank_.context().training() || !rank_.records()) return (*module_)(x);
  CallObserver* const observer = membership_.observer();
  if (observer != nullptr) base::OrThrow(observer->OnForward(*this, x));
  if (synced_) SyncBuffers();
  Var y = (*module_)(x);
  if (observer != nullptr) observer->AfterForward(*this, y);
  return y;
}

void ModelCore::SetHook(CommHook hook) {
  if (hook_ != nullptr) {
    throw base::StatusError(absl::FailedPreconditionError(
        "the DDP has a communication hook already; call RegisterCommHook() "
        "once, with one that does the work of both"));
  }
  Group& group = rank_.NewGroup(rank_.Axis("dp").ranks());
  auto runner = std::make_unique<HookRunner>(*this, group, std::move(hook));
  base::OrThrow(engine_->SetHook(runner.get()));
  hook_ = std::move(runner);
}

void ModelCore::Follow(int action, comm::Communicator& group,
                       const base::Event& done,
                       std::function<absl::Status()> then) {
  started_.Add({engine_->step(), action}, group, done, std::move(then));
}

absl::Status ModelCore::Backward(absl::Span<ModelCore* const> models,
                                 const nn::BackwardRoot& root) {
  Rank& rank = models[0]->rank_;
  nn::Tape* const tape = rank.context().tape();
  const absl::Status status = RunBackward(models, root);
  tape->Reset();
  return status;
}

absl::Status ModelCore::RunBackward(absl::Span<ModelCore* const> models,
                                    const nn::BackwardRoot& root) {
  const ModelCore& first = *models[0];
  CallObserver* const observer = first.membership_.observer();
  nn::Context& context = first.rank_.context();
  for (const ModelCore* model : models) {
    if (model->membership_.observer() == observer) continue;
    return absl::FailedPreconditionError(
        "the loss depends on the parameters of several models, and one of them "
        "is under Join(), where a rank that has ended could not follow; give "
        "Join() all of them, detach the output of one, or put them into one "
        "module");
  }
  if (observer != nullptr) {
    TROUPE_RETURN_IF_ERROR(observer->OnBackward(models, root.tensor));
  }
  TROUPE_ASSIGN_OR_RETURN(const nn::BackwardRoot scaled,
                          first.membership_.Scaled(context, root));
  actors::LoopBackward backward;
  backward.tape = context.tape();
  backward.loss = scaled.tensor;
  backward.scale = first.engine_->exact_mean() ? 1 : scaled.scale;
  backward.seed = scaled.seed;
  backward.uses = first.membership_.active().self;
  backward.leader = first.membership_.active().first;
  std::vector<actors::BackwardModel> parts;
  for (ModelCore* model : models) {
    model->discarded_ = false;
    parts.push_back({model->engine_.get(), model->synced_});
  }
  const actors::CallNote::Scope call(first.rank_.strand().call(), "Backward",
                                     {});
  // It may go through models that are not trained at present.
  for (ModelCore* model : first.rank_.models()) {
    if (model->leader_ == nullptr) continue;
    const bool trains = std::count(models.begin(), models.end(), model) > 0;
    model->leader_->BeginBackward(root.tensor, trains);
  }
  TROUPE_RETURN_IF_ERROR(actors::JointBackward(parts).Run(backward));
  for (ModelCore* model : models) {
    if (model->leader_ == nullptr) continue;
    TROUPE_RETURN_IF_ERROR(model->leader_->EndBackward());
  }
  return absl::OkStatus();
}

void ModelCore::Step(const CallPlace& place, std::optional<double> rate) {
  const actors::CallNote::Scope call(rank_.strand().call(), "Step", place);
  optimizer_.TakeRate(rate);
  if (leader_ != nullptr) leader_->Step(place, optimizer_.last_rate());
  const absl::Status status = engine_->Step();
  if (!status.ok()) {
    throw base::StatusError(absl::Status(
        status.code(),
        absl::StrCat(actors::CallText("Step", place), ": ", status.message())));
  }
  rank_.BeginStep();
}

void ModelCore::ZeroGrad() {
  base::OrThrow(engine_->ZeroGrad());
  if (leader_ != nullptr) leader_->Discard();
  discarded_ = true;
}

std::vector<std::string> ModelCore::TrainedNames() {
  std::vector<std::string> names;
  for (const nn::Parameter* parameter : module_->Parameters()) {
    if (parameter->requires_grad) names.push_back(parameter->name);
  }
  return names;
}

std::int64_t ModelCore::draws() {
  return rank_.context().random().value_or(nn::StepPosition()).step;
}

void ModelCore::SetDraws(std::int64_t step) {
  nn::StepPosition draws =
      rank_.context().random().value_or(nn::StepPosition());
  draws.step = step - 1;
  rank_.context().set_random(draws);
  rank_.BeginStep();
}

// --- EngineHost ---

void ModelCore::Launch(int action, pipeline::GroupId group,
                       const comm::Collective& collective,
                       const comm::Event& after) {
  started_.Start({engine_->step(), action}, groups_.HandleOf(group), collective,
                 after, engine_->reduces_on_device());
}

void ModelCore::Send(int, bool, int, const nn::TensorList&,
                     const base::Event&) {
  TROUPE_CHECK(false, "a loop sends nothing to other stages");
}

// --- StrandWait ---

bool ModelCore::EndSome() { return started_.EndSome(*engine_); }

std::vector<ModelCore*> ModelCore::ModelsInFlight() {
  std::vector<ModelCore*> models = {this};
  for (ModelCore* model : rank_.models()) {
    const bool waits = model->hook_ != nullptr && model->hook_->running();
    if (model != this && model->reduces() && !waits) models.push_back(model);
  }
  return models;
}

void ModelCore::AwaitNews() {
  if (EndSome()) return;
  if (started_.empty()) return rank_.strand().wait().AwaitNews();
  const std::vector<ModelCore*> models = ModelsInFlight();
  std::vector<actors::StartedIn> started;
  for (ModelCore* model : models) {
    started.push_back(model->started_.Oldest());
  }
  // Errors are those of the collectives, for EndSome().
  rank_.strand().AwaitAny(started);
  for (ModelCore* model : models) {
    if (model->EndSome() && model != this) {
      base::OrThrow(model->engine_->GoOn());
    }
  }
}

void ModelCore::TakeNews(bool) {
  if (nn::DeviceQueues* const queues = rank_.kernels().queues()) {
    queues->Progress();  // collectives whose last rank has come
  }
  started_.Drive();
  EndSome();
  if (rank_.strand().shares_thread()) {
    rank_.strand().wait().TakeNews(/*expected=*/false);
    EndSome();
  }
}

absl::Status ModelCore::RunInline(comm::Communicator& comm,
                                  const comm::Collective& collective) {
  return rank_.strand().Run(comm, collective);
}

}  // namespace troupe
