#include "nn/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::nn {
namespace {

constexpr double kPi = 3.14159265358979323846;

// From `from` to `to` on half a cosine while `share` goes from 0 to 1.
double Anneal(double from, double to, double share) {
  return to + (from - to) / 2 * (std::cos(kPi * share) + 1);
}

// How much of `steps` is over after `t` of them, at most all.
double Share(std::int64_t t, std::int64_t steps) {
  return static_cast<double>(std::min(t, steps)) / static_cast<double>(steps);
}

double OneCycleFactor(const LrSchedule& schedule, std::int64_t t) {
  const double last = static_cast<double>(schedule.steps - 1);
  const double peak = schedule.rise * static_cast<double>(schedule.steps) - 1;
  const double at = std::min(static_cast<double>(t), last);
  const double first = 1 / schedule.div_factor;
  if (at <= peak) return Anneal(first, 1, at / peak);
  return Anneal(1, first / schedule.final_div_factor,
                (at - peak) / (last - peak));
}

absl::Status Bad(const char* field, double value, const char* must) {
  return absl::InvalidArgumentError(
      absl::StrCat("lr schedule: ", field, " is ", value, ", must be ", must));
}

}  // namespace

LrSchedule LrSchedule::Step(std::int64_t step_size, double gamma) {
  LrSchedule schedule;
  schedule.kind = Kind::kStep;
  schedule.step_size = step_size;
  schedule.gamma = gamma;
  return schedule;
}

LrSchedule LrSchedule::MultiStep(std::vector<std::int64_t> milestones,
                                 double gamma) {
  LrSchedule schedule;
  schedule.kind = Kind::kMultiStep;
  schedule.milestones = std::move(milestones);
  schedule.gamma = gamma;
  return schedule;
}

LrSchedule LrSchedule::Exponential(double gamma) {
  LrSchedule schedule;
  schedule.kind = Kind::kExponential;
  schedule.gamma = gamma;
  return schedule;
}

LrSchedule LrSchedule::Cosine(std::int64_t steps, double min_factor) {
  LrSchedule schedule;
  schedule.kind = Kind::kCosine;
  schedule.steps = steps;
  schedule.min_factor = min_factor;
  return schedule;
}

LrSchedule LrSchedule::Linear(std::int64_t steps, double min_factor) {
  LrSchedule schedule = Cosine(steps, min_factor);
  schedule.kind = Kind::kLinear;
  return schedule;
}

LrSchedule LrSchedule::OneCycle(std::int64_t steps) {
  LrSchedule schedule = Cosine(steps);
  schedule.kind = Kind::kOneCycle;
  return schedule;
}

double LrSchedule::Factor(std::int64_t t) const {
  if (t < warmup_steps) {
    return warmup_start + (1 - warmup_start) * Share(t, warmup_steps);
  }
  t -= warmup_steps;
  switch (kind) {
    case Kind::kConstant:
      return 1;
    case Kind::kStep:
      return std::pow(gamma, static_cast<double>(t / step_size));
    case Kind::kMultiStep: {
      const auto passed =
          std::upper_bound(milestones.begin(), milestones.end(), t);
      return std::pow(gamma, static_cast<double>(passed - milestones.begin()));
    }
    case Kind::kExponential:
      return std::pow(gamma, static_cast<double>(t));
    case Kind::kCosine:
      return Anneal(1, min_factor, Share(t, steps));
    case Kind::kLinear:
      return 1 + (min_factor - 1) * Share(t, steps);
    case Kind::kOneCycle:
      return OneCycleFactor(*this, t);
  }
  return 1;
}

absl::Status LrSchedule::Validate() const {
  const std::pair<const char*, double> counts[] = {
      {"step_size", step_size},
      {"steps", steps},
      {"div_factor", div_factor},
      {"final_div_factor", final_div_factor}};
  for (const auto& [field, value] : counts) {
    if (!(value >= 1) || std::isinf(value)) {
      return Bad(field, value, "at least 1");
    }
  }
  const std::pair<const char*, double> factors[] = {
      {"gamma", gamma},
      {"min_factor", min_factor},
      {"warmup_steps", warmup_steps},
      {"warmup_start", warmup_start}};
  for (const auto& [field, value] : factors) {
    if (!(value >= 0) || std::isinf(value)) {
      return Bad(field, value, "at least 0");
    }
  }
  if (!std::is_sorted(milestones.begin(), milestones.end()) ||
      (!milestones.empty() && milestones[0] < 0)) {
    return absl::InvalidArgumentError(
        "lr schedule: milestones must be steps in ascending order");
  }
  if (kind != Kind::kOneCycle) return absl::OkStatus();
  if (!(rise > 0 && rise < 1)) return Bad("rise", rise, "between 0 and 1");
  // Otherwise no step lies on the way up.
  if (rise * static_cast<double>(steps) <= 1) {
    return Bad("steps", static_cast<double>(steps), "more than 1 / rise");
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn
