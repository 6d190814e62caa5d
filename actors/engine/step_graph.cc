#include "actors/engine/step_graph.h"

#include "absl/strings/str_cat.h"
#include "actors/engine/quiet_wait.h"
#include "actors/engine/step_runner.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "pipeline/action_rules.h"

namespace troupe::actors {

StepGraphs::Shape* StepGraphs::ShapeOf(const StepBatches& batches) {
  for (const auto& shape : shapes_) {
    if (shape->inputs.Fit(batches)) return shape.get();
  }
  // A rank without samples of its own has nothing to copy.
  for (const data::Batch& batch : batches) {
    if (batch.size() == 0) return nullptr;
  }
  if (shapes_.size() == kGraphsMax) return nullptr;
  shapes_.push_back(std::make_unique<Shape>(
      options_.measure, GraphInputs(kernels_, options_.dtype, batches)));
  return shapes_.back().get();
}

StepGraphs::Way StepGraphs::Next(const StepBatches& batches) {
  now_ = refused_ ? nullptr : ShapeOf(batches);
  if (now_ == nullptr) return Way::kEager;
  CollectTimes();
  const Way way = now_->choice.Next();
  if (way == Way::kEager && now_->graph != nullptr) {
    // It was slower: its memory is for others.
    now_->losses.clear();
    now_->graph = nullptr;
  }
  return way;
}

absl::StatusOr<StepBatches> StepGraphs::Place(std::int64_t step,
                                              const StepBatches& batches) {
  return now_->inputs.Place(step, batches);
}

absl::StatusOr<std::unique_ptr<nn::DeviceGraph>> StepGraphs::Record(
    const std::function<absl::Status()>& walk) {
  nn::DeviceQueues& queues = *kernels_.queues();
  TROUPE_RETURN_IF_ERROR(queues.BeginCapture());
  const absl::Status walked = walk();
  auto graph = queues.EndCapture();  // in any case; and it knows the cause
  if (graph.ok() && !walked.ok()) return walked;
  return graph;
}

bool StepGraphs::Capture(const std::function<absl::Status()>& walk) {
  absl::StatusOr<std::unique_ptr<nn::DeviceGraph>> graph = Record(walk);
  if (!graph.ok()) {
    Refuse(graph.status());
    return false;
  }
  now_->graph = *std::move(graph);
  if (!options_.measure) Tell("steps run as a graph");
  return true;
}

void StepGraphs::Refuse(const absl::Status& why) {
  now_->choice.Refuse();
  refused_ = refused_ || absl::IsUnimplemented(why);
  Tell(absl::StrCat("steps run one op after the other, not as a graph: ",
                    why.message()));
}

void StepGraphs::BeginStep(Way way) {
  begin_ = now_ != nullptr && now_->choice.WantsTime(way)
               ? kernels_.queues()->Mark(nn::Queue::kCompute)
               : nullptr;
}

void StepGraphs::EndStep(Way way) {
  if (now_ == nullptr) return;
  now_->choice.NoteStep(way);
  if (begin_ == nullptr) return;
  auto end = kernels_.queues()->Mark(nn::Queue::kCompute);
  if (end == nullptr) return;
  timed_.push_back({now_, way, std::move(begin_), std::move(end)});
}

void StepGraphs::CollectTimes() {
  while (!timed_.empty()) {
    const Timed& first = timed_.front();
    const auto seconds = first.end->SecondsSince(*first.begin);
    if (!seconds.has_value()) return;
    GraphChoice& choice = first.shape->choice;
    choice.NoteTime(first.way, *seconds);
    timed_.pop_front();
    if (auto verdict = choice.TakeVerdict()) Tell(verdict->ToString());
  }
}

// --- What StepRunner does with graphs. ---

bool StepRunner::RecordsSteps() const {
  const JobSpec& spec = *setup_.spec;
  if (spec.cuda_graphs == "off" || kernels_->queues() == nullptr) return false;
  // What waits for another rank waits on the host, but where NCCL does it.
  // Ranks that choose for themselves could choose differently.
  const bool by_nccl = reduces_on_device_ &&
                       setup_.plan->reduction_order == pipeline::kAnyReduction;
  const bool has_peers = setup_.groups->world->size() > 1;
  if (has_peers && !(by_nccl && spec.cuda_graphs == "on")) return false;
  for (const pipeline::Action& action : train_.cursor.table().actions) {
    if (pipeline::IsSend(action.kind) || pipeline::IsReceive(action.kind)) {
      return false;
    }
  }
  return axes_.empty() && !tail_.has_value();
}

void StepRunner::MakeGraphs() {
  if (!RecordsSteps()) return;
  const JobSpec& spec = *setup_.spec;
  StepGraphs::Options options;
  options.measure = spec.cuda_graphs != "on";
  options.dtype = setup_.plan->data_dtype;
  if (spec.note) {
    options.note = [note = spec.note,
                    rank = setup_.rank](const std::string& line) {
      note(absl::StrCat("rank ", rank, ": ", line));
    };
  }
  graphs_.emplace(*kernels_, std::move(options));
}

absl::Status StepRunner::RunTrainStep(std::int64_t step, StepBatches batches) {
  StepGraphs::Way way = graphs_->Next(batches);
  graphs_->BeginStep(way);
  if (way == StepGraphs::Way::kCapture) {
    TROUPE_ASSIGN_OR_RETURN(const bool captured, CaptureStep(step, batches));
    if (!captured) way = StepGraphs::Way::kEager;
  }
  if (way == StepGraphs::Way::kEager) {
    TROUPE_RETURN_IF_ERROR(
        RunEagerly(StepKind::kTrain, step, std::move(batches)));
  } else {
    TROUPE_RETURN_IF_ERROR(
        LaunchStep(step, batches, /*begun=*/way == StepGraphs::Way::kCapture));
  }
  graphs_->EndStep(way);
  return absl::OkStatus();
}

absl::StatusOr<bool> StepRunner::CaptureStep(std::int64_t step,
                                             const StepBatches& batches) {
  absl::StatusOr<StepBatches> placed = graphs_->Place(step, batches);
  if (!placed.ok()) {
    graphs_->Refuse(placed.status());
    return false;
  }
  TROUPE_RETURN_IF_ERROR(Begin(StepKind::kTrain, step, *std::move(placed)));
  for (const auto& chunk : chunks_) chunk->DrawAt(graphs_->draws());
  trace_.Mute();
  // All of before is done: a queue that waits for a library is not recorded,
  // and all ranks are to record this step.
  events_->AwaitAllUpdates();
  const base::Event before = nn::Record(*kernels_, nn::Queue::kCompute);
  while (!before.ready()) wait_->AwaitNews();
  const QuietWait::Scope quiet(quiet_wait_);
  const bool captured = graphs_->Capture([this]() -> absl::Status {
    TROUPE_RETURN_IF_ERROR(Walk());
    TROUPE_RETURN_IF_ERROR(loss().Settle());
    events_->AwaitAllUpdates();
    return absl::OkStatus();
  });
  if (captured) graphs_->KeepLosses(loss().TakeChecked());
  return captured;
}

absl::Status StepRunner::LaunchStep(std::int64_t step,
                                    const StepBatches& batches, bool begun) {
  if (!begun) {
    TROUPE_ASSIGN_OR_RETURN(StepBatches placed, graphs_->Place(step, batches));
    TROUPE_RETURN_IF_ERROR(Begin(StepKind::kTrain, step, std::move(placed)));
  }
  trace_.BeginGraph();
  // What the step before left is on its way to the host.
  loss().AwaitCopied();
  TROUPE_RETURN_IF_ERROR(graphs_->Launch());
  loss().NoteLaunched();
  loss().Check(graphs_->losses());
  trace_.EndGraph();
  return EndStep(loss(), StepKind::kTrain, step);
}

}  // namespace troupe::actors
