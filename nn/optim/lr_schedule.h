// Learning rates as functions of the step (torch.optim.lr_scheduler): plain
// data, so that nothing is saved and a resumed run continues exactly.
//
//   LrSchedule schedule = LrSchedule::Cosine(/*steps=*/10000);
//   schedule.warmup_steps = 500;                 // then the cosine begins
//   SgdOptions sgd;
//   sgd.lr = 0.1;
//   sgd.common.schedule = schedule;              // lr(t) = 0.1 * Factor(t)
//   schedule.Factor(0);                          // 1/3: warm-up begins there
//
// t counts steps from 0; with warm-up, the schedule's own steps count from its
// end (SequentialLR of a LinearLR and the schedule). A schedule with an end
// keeps its last value after it; PyTorch's cosine rises again there, and
// OneCycleLR raises an error.
//
// Factor() allocates nothing; it uses the C library's pow and cos, whose last
// bit may differ between machines with other libraries.

#ifndef NN_OPTIM_LR_SCHEDULE_H_
#define NN_OPTIM_LR_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::nn {

struct LrSchedule {
  enum class Kind {
    kConstant,     // 1
    kStep,         // gamma ^ (t / step_size), rounded down
    kMultiStep,    // gamma ^ (number of milestones <= t)
    kExponential,  // gamma ^ t
    kCosine,       // falls from 1 to min_factor in `steps`
    kLinear,       // changes from 1 to min_factor in `steps`
    kOneCycle,     // up, then down, in `steps`; lr is the largest rate
    kPolynomial,   // falls to min_factor in `steps`: (1 - t / steps) ^ power
    kInverseSqrt,  // sqrt(w / (w + t)) with w = warmup_steps, at least 1
  };
  Kind kind = Kind::kConstant;
  double gamma = 0.1;
  std::int64_t step_size = 0;            // at least 1 for kStep
  std::vector<std::int64_t> milestones;  // ascending
  // T_max, total_iters, total_steps; at least 1 for a kind that HasEnd().
  std::int64_t steps = 0;
  double min_factor = 0;  // eta_min / lr, end_factor
  double power = 1;       // kPolynomial's exponent

  // One cycle (Smith and Topin 2018, arXiv:1708.07120), with PyTorch's
  // defaults: from 1 / div_factor up to 1 in the first `rise` of the steps,
  // down to 1 / div_factor / final_div_factor in the rest, on cosines. Momentum
  // stays as it is (PyTorch's cycle_momentum=False).
  double rise = 0.3;
  double div_factor = 25;
  double final_div_factor = 1e4;

  // Linear warm-up in front of any kind: from warmup_start (PyTorch's
  // start_factor) to 1.
  std::int64_t warmup_steps = 0;
  double warmup_start = 1.0 / 3;

  static LrSchedule Step(std::int64_t step_size, double gamma = 0.1);
  static LrSchedule MultiStep(std::vector<std::int64_t> milestones,
                              double gamma = 0.1);
  static LrSchedule Exponential(double gamma);
  static LrSchedule Cosine(std::int64_t steps, double min_factor = 0);
  static LrSchedule Linear(std::int64_t steps, double min_factor = 0);
  static LrSchedule OneCycle(std::int64_t steps);
  static LrSchedule Polynomial(std::int64_t steps, double power,
                               double min_factor = 0);
  // Vaswani et al. 2017, arXiv:1706.03762, sec. 5.3: after the warm-up, the
  // rate falls with the square root of the steps since the run began.
  static LrSchedule InverseSqrt(std::int64_t warmup_steps);

  // Whether the factor changes in `steps` steps and then stays.
  bool HasEnd() const;
  // Returns the number of steps, with the warm-up, after which the factor of a
  // kind that HasEnd() stays.
  std::int64_t End() const { return warmup_steps + steps; }

  // Returns the factor of the learning rate in step `t`; exactly 1 for a
  // constant without warm-up. The schedule must be valid.
  double Factor(std::int64_t t) const;

  // Returns kInvalidArgument that names the field (base/field_error.h).
  absl::Status Validate() const;
};

// "constant", "step", "multi_step", "exponential", "cosine", "linear",
// "one_cycle", "polynomial", "inverse_sqrt".
absl::string_view LrScheduleName(LrSchedule::Kind kind);
std::vector<std::string> LrScheduleNames();
absl::StatusOr<LrSchedule::Kind> ParseLrSchedule(absl::string_view name);

}  // namespace troupe::nn

#endif  // NN_OPTIM_LR_SCHEDULE_H_
