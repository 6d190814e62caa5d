#include "actors/supervision/evaluation_track.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::actors {

EvaluationTrack::EvaluationTrack(std::shared_ptr<const JobSpec> spec,
                                 const std::optional<EvaluationState>& saved)
    : spec_(std::move(spec)) {
  if (saved && saved->metric == spec_->checkpoint.best_metric) state_ = *saved;
  state_.metric = spec_->checkpoint.best_metric;
}

bool EvaluationTrack::active() const {
  return spec_->checkpoint.keep_best || spec_->early_stop_patience > 0;
}

bool EvaluationTrack::IsBetter(double value, double than, double by) const {
  return state_.metric == kEvalLoss ? value < than - by : value > than + by;
}

void EvaluationTrack::Add(const EvaluationReport& report, bool counts) {
  const double value =
      state_.metric == kEvalLoss ? report.loss : report.accuracy;
  const auto improves_on = [&](double than, std::int64_t than_step, double by) {
    return std::isfinite(value) &&
           (than_step == 0 || IsBetter(value, than, by));
  };
  if (improves_on(state_.best, state_.best_step, /*by=*/0)) {
    state_.best = value;
    state_.best_step = report.step;
  }
  if (!counts) return;
  if (improves_on(state_.reference, state_.reference_step,
                  spec_->early_stop_min_delta)) {
    state_.reference = value;
    state_.reference_step = report.step;
    state_.waited = 0;
  } else {
    ++state_.waited;
  }
}

bool EvaluationTrack::HasConverged() const {
  return spec_->early_stop_patience > 0 &&
         state_.waited >= spec_->early_stop_patience;
}

std::string EvaluationTrack::ToString() const {
  const std::string by =
      spec_->early_stop_min_delta > 0
          ? absl::StrCat(" by more than ", spec_->early_stop_min_delta)
          : "";
  std::string text =
      absl::StrCat(state_.metric, " has not improved", by, " in ",
                   state_.waited, " evaluation", state_.waited == 1 ? "" : "s");
  if (state_.best_step > 0) {
    absl::StrAppend(&text, "; the best, ", state_.best, ", was after step ",
                    state_.best_step);
  }
  return text;
}

std::optional<EvaluationState> EvaluationTrack::StateWith(bool due) const {
  if (!active()) return std::nullopt;
  EvaluationState state = state_;
  state.due = due;
  return state;
}

}  // namespace troupe::actors
