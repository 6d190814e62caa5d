// Kernels of optimizers, which update flat ranges of parameters. All except
// AddSquares and those that write scalars are element-wise: an element gets the
// same bits wherever the range begins.
//
//   status = kernels.SetStepScalars(values, scalars);    // lr, step, ...
//   SgdRule rule;
//   rule.momentum = 0.9;
//   status = kernels.SgdUpdate(rule, scalars, grad, param, momentum);
//
// `grad` holds sums over the samples; g below is their mean, clipped by the
// step's grad_factor:
//     g = grad * grad_factor / (count * scale)
// Updates change nothing if the scalars' non_finite is not 0.

#ifndef NN_KERNELS_OPTIMIZER_H_
#define NN_KERNELS_OPTIMIZER_H_

#include <cstdint>

#include "nn/kernels/loss_scale.h"
#include "nn/kernels/op.h"
#include "nn/kernels/step_scalars.h"
#include "nn/random/philox.h"

namespace troupe::nn {

// A step of SGD as PyTorch defines it (torch.optim.SGD); lr and step are in the
// step's scalars:
//     g = g + weight_decay * p
//     buf = step == 0 ? g : momentum * buf + (1 - dampening) * g
//     g = nesterov ? g + momentum * buf : buf        (momentum != 0)
//     p = p - lr * lr_factor * g
struct SgdRule {
  double lr_factor = 1;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

// A step of Adam (Kingma and Ba 2015, arXiv:1412.6980) as PyTorch defines it
// (torch.optim.Adam, AdamW); c1, c2 are the scalars' bias corrections:
//     g = g + weight_decay * p                       (not decoupled)
//     p = p * (1 - lr * lr_factor * weight_decay)    (decoupled)
//     m = m + (1 - beta1) * (g - m)
//     v = beta2 * v + (1 - beta2) * g * g
//     v_max = max(v_max, v), in place of v below     (amsgrad)
//     p = p - lr * lr_factor / c1 * m / (sqrt(v / c2) + eps)
struct AdamRule {
  double lr_factor = 1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  // weight decay as in AdamW (arXiv:1711.05101)
  bool amsgrad = false;    // Reddi et al. 2018, arXiv:1904.09237
};

// A step of LARS (You et al. 2017, arXiv:1708.03888, algorithm 1) for one
// parameter. With the norms of all of p and g:
//     trust = trust_coefficient * |p| / (|g| + weight_decay * |p| + eps)
//     trust = 1 where |p| or |g| is 0
//     buf = momentum * buf + lr * lr_factor * trust * (g + weight_decay * p)
//     p = p - buf
struct LarsRule {
  double lr_factor = 1;
  double momentum = 0;
  double weight_decay = 0;
  double trust_coefficient = 0.001;
  double eps = 0;
};

// Draws that round a run of elements of a parameter: element i by draw
// `first` + i of the position {step of the scalars, 0, path}.
struct RoundingDraws {
  RandomKey key;
  std::uint32_t path = 0;  // HashName() of the parameter
  std::int64_t first = 0;  // index in the parameter
};

struct OptimizerKernels {
  // scalars = values; `scalars` f64[kNumStepScalars] wherever it appears.
  Op<absl::Status(const StepScalars& values, FixedOut scalars)> SetStepScalars{
      "SetStepScalars"};

  // counted = scalars, but step and bias corrections are those of a parameter
  // whose first update was the run's update `first`
  // (StepScalars::CountFrom).
  Op<absl::Status(double first, FixedIn scalars, FixedOut counted)> CountFrom{
      "CountFrom"};

  // Dynamic loss scaling (nn/kernels/loss_scale.h); `state` is
  // f64[kNumLossScaleState]. Applies LossScaleState::ApplyTo to `scalars`.
  Op<absl::Status(FixedIn state, FixedOut scalars)> ApplyLossScale{
      "ApplyLossScale"};
  // Applies LossScaleState::Update to `state`.
  Op<absl::Status(const LossScaleRule& rule, FixedIn scalars, FixedOut state)>
      UpdateLossScale{"UpdateLossScale"};

  // Ranges of equal length. `momentum` is undefined if rule.momentum is 0.
  Op<absl::Status(const SgdRule& rule, FixedIn scalars, In grad, InOut param,
                  InOut momentum)>
      SgdUpdate{"SgdUpdate"};

  // exp_avg is m, exp_avg_sq v; max_exp_avg_sq is undefined without amsgrad.
  Op<absl::Status(const AdamRule& rule, FixedIn scalars, In grad, InOut param,
                  InOut exp_avg, InOut exp_avg_sq, InOut max_exp_avg_sq)>
      AdamUpdate{"AdamUpdate"};

  // LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2): m and v as in
  // AdamRule, then
  //     direction = m / c1 / (sqrt(v / c2) + eps) + weight_decay * p
  Op<absl::Status(const AdamRule& rule, FixedIn scalars, In grad, In param,
                  InOut exp_avg, InOut exp_avg_sq, Out direction)>
      LambDirection{"LambDirection"};
  // With squares f64[2] = {|p|^2, |direction|^2} of the whole parameter:
  //     trust = |p| / |direction|, or 1 where either is 0
  //     p = p - lr * lr_factor * trust * direction
  Op<absl::Status(double lr_factor, FixedIn scalars, FixedIn squares,
                  In direction, InOut param)>
      LambUpdate{"LambUpdate"};

  // squares f64[2] = {|p|^2, |grad|^2}: grad, not its mean g.
  Op<absl::Status(const LarsRule& rule, FixedIn scalars, FixedIn squares,
                  In grad, InOut param, InOut momentum)>
      LarsUpdate{"LarsUpdate"};

  // sum[0] += sum of x^2, in f64, in an order that depends on the length and,
  // on a GPU, on whether x is aligned to 16 bytes.
  Op<absl::Status(In x, FixedOut sum)> AddSquares{"AddSquares"};

  // torch.nn.utils.clip_grad_norm_ for the norm of all mean gradients, which
  // follows from the scalars' square_sum:
  //     grad_factor = min(1, max_norm / (norm + 1e-6))
  Op<absl::Status(double max_norm, FixedOut scalars)> SetClipFactor{
      "SetClipFactor"};

  // torch.nn.utils.clip_grad_value_: clipped = grad with its mean g limited to
  // [-limit, limit]. clipped may be grad.
  Op<absl::Status(double limit, FixedIn scalars, In grad, Out clipped)>
      ClipGradient{"ClipGradient"};

  // average = average + (1 - decay) * (param - average)
  Op<absl::Status(double decay, FixedIn scalars, In param, InOut average)>
      EmaUpdate{"EmaUpdate"};

  // Rounds f32 to one of the two neighbours in bf16, the nearer the likelier,
  // so that the expected value is exact: the lower 16 bits of a draw are added
  // to those of the number, which are then cut off. Numbers of bf16,
  // infinities and NaN stay.
  Op<absl::Status(const RoundingDraws& draws, FixedIn scalars, FixedIn values,
                  FixedOut rounded)>
      RoundAtRandom{"RoundAtRandom"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = OptimizerKernels;
    VisitOps<K>(visit, &K::SetStepScalars, &K::CountFrom, &K::ApplyLossScale,
                &K::UpdateLossScale, &K::SgdUpdate, &K::AdamUpdate,
                &K::LambDirection, &K::LambUpdate, &K::LarsUpdate,
                &K::AddSquares, &K::SetClipFactor, &K::ClipGradient,
                &K::EmaUpdate, &K::RoundAtRandom);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_OPTIMIZER_H_
