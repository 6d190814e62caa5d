#include "actors/supervision/step_window.h"

#include <algorithm>

namespace troupe::actors {
namespace {

// Target duration of a window of steps. Up to two windows are granted ahead, so
// a stop takes effect within about twice this time.
constexpr double kWindowSeconds = 0.03;

}  // namespace

void StepWindow::Adapt(std::int64_t committed, double seconds) {
  if (committed <= step_) return;
  const double pace = (seconds - seconds_) / double(committed - step_);
  const double fits = pace > 0 ? kWindowSeconds / pace : 1e9;
  steps_ =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(fits, 1e9)),
                               1, std::min(2 * steps_, max_));
  step_ = committed;
  seconds_ = seconds;
}

}  // namespace troupe::actors
