#include "troupe/model_core.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/engine/loop/joint_backward.h"
#include "base/check.h"
#include "base/status_error.h"
#include "nn/kernels/device_queues.h"
#include "nn/ops/arithmetic.h"
#include "pipeline/mesh.h"
#include "pipeline/parameter_plan.h"
#include "pipeline/plan_groups.h"
#include "troupe/hook_runner.h"
#include "troupe/model.h"

namespace troupe {
namespace {

// Number of chunks that the rank runs between two pieces of a backward.
constexpr int kChunksPerPiece = 8;

}  // namespace

ModelCore::ModelCore(Rank& rank, std::unique_ptr<nn::Module> module)
    : rank_(rank), module_(std::move(module)) {
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

void ModelCore::Abandon(const absl::Status& why) {
  for (const InFlight& collective : in_flight_) {
    if (!collective.done.ready()) collective.group->Abort(why);
  }
}

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
  setup.static_graph = distribution.static_graph;
  setup.delayed_buckets = pipeline::DelayedBuckets(plan, distribution.delayed);
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
  hands_over_ = ranks.size() > 1 && rank_.strand().HandsOver(bytes);
}

void ModelCore::Distribute(const Distribution& distribution) {
  if (attached_ || distributed_) {
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
    base::OrThrow(kernels.Copy(value, values.back()));
  });
  engine_.reset();
  MakeEngine(distribution, rank_.Axis("dp").ranks());
  std::size_t next = 0;
  each([&](Tensor value) {
    base::OrThrow(kernels.Copy(values[next++], value));
  });
  distributed_ = true;
}

void ModelCore::BroadcastParameters(int root) {
  const actors::ChunkParameters& parameters = engine_->parameters();
  for (int i = 0; i < parameters.num_arenas(); ++i) {
    rank_.Axis("dp").Broadcast(parameters.arena(i).values(), root);
  }
  values_root_ = root;
}

Var ModelCore::Forward(const Var& x) {
  if (!rank_.context().training() || !rank_.records()) return (*module_)(x);
  if (observer_ != nullptr) base::OrThrow(observer_->OnForward(*this, x));
  if (synced_) SyncBuffers();
  Var y = (*module_)(x);
  if (observer_ != nullptr) observer_->AfterForward(*this, y);
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
  in_flight_.push_back(
      {engine_->step(), action, &group, done, std::move(then), false});
}

void ModelCore::Attach(
    const std::function<std::unique_ptr<nn::Optimizer>()>& make) {
  base::OrThrow(engine_->AttachOptimizer(make));
  attached_ = true;
  const actors::ChunkParameters& parameters = engine_->parameters();
  master_reads_.Attach(parameters, rank_.kernels());
  if (!values_root_.has_value()) return;
  // Ranks may have read files or not.
  for (int i = 0; i < parameters.num_arenas(); ++i) {
    const Tensor* const master = MasterValuesOf(parameters.arena(i));
    if (master != nullptr) rank_.Axis("dp").Broadcast(*master, *values_root_);
  }
}

void ModelCore::OnRead(const nn::Parameter& parameter,
                       SavedModel::ReadFn read) {
  master_reads_.Add(parameter, std::move(read), rank_.kernels(),
                    attached_ ? &engine_->parameters() : nullptr);
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
  // Models under one Join() have the same observer, factor and active ranks.
  const ModelCore& first = *models[0];
  nn::Context& context = first.rank_.context();
  for (const ModelCore* model : models) {
    if (model->observer_ == first.observer_) continue;
    return absl::FailedPreconditionError(
        "the loss depends on the parameters of several models, and one of them "
        "is under Join(), where a rank that has ended could not follow; give "
        "Join() all of them, detach the output of one, or put them into one "
        "module");
  }
  if (first.observer_ != nullptr) {
    TROUPE_RETURN_IF_ERROR(first.observer_->OnBackward(models, root.tensor));
  }
  actors::LoopBackward backward;
  backward.tape = context.tape();
  backward.loss = root.tensor;
  backward.scale =
      first.engine_->exact_mean() ? 1 : root.scale * first.gradient_factor_;
  backward.seed = root.seed;
  if (root.seed.defined() && first.gradient_factor_ != 1) {
    backward.seed = nn::ops::Scale(context, root.seed, first.gradient_factor_);
    TROUPE_RETURN_IF_ERROR(context.status());
  }
  backward.uses = first.active_.self;
  backward.leader = first.active_.first;
  std::vector<actors::BackwardModel> parts;
  for (ModelCore* model : models) {
    model->discarded_ = false;
    parts.push_back({model->engine_.get(), model->synced_});
  }
  const actors::CallNote::Scope call(first.rank_.strand().call(), "Backward",
                                     {});
  return actors::JointBackward(parts).Run(backward);
}

void ModelCore::Step(const CallPlace& place, std::optional<double> rate) {
  const actors::CallNote::Scope call(rank_.strand().call(), "Step", place);
  if (use_rate_) last_rate_ = use_rate_(rate);
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
  discarded_ = true;
}

// --- EngineHost ---

void ModelCore::Launch(int action, pipeline::GroupId group,
                       const comm::Collective& collective,
                       const comm::Event& after) {
  const std::shared_ptr<comm::Communicator>& comm = groups_.HandleOf(group);
  // One of devices is work of this rank's device, which only this strand calls.
  const bool on_device = engine_->reduces_on_device();
  const base::Event done =
      hands_over_ && !on_device
          ? rank_.strand().HandOver(comm, collective, after)
          : base::OrThrow(comm->Start(collective, after));
  in_flight_.push_back({engine_->step(), action, comm.get(), done, nullptr,
                        hands_over_ || on_device});
}

void ModelCore::Send(int, bool, int, const nn::TensorList&,
                     const base::Event&) {
  TROUPE_CHECK(false, "a loop sends nothing to other stages");
}

// --- StrandWait ---

bool ModelCore::EndSome() {
  bool ended = false;
  for (auto next = in_flight_.begin(); next != in_flight_.end();) {
    if (!next->done.ready()) {
      ++next;
      continue;
    }
    const InFlight collective = *next;
    next = in_flight_.erase(next);
    const absl::Status status = collective.done.status();
    if (status.ok() && collective.then) base::OrThrow(collective.then());
    base::OrThrow(status.ok()
                      ? engine_->CollectiveDone(
                            collective.step, collective.action, collective.done)
                      : engine_->CollectiveFailed(collective.step,
                                                  collective.action, status));
    ended = true;
  }
  return ended;
}

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
  if (in_flight_.empty()) return rank_.strand().wait().AwaitNews();
  const std::vector<ModelCore*> models = ModelsInFlight();
  std::vector<actors::StartedIn> started;
  for (ModelCore* model : models) {
    const InFlight& oldest = model->in_flight_.front();
    started.push_back({oldest.group, oldest.done, !oldest.handed_over});
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
  for (int i = 0; i < kChunksPerPiece && !in_flight_.empty(); ++i) {
    const InFlight& oldest = in_flight_.front();
    if (oldest.handed_over || !oldest.group->Progress()) break;
  }
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

// --- Trainable ---

Var Trainable::operator()(const Var& x) const { return core_->Forward(x); }

Rank& Trainable::rank() const { return core_->rank(); }

nn::Module& Trainable::module() const { return core_->module(); }

std::function<void(SavedModel::ReadFn read)> Trainable::WatchReads(
    const nn::Parameter& parameter) const {
  return [core = std::weak_ptr<ModelCore>(core_),
          &parameter](SavedModel::ReadFn read) {
    const std::shared_ptr<ModelCore> locked = core.lock();
    if (locked != nullptr) locked->OnRead(parameter, std::move(read));
  };
}

std::shared_ptr<ModelCore> PlaceModule(Rank& rank,
                                       std::unique_ptr<nn::Module> module) {
  if (module == nullptr) {
    throw base::StatusError(absl::InvalidArgumentError(
        "the std::unique_ptr of a model's module is null; pass a module"));
  }
  // Peers use the gradients until their reductions have ended, which the end of
  // the program waits for, as for all that was started in its groups.
  const auto end = [](ModelCore* core) {
    std::unique_ptr<ModelCore> ended(core);
    if (core->reduces()) core->rank().FinishLater(std::move(ended));
  };
  return std::shared_ptr<ModelCore>(new ModelCore(rank, std::move(module)),
                                    end);
}

void AverageGradients(const Trainable& model, CallPlace place) {
  actors::LoopEngine& engine = model.core().engine();
  base::OrThrow(engine.AwaitGradients());
  const actors::ChunkParameters& parameters = engine.parameters();
  for (int i = 0; i < parameters.num_arenas(); ++i) {
    const nn::ParameterArena& arena = parameters.arena(i);
    for (int k = 0; k < arena.num_buckets(); ++k) {
      model.rank().world().AllReduce(arena.BucketGrads(k), ReduceOp::kAvg,
                                     place);
    }
  }
  // A parameter that another rank has used has a gradient here, too.
  actors::UseMarks& uses = engine.uses();
  model.rank().world().AllReduce(base::OrThrow(uses.Publish()), ReduceOp::kSum,
                                 place);
  uses.NoteSummed(base::Event());
  base::OrThrow(uses.TakeSum());
}

}  // namespace troupe
