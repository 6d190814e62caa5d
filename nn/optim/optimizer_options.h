// Options of all optimizers: a schedule, parameter groups, clipping of
// gradients, f32 master values, averages of the parameters.
//
//   AdamOptions adam;
//   adam.common.schedule = LrSchedule::Cosine(/*steps=*/10000);
//   adam.common.groups = {NoDecayGroup()};      // biases and norms
//   adam.common.clip_grad_norm = 1;

#ifndef NN_OPTIM_OPTIMIZER_OPTIONS_H_
#define NN_OPTIM_OPTIMIZER_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "nn/optim/lr_schedule.h"
#include "nn/optim/parameter_groups.h"

namespace troupe::nn {

struct OptimizerOptions {
  LrSchedule schedule = {};                 // lr is multiplied by its factor
  std::vector<ParameterGroup> groups = {};  // the first match applies
  // Whether to keep f32 values of 16-bit parameters ("master_value"), and all
  // states in f32: updates add to them, and the parameters are their roundings
  // (Micikevicius et al. 2018, arXiv:1710.03740).
  bool f32_master = false;
  // Whether updates compute bf16 parameters in f32 and round them at random
  // (Gupta et al. 2015, arXiv:1502.02551; Zamirai et al. 2020,
  // arXiv:2010.06192): an update smaller than the last place is then lost most
  // of the time, and a whole place the other times. It needs no f32 copy;
  // states are f32. Draws depend on the seed, the update, the parameter's name
  // and the element's index. Not for f16, and in place of f32_master.
  bool stochastic_rounding = false;
  std::uint64_t rounding_seed = 0;
  // Whether to skip a step with a gradient that is not finite, as under too
  // large a loss scale. A skipped step still counts for schedules, but not as
  // an update: neither for bias corrections nor as SGD's first one.
  bool skip_nonfinite = false;
  // Limits, if above 0, on the norm of all gradients
  // (torch.nn.utils.clip_grad_norm_) and on the magnitude of each of their
  // elements (clip_grad_value_). At most one of them may be set.
  double clip_grad_norm = 0;
  double clip_grad_value = 0;
  // If above 0: keeps averages of the parameters ("ema_value", f32 for 16-bit
  // parameters). They begin as the first values; after each update
  //     average = ema_decay * average + (1 - ema_decay) * parameter
  double ema_decay = 0;

  // kInvalidArgument: a value out of range, or an error in the schedule or the
  // groups. Errors name the field (base/field_error.h).
  absl::Status Validate() const;
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_OPTIMIZER_OPTIONS_H_
