#include "actors/engine/recording/step_graph.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

StepGraphs::Shape* StepGraphs::ShapeOf(const StepBatches& batches) {
  for (const auto& shape : shapes_) {
    if (shape->inputs.Fit(batches)) return shape.get();
  }
  // A rank may have no samples of a step: it has nothing to copy.
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
    // The graph was slower: frees its memory.
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
  auto graph = queues.EndCapture();  // always; its error has the cause
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

}  // namespace troupe::actors
