#include "troupe/plateau.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_error.h"

namespace troupe {
namespace {

void Check(bool good, absl::string_view what, double value) {
  if (good && std::isfinite(value)) return;
  throw base::StatusError(absl::InvalidArgumentError(
      absl::StrCat("PlateauOptions.", what, ", not ", value)));
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer,
                                     const PlateauOptions& options)
    : optimizer_(optimizer),
      options_(options),
      best_(options.maximize ? -std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::infinity()) {
  Check(options.factor >= 0 && options.factor < 1,
        "factor is at least 0 and below 1", options.factor);
  Check(options.patience >= 0, "patience is at least 0",
        static_cast<double>(options.patience));
  Check(options.threshold >= 0, "threshold is at least 0", options.threshold);
  Check(options.cooldown >= 0, "cooldown is at least 0",
        static_cast<double>(options.cooldown));
  Check(options.min_lr >= 0, "min_lr is at least 0", options.min_lr);
  Check(options.eps >= 0, "eps is at least 0", options.eps);
}

bool ReduceLROnPlateau::IsBetter(double metric) const {
  const double sign = options_.maximize ? 1 : -1;
  const double limit = options_.relative
                           ? best_ * (1 + sign * options_.threshold)
                           : best_ + sign * options_.threshold;
  return options_.maximize ? metric > limit : metric < limit;
}

void ReduceLROnPlateau::Step(double metric) {
  if (IsBetter(metric)) {
    best_ = metric;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (cooling_ > 0) {
    --cooling_;
    bad_ = 0;
  }
  if (bad_ <= options_.patience) return;
  bad_ = 0;
  cooling_ = options_.cooldown;
  const double before = optimizer_.lr();
  const double after = std::max(before * options_.factor, options_.min_lr);
  if (before - after > options_.eps) optimizer_.set_lr(after);
}

void ReduceLROnPlateau::AddTo(State& state) {
  state.Add("best", best_).Add("bad", bad_).Add("cooling", cooling_);
}

}  // namespace troupe
