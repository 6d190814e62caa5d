#include "actors/engine/recording/graph_choice.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace troupe::actors {
namespace {

double Median(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::string GraphChoice::Verdict::ToString() const {
  return absl::StrFormat("steps run %s: %.3g ms each, %.3g ms %s",
                         graph ? "as a graph" : "one op after the other",
                         1e3 * (graph ? graph_seconds : eager_seconds),
                         1e3 * (graph ? eager_seconds : graph_seconds),
                         graph ? "one op after the other" : "as a graph");
}

GraphChoice::Way GraphChoice::Next() const {
  if (eager_for_good_) return Way::kEager;
  if (captured_) return Way::kGraph;
  const int before = kWarmUpSteps + (measure_ ? kTimedSteps : 0);
  return eager_steps_ < before ? Way::kEager : Way::kCapture;
}

void GraphChoice::NoteStep(Way way) {
  if (way == Way::kEager) ++eager_steps_;
  if (way == Way::kCapture) captured_ = true;
  if (way == Way::kGraph) ++graph_steps_;
}

bool GraphChoice::WantsTime(Way way) const {
  if (!measure_ || decided_ || eager_for_good_) return false;
  return way == Way::kEager ? eager_steps_ >= kWarmUpSteps
                            : way == Way::kGraph && graph_steps_ < kTimedSteps;
}

void GraphChoice::NoteTime(Way way, double seconds) {
  (way == Way::kEager ? eager_ : graph_).push_back(seconds);
}

std::optional<GraphChoice::Verdict> GraphChoice::TakeVerdict() {
  if (decided_ || eager_.empty() ||
      graph_.size() < static_cast<std::size_t>(kTimedSteps)) {
    return std::nullopt;
  }
  decided_ = true;
  Verdict verdict;
  verdict.eager_seconds = Median(eager_);
  verdict.graph_seconds = Median(graph_);
  verdict.graph = verdict.graph_seconds <= verdict.eager_seconds;
  eager_for_good_ = !verdict.graph;
  return verdict;
}

}  // namespace troupe::actors
