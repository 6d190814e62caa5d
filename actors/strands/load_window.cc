#include "actors/strands/load_window.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::actors {
namespace {

constexpr std::int64_t kChunkBytes = 1 << 20;
constexpr std::int64_t kChunkStepsMax = 256;

}  // namespace

LoadWindow::LoadWindow(const Options& options)
    : options_(options),
      end_(options.end),
      next_request_(options.first),
      next_run_(options.first) {}

std::optional<LoadRequest> LoadWindow::NextRequest() {
  const std::int64_t limit =
      std::max<std::int64_t>(options_.ahead_max, 2 * chunk_);
  if (next_request_ >= end_ || ahead_ >= limit) return std::nullopt;
  // The first response shows how large a step is.
  if (!chunk_chosen_ && requests_ > 0) return std::nullopt;
  const LoadRequest request = {options_.kind, next_request_,
                               std::min(chunk_, end_ - next_request_)};
  next_request_ += request.count;
  ahead_ += request.count;
  ++requests_;
  return request;
}

void LoadWindow::OnLoaded(Loaded loaded, std::int64_t asked) {
  --requests_;
  const auto there = static_cast<std::int64_t>(loaded.steps.size());
  if (there < asked) {
    end_ = std::min(end_, loaded.first + there);
    ahead_ -= asked - there;
  }
  if (there == 0) return;
  if (!chunk_chosen_) ChooseChunk(loaded);
  loaded_.push_back(std::move(loaded));
}

void LoadWindow::ChooseChunk(const Loaded& loaded) {
  std::int64_t bytes = 1;
  for (const StepBatches& step : loaded.steps) {
    for (const data::Batch& batch : step) {
      bytes += batch.inputs.bytes() + batch.targets.bytes();
    }
  }
  chunk_ = std::clamp<std::int64_t>(kChunkBytes / bytes, 1, kChunkStepsMax);
  chunk_chosen_ = true;
}

std::optional<RunSteps> LoadWindow::NextRun(std::int64_t until) {
  if (loaded_.empty() || loaded_.front().first >= until) return std::nullopt;
  Loaded& front = loaded_.front();
  RunSteps run;
  run.kind = front.kind;
  run.first = front.first;
  const auto there = static_cast<std::int64_t>(front.steps.size());
  const std::int64_t count =
      std::min({there, until - front.first, options_.run_steps_max});
  const auto end = front.steps.begin() + count;
  run.steps.assign(std::make_move_iterator(front.steps.begin()),
                   std::make_move_iterator(end));
  if (count == there) {
    loaded_.pop_front();
  } else {
    front.steps.erase(front.steps.begin(), end);
    front.first += count;
  }
  ahead_ -= count;
  next_run_ += count;
  return run;
}

}  // namespace troupe::actors
