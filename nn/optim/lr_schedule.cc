#include "nn/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::nn {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Returns a value on half a cosine from `from` to `to` for a share from 0 to 1.
double Anneal(double from, double to, double share) {
  return to + (from - to) / 2 * (std::cos(kPi * share) + 1);
}

// Returns the share of `steps` that is over after `t` of them, at most 1.
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

template <auto kField>
absl::Status Bad(const LrSchedule& schedule, absl::string_view must) {
  return base::FieldError<kField>(absl::StrCat(
      base::FieldName<kField>(), " = ", schedule.*kField, ": must be ", must));
}

template <auto kField>
absl::Status AtLeast(double least, const LrSchedule& schedule) {
  const double value = schedule.*kField;
  if (value >= least && std::isfinite(value)) return absl::OkStatus();
  return Bad<kField>(schedule, absl::StrCat("at least ", least));
}

struct KindName {
  LrSchedule::Kind kind;
  const char* name;
};
constexpr KindName kKindNames[] = {
    {LrSchedule::Kind::kConstant, "constant"},
    {LrSchedule::Kind::kStep, "step"},
    {LrSchedule::Kind::kMultiStep, "multi_step"},
    {LrSchedule::Kind::kExponential, "exponential"},
    {LrSchedule::Kind::kCosine, "cosine"},
    {LrSchedule::Kind::kLinear, "linear"},
    {LrSchedule::Kind::kOneCycle, "one_cycle"},
    {LrSchedule::Kind::kPolynomial, "polynomial"},
    {LrSchedule::Kind::kInverseSqrt, "inverse_sqrt"},
};

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

LrSchedule LrSchedule::Polynomial(std::int64_t steps, double power,
                                  double min_factor) {
  LrSchedule schedule = Cosine(steps, min_factor);
  schedule.kind = Kind::kPolynomial;
  schedule.power = power;
  return schedule;
}

LrSchedule LrSchedule::InverseSqrt(std::int64_t warmup_steps) {
  LrSchedule schedule;
  schedule.kind = Kind::kInverseSqrt;
  schedule.warmup_steps = warmup_steps;
  return schedule;
}

bool LrSchedule::HasEnd() const {
  return kind == Kind::kCosine || kind == Kind::kLinear ||
         kind == Kind::kOneCycle || kind == Kind::kPolynomial;
}

double LrSchedule::Factor(std::int64_t t) const {
  TROUPE_CHECK(steps >= (HasEnd() ? 1 : 0), "LrSchedule.steps is not set");
  TROUPE_CHECK(step_size >= (kind == Kind::kStep ? 1 : 0),
               "LrSchedule.step_size is not set");
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
    case Kind::kPolynomial:
      return min_factor +
             (1 - min_factor) * std::pow(1 - Share(t, steps), power);
    case Kind::kInverseSqrt: {
      const double from =
          static_cast<double>(std::max<std::int64_t>(warmup_steps, 1));
      return std::sqrt(from / (from + static_cast<double>(t)));
    }
  }
  return 1;
}

absl::Status LrSchedule::Validate() const {
  for (const absl::Status& status : {
           AtLeast<&LrSchedule::step_size>(kind == Kind::kStep ? 1 : 0, *this),
           AtLeast<&LrSchedule::steps>(HasEnd() ? 1 : 0, *this),
           AtLeast<&LrSchedule::div_factor>(1, *this),
           AtLeast<&LrSchedule::final_div_factor>(1, *this),
           AtLeast<&LrSchedule::gamma>(0, *this),
           AtLeast<&LrSchedule::min_factor>(0, *this),
           AtLeast<&LrSchedule::power>(0, *this),
           AtLeast<&LrSchedule::warmup_steps>(0, *this),
           AtLeast<&LrSchedule::warmup_start>(0, *this),
       }) {
    if (!status.ok()) return status;
  }
  if (!std::is_sorted(milestones.begin(), milestones.end()) ||
      (!milestones.empty() && milestones[0] < 0)) {
    return base::FieldError<&LrSchedule::milestones>(
        absl::StrCat(base::FieldName<&LrSchedule::milestones>(),
                     ": must be steps in ascending order"));
  }
  if (kind != Kind::kOneCycle) return absl::OkStatus();
  if (!(rise > 0 && rise < 1)) {
    return Bad<&LrSchedule::rise>(*this, "between 0 and 1");
  }
  // Otherwise no step is in the rising part.
  if (rise * static_cast<double>(steps) <= 1) {
    return Bad<&LrSchedule::steps>(*this, absl::StrCat("more than ", 1 / rise));
  }
  return absl::OkStatus();
}

absl::string_view LrScheduleName(LrSchedule::Kind kind) {
  for (const KindName& known : kKindNames) {
    if (known.kind == kind) return known.name;
  }
  return "unknown";
}

std::vector<std::string> LrScheduleNames() {
  std::vector<std::string> names;
  for (const KindName& known : kKindNames) names.push_back(known.name);
  return names;
}

absl::StatusOr<LrSchedule::Kind> ParseLrSchedule(absl::string_view name) {
  for (const KindName& known : kKindNames) {
    if (known.name == name) return known.kind;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is no schedule of the learning rate; choose one of ",
      absl::StrJoin(LrScheduleNames(), ", ")));
}

}  // namespace troupe::nn
