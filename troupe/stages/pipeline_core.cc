#include "troupe/stages/pipeline_core.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_error.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/device_queues.h"
#include "pipeline/plan_groups.h"
#include "troupe/group.h"
#include "troupe/internal/gather_numbers.h"
#include "troupe/profile/op_recorder.h"
#include "troupe/stages/pipeline_plan.h"

namespace troupe {
namespace {

// Throws the error of a call, with the call in front.
void ThrowOfCall(const char* name, const CallPlace& place,
                 const absl::Status& status) {
  if (status.ok()) return;
  throw base::StatusError(absl::Status(
      status.code(),
      absl::StrCat(actors::CallText(name, place), ": ", status.message())));
}

}  // namespace

PipelineCore::PipelineCore(Rank& rank, const actors::JobModel& make,
                           const PipelineOptions& options)
    : rank_(rank),
      batch_(options.batch),
      plan_(MakePipelinePlan(rank, make, options)),
      started_(rank.strand()) {
  spec_.model = make;
  spec_.seed = rank.seed();
  spec_.dtype = plan_.data_dtype;
  spec_.stop_on_nan = false;
  ComparePlans(rank, plan_);
  MakeEngine();
}

PipelineCore::~PipelineCore() {
  Abandon(absl::CancelledError(absl::StrCat(
      "rank ", rank_.number(), " ended while its gradients were reduced")));
}

void PipelineCore::MakeEngine() {
  for (const pipeline::PlanGroup& group : pipeline::GroupsOf(plan_)) {
    const std::vector<int>& ranks = group.ranks;
    if (std::find(ranks.begin(), ranks.end(), rank_.number()) == ranks.end()) {
      continue;
    }
    groups_.Add(group, base::OrThrow(rank_.strand().MakeGroup(ranks)));
  }
  messages_ = std::make_unique<StageMessages>(rank_, plan_);
  actors::PipelineEngine::Setup setup;
  setup.rank = rank_.number();
  setup.spec = &spec_;
  setup.plan = &plan_;
  setup.kernels = rank_.shared_kernels();
  setup.groups = &groups_;
  setup.trace = &rank_.recorder();
  engine_ = base::OrThrow(actors::PipelineEngine::Create(setup, this, this));
  std::int64_t bytes = 0;
  for (int c = 0; c < engine_->chunk_count(); ++c) {
    const actors::ChunkParameters& parameters = engine_->chunk(c).parameters();
    for (int k = 0; k < parameters.num_buckets(); ++k) {
      bytes += static_cast<std::int64_t>(parameters.BucketGrads(k).bytes());
    }
  }
  master_reads_.resize(engine_->chunk_count());
  started_.set_hands_over(plan_.mesh.dp() > 1 &&
                          rank_.strand().HandsOver(bytes));
}

std::vector<nn::Module*> PipelineCore::stages() {
  std::vector<nn::Module*> stages;
  for (int c = 0; c < engine_->chunk_count(); ++c) {
    stages.push_back(&engine_->chunk(c).module());
  }
  return stages;
}

void PipelineCore::OnRead(int chunk, const nn::Parameter& parameter,
                          SavedModel::ReadFn read) {
  master_reads_[chunk].Add(
      parameter, std::move(read), rank_.kernels(),
      has_optimizer_ ? &engine_->chunk(chunk).parameters() : nullptr);
}

// --- Calls of the program ---

void PipelineCore::SetLoss(const actors::JobLoss& loss) {
  if (!loss) {
    throw base::StatusError(absl::InvalidArgumentError(
        "the loss function is null; pass one such as "
        "nn::ops::CrossEntropyLoss()"));
  }
  spec_.loss = loss;
}

actors::StepBatches PipelineCore::Batches(const Tensor& inputs,
                                          const Tensor* targets) {
  const std::vector<int> own = plan_.StagesOf(rank_.number());
  const bool reads_inputs = own.front() == 0;
  const bool reads_targets = targets != nullptr && engine_->has_outputs();
  const auto refuse = [this](const char* what, const Tensor& tensor) {
    throw base::StatusError(absl::InvalidArgumentError(
        absl::StrCat("the ", what, " are ",
                     tensor.defined() ? tensor.ToString() : "undefined",
                     " where PipelineOptions.batch is ", batch_.ToString(),
                     "; pass a whole batch")));
  };
  if (reads_inputs && (!inputs.defined() || inputs.shape() != batch_)) {
    refuse("inputs", inputs);
  }
  if (reads_targets && (!targets->defined() || targets->shape().rank() == 0 ||
                        targets->shape()[0] != batch_[0])) {
    refuse("targets", *targets);
  }
  actors::StepBatches batches;
  const std::int64_t size = plan_.micro_batch_size;
  const int replica = plan_.mesh.CoordsOf(rank_.number()).dp;
  for (int m = 0; m < plan_.micro_batches; ++m) {
    data::Batch batch;
    if (reads_inputs) batch.inputs = inputs.Slice(m * size, (m + 1) * size);
    if (reads_targets) {
      batch.targets = targets->Slice(m * size, (m + 1) * size);
    }
    batch.position = replica * batch_[0] + m * size;
    batch.global_batch_size = plan_.global_batch_size;
    batches.push_back(std::move(batch));
  }
  return batches;
}

double PipelineCore::Run(const Tensor& inputs, const Tensor& targets,
                         const actors::JobLoss& loss, const CallPlace& place) {
  const actors::CallNote::Scope call(rank_.strand().call(), "Run", place);
  ThrowOfCall("Run", place, engine_->CheckNoGradients("another Run() begins"));
  SetLoss(loss);
  actors::StepBatches batches = Batches(inputs, &targets);
  messages_->Begin(actors::StepKind::kTrain, engine_->step());
  const absl::StatusOr<actors::LossBits> bits =
      engine_->Run(std::move(batches));
  ThrowOfCall("Run", place, bits.status());
  AwaitSent();
  return bits->mean();
}

absl::Status PipelineCore::BeginEvaluation() {
  TROUPE_RETURN_IF_ERROR(engine_->CheckNoGradients("an evaluation runs"));
  return engine_->ShareBuffers();
}

void PipelineCore::Evaluate(
    actors::StepKind kind, actors::StepBatches batches,
    const std::function<void(const actors::LossBits&)>& visit) {
  for (data::Batch& batch : batches) {
    messages_->Begin(kind, engine_->step());
    const absl::StatusOr<actors::LossBits> bits =
        engine_->Evaluate(kind, std::move(batch));
    base::OrThrow(bits.status());
    visit(*bits);
  }
  AwaitSent();
}

double PipelineCore::Evaluate(const Tensor& inputs, const Tensor& targets,
                              const actors::JobLoss& loss,
                              const CallPlace& place) {
  const actors::CallNote::Scope call(rank_.strand().call(), "Evaluate", place);
  ThrowOfCall("Evaluate", place, BeginEvaluation());
  SetLoss(loss);
  actors::StepBatches batches = Batches(inputs, &targets);
  double sum = 0, count = 0;
  Evaluate(actors::StepKind::kEvaluate, std::move(batches),
           [&](const actors::LossBits& bits) {
             sum += actors::FromBits(bits.sum);
             count += actors::FromBits(bits.count);
           });
  // Ranks without the last stage have zeros.
  const std::vector<std::int64_t> all = base::OrThrow(
      GatherNumbers(rank_, rank_.world(),
                    {static_cast<std::int64_t>(actors::Bits(sum)),
                     static_cast<std::int64_t>(actors::Bits(count))}));
  sum = count = 0;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    sum += actors::FromBits(static_cast<std::uint64_t>(all[i]));
    count += actors::FromBits(static_cast<std::uint64_t>(all[i + 1]));
  }
  return sum / count;
}

Tensor PipelineCore::Predict(const Tensor& inputs, const CallPlace& place) {
  const actors::CallNote::Scope call(rank_.strand().call(), "Predict", place);
  ThrowOfCall("Predict", place, BeginEvaluation());
  actors::StepBatches batches = Batches(inputs, /*targets=*/nullptr);
  nn::Kernels& kernels = rank_.kernels();
  Tensor whole;
  std::int64_t row = 0;
  Evaluate(actors::StepKind::kPredict, std::move(batches),
           [&](const actors::LossBits&) {
             if (!engine_->has_outputs()) return;
             const Tensor part = engine_->TakeOutput();
             std::vector<std::int64_t> dims(part.shape().dims().begin(),
                                            part.shape().dims().end());
             const std::int64_t rows = dims[0];
             if (!whole.defined()) {
               dims[0] = rows * plan_.micro_batches;
               whole = base::OrThrow(Tensor::Create(
                   Shape(dims), part.dtype(), nn::HostAllocator(kernels)));
             }
             const Tensor rows_of = whole.Slice(row, row + rows);
             std::memcpy(rows_of.raw(), part.raw(), part.bytes());
             row += rows;
           });
  if (!whole.defined() || kernels.queues() == nullptr) return whole;
  return base::OrThrow(nn::CopyToDevice(kernels, nn::Queue::kCompute, whole));
}

// --- OptimizableCore ---

std::vector<std::string> PipelineCore::TrainedNames() {
  std::vector<std::string> names;
  for (const pipeline::StagePlan& stage : plan_.stages) {
    const std::set<int> frozen(stage.frozen.begin(), stage.frozen.end());
    for (int i = 0; i < static_cast<int>(stage.parameters.size()); ++i) {
      if (frozen.count(i) == 0) names.push_back(stage.parameters[i]);
    }
  }
  return names;
}

void PipelineCore::Attach(
    const std::function<std::unique_ptr<nn::Optimizer>()>& make) {
  base::OrThrow(engine_->AttachOptimizer(make));
  has_optimizer_ = true;
  for (int c = 0; c < engine_->chunk_count(); ++c) {
    master_reads_[c].Attach(engine_->chunk(c).parameters(), rank_.kernels());
  }
}

void PipelineCore::Step(const CallPlace& place, std::optional<double> rate) {
  const actors::CallNote::Scope call(rank_.strand().call(), "Step", place);
  if (use_rate_) use_rate_(rate);
  ThrowOfCall("Step", place, engine_->Step());
  rank_.BeginStep();
}

void PipelineCore::ZeroGrad() { base::OrThrow(engine_->ZeroGrad()); }

void PipelineCore::Finish() {
  while (reduces()) AwaitNews();
}

void PipelineCore::Abandon(const absl::Status& why) {
  started_.Abort(why);
  messages_->Abort(why);
}

// --- EngineHost ---

void PipelineCore::Launch(int action, pipeline::GroupId group,
                          const comm::Collective& collective,
                          const comm::Event& after) {
  started_.Start({engine_->step(), action}, groups_.HandleOf(group), collective,
                 after, engine_->reduces_on_device());
}

void PipelineCore::Send(int stage, bool forward, int micro_batch,
                        const nn::TensorList& tensors, const base::Event&) {
  messages_->Send(stage, forward, micro_batch, tensors);
}

// --- StrandWait ---

void PipelineCore::AwaitSent() {
  while (messages_->sending()) AwaitNews();
}

bool PipelineCore::TakeWhatCame() {
  bool any = started_.EndSome(*engine_);
  while (auto transfer = messages_->Take()) {
    base::OrThrow(engine_->Deliver(*transfer));
    any = true;
  }
  return any;
}

void PipelineCore::AwaitNews() {
  // The end of a message that was sent is news, too: its sender may wait for
  // nothing else (AwaitSent).
  if (TakeWhatCame() || messages_->DropSent()) return;
  std::vector<actors::StartedIn> started;
  if (!started_.empty()) started.push_back(started_.Oldest());
  messages_->AddTo(started);
  if (started.empty()) return rank_.strand().wait().AwaitNews();
  rank_.strand().AwaitAny(started);
  TakeWhatCame();
}

void PipelineCore::TakeNews(bool) {
  if (nn::DeviceQueues* const queues = rank_.kernels().queues()) {
    queues->Progress();  // collectives whose last rank has come
  }
  started_.Drive();
  messages_->Drive();
  TakeWhatCame();
  if (rank_.strand().shares_thread()) {
    rank_.strand().wait().TakeNews(/*expected=*/false);
    TakeWhatCame();
  }
}

absl::Status PipelineCore::RunInline(comm::Communicator& comm,
                                     const comm::Collective& collective) {
  return rank_.strand().Run(comm, collective);
}

}  // namespace troupe
