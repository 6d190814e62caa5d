#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

void AddSgd(const std::string& name, const SgdRule& rule, std::int64_t n,
            std::vector<OpCase>& all) {
  const bool has_momentum = rule.momentum != 0;
  OpCase sgd;
  sgd.name = absl::StrCat("sgd_", name, "_", n);
  sgd.inputs = {Normal({n}), Normal({n}), Normal({n})};
  sgd.outputs = {Normal({n})};
  if (has_momentum) sgd.outputs.push_back(Poison({n}));
  sgd.element_wise = true;
  sgd.run = [rule, has_momentum](Kernels& k, Inputs grads,
                                 Outputs out) -> absl::Status {
    StepScalars values;
    values.lr = 0.2;
    values.loss_count = 1.5;
    values.loss_scale = 2;
    Tensor none, scalars = HostScalars(StepScalars(), k.allocator());
    for (const Tensor& grad : grads) {
      TROUPE_RETURN_IF_ERROR(k.SetStepScalars(values, scalars));
      TROUPE_RETURN_IF_ERROR(k.SgdUpdate(rule, scalars, grad, out[0],
                                         has_momentum ? out[1] : none));
      values.step += 1;
    }
    return absl::OkStatus();
  };
  all.push_back(std::move(sgd));
}

void AddAllSgd(std::int64_t n, std::vector<OpCase>& all) {
  SgdRule plain;
  plain.lr_factor = 0.5;
  SgdRule decay = plain;
  decay.weight_decay = 0.01;
  SgdRule momentum = decay;
  momentum.momentum = 0.9;
  momentum.dampening = 0.1;
  SgdRule nesterov = decay;
  nesterov.momentum = 0.9;
  nesterov.nesterov = true;
  AddSgd("plain", plain, n, all);
  AddSgd("decay", decay, n, all);
  AddSgd("momentum", momentum, n, all);
  AddSgd("nesterov", nesterov, n, all);
}

// Adds three steps of `update`, called with the scalars and the gradients of
// each. `summed`: StepScalars::summed.
using Update = std::function<absl::Status(Kernels&, const Tensor& scalars,
                                          const Tensor& grad, Outputs)>;
void AddSteps(const std::string& name, std::int64_t n,
              std::vector<Operand> outputs, const Update& update,
              std::vector<OpCase>& all, double summed = 0) {
  OpCase steps;
  steps.name = absl::StrCat(name, "_", n);
  steps.inputs = {Normal({n}), Normal({n}), Normal({n})};
  steps.outputs = std::move(outputs);
  steps.element_wise = true;
  steps.run = [update, summed](Kernels& k, Inputs grads,
                               Outputs out) -> absl::Status {
    StepScalars values;
    values.lr = 0.2;
    values.summed = summed;
    values.grad_factor = 0.75;
    values.loss_count = 1.5;
    values.loss_scale = 2;
    Tensor scalars = HostScalars(StepScalars(), k.allocator());
    for (const Tensor& grad : grads) {
      values.bias_correction1 = 1 - std::pow(0.9, values.step + 1);
      values.bias_correction2 = 1 - std::pow(0.99, values.step + 1);
      TROUPE_RETURN_IF_ERROR(k.SetStepScalars(values, scalars));
      TROUPE_RETURN_IF_ERROR(update(k, scalars, grad, out));
      values.step += 1;
    }
    return absl::OkStatus();
  };
  all.push_back(std::move(steps));
}

void AddAdam(const std::string& name, bool decoupled, bool amsgrad,
             double weight_decay, std::int64_t n, std::vector<OpCase>& all) {
  AdamRule rule;
  rule.lr_factor = 0.5;
  rule.beta2 = 0.99;
  rule.weight_decay = weight_decay;
  rule.decoupled = decoupled;
  rule.amsgrad = amsgrad;
  std::vector<Operand> outputs = {Normal({n}), Zeros({n}), Zeros({n})};
  if (amsgrad) outputs.push_back(Zeros({n}));
  AddSteps(
      name, n, std::move(outputs),
      [rule](Kernels& k, const Tensor& scalars, const Tensor& grad,
             Outputs out) {
        Tensor none;
        return k.AdamUpdate(rule, scalars, grad, out[0], out[1], out[2],
                            rule.amsgrad ? out[3] : none);
      },
      all);
}

// Returns squares of norms, f64[2], in memory that the kernels may read.
Tensor Squares(Kernels& k, double first, double second) {
  return MakeTensor({2}, DType::kF64, {first, second}, k.allocator());
}

void AddLayerwise(std::int64_t n, std::vector<OpCase>& all) {
  AdamRule rule;
  rule.beta2 = 0.99;
  rule.weight_decay = 0.05;
  AddSteps(
      "lamb", n, {Normal({n}), Zeros({n}), Zeros({n}), Poison({n})},
      [rule](Kernels& k, const Tensor& scalars, const Tensor& grad,
             Outputs out) -> absl::Status {
        TROUPE_RETURN_IF_ERROR(k.LambDirection(rule, scalars, grad, out[0],
                                               out[1], out[2], out[3]));
        return k.LambUpdate(0.5, scalars, Squares(k, 2, 3), out[3], out[0]);
      },
      all);
  for (const double momentum : {0.0, 0.9}) {
    LarsRule lars;
    lars.lr_factor = 0.5;
    lars.momentum = momentum;
    lars.weight_decay = 0.05;
    lars.trust_coefficient = 0.5;
    lars.eps = 0.01;
    std::vector<Operand> outputs = {Normal({n})};
    if (momentum > 0) outputs.push_back(Zeros({n}));
    AddSteps(
        momentum > 0 ? "lars_momentum" : "lars", n, std::move(outputs),
        [lars](Kernels& k, const Tensor& scalars, const Tensor& grad,
               Outputs out) {
          Tensor none;
          return k.LarsUpdate(lars, scalars, Squares(k, 2, 3), grad, out[0],
                              lars.momentum > 0 ? out[1] : none);
        },
        all);
  }
}

void AddPasses(std::int64_t n, std::vector<OpCase>& all) {
  AddSteps(
      "clip_gradient", n, {Poison({n})},
      [](Kernels& k, const Tensor& scalars, const Tensor& grad, Outputs out) {
        return k.ClipGradient(0.2, scalars, grad, out[0]);
      },
      all);
  AddSteps(
      "ema_update", n, {Normal({n})},
      [](Kernels& k, const Tensor& scalars, const Tensor& grad, Outputs out) {
        return k.EmaUpdate(0.9, scalars, grad, out[0]);
      },
      all);
}

// Adds the errors of `n` numbers that are rounded by draws from `first` on:
// another draw gives an error that is larger or smaller by a unit in the last
// place.
void AddRounding(std::int64_t first, std::int64_t n, std::vector<OpCase>& all) {
  const auto f32 = [](Operand operand) {
    operand.dtype = DType::kF32;
    return operand;
  };
  Operand rounded = Poison({n});
  rounded.dtype = DType::kBF16;
  all.push_back(
      {absl::StrCat("round_at_random_", first, "_", n),
       {f32(Normal({n}))},
       {rounded, f32(Poison({n})), f32(Poison({n}))},
       [first](Kernels& k, Inputs in, Outputs out) -> absl::Status {
         StepScalars values;
         values.step = 3;
         Tensor scalars = HostScalars(StepScalars(), k.allocator());
         TROUPE_RETURN_IF_ERROR(k.SetStepScalars(values, scalars));
         const RoundingDraws draws = {RandomKey(/*seed=*/7, Purpose::kRounding),
                                      HashName("0.weight"), first};
         TROUPE_RETURN_IF_ERROR(k.RoundAtRandom(draws, scalars, in[0], out[0]));
         TROUPE_RETURN_IF_ERROR(k.Copy(out[0], out[1]));
         const Tensor minus = MakeTensor({1}, DType::kF64, {-1}, k.allocator());
         TROUPE_RETURN_IF_ERROR(k.Scale(in[0], minus, out[2]));
         return k.Add(out[1], out[2], out[2]);
       }});
}

void AddNorms(std::int64_t n, std::vector<OpCase>& all) {
  all.push_back({absl::StrCat("add_squares_", n),
                 {Normal({n})},
                 {{{1}, Operand::Fill::kNormal, DType::kF64, 0}},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.AddSquares(in[0], out[0]);
                 }});
}

// Adds updates whose gradients are not divided by a count.
void AddSummed(std::int64_t n, std::vector<OpCase>& all) {
  AddSteps(
      "sgd_summed", n, {Normal({n})},
      [](Kernels& k, const Tensor& scalars, const Tensor& grad, Outputs out) {
        Tensor none;
        return k.SgdUpdate(SgdRule(), scalars, grad, out[0], none);
      },
      all, /*summed=*/1);
  LarsRule lars;
  lars.weight_decay = 0.05;
  lars.trust_coefficient = 0.5;
  AddSteps(
      "lars_summed", n, {Normal({n})},
      [lars](Kernels& k, const Tensor& scalars, const Tensor& grad,
             Outputs out) {
        Tensor none;
        return k.LarsUpdate(lars, scalars, Squares(k, 2, 3), grad, out[0],
                            none);
      },
      all, /*summed=*/1);
  AddSteps(
      "clip_gradient_summed", n, {Poison({n})},
      [](Kernels& k, const Tensor& scalars, const Tensor& grad, Outputs out) {
        return k.ClipGradient(0.2, scalars, grad, out[0]);
      },
      all, /*summed=*/1);
}

// Adds the clip factor for a norm of sqrt(square_sum) / 3, or / 2 for a sum.
void AddClipFactor(double square_sum, double summed, std::vector<OpCase>& all) {
  all.push_back(
      {absl::StrCat("clip_factor_", square_sum, summed != 0 ? "_summed" : ""),
       {Normal({1})},
       {{{kNumStepScalars}, Operand::Fill::kPoison, DType::kF64, 0}},
       [=](Kernels& k, Inputs, Outputs out) -> absl::Status {
         StepScalars values;
         values.loss_count = 1.5;
         values.loss_scale = 2;
         values.square_sum = square_sum;
         values.summed = summed;
         TROUPE_RETURN_IF_ERROR(k.SetStepScalars(values, out[0]));
         return k.SetClipFactor(0.5, out[0]);
       }});
}

// Adds the scalars of a parameter that began with update `first`.
void AddCountFrom(double first, std::vector<OpCase>& all) {
  all.push_back({absl::StrCat("count_from_", first),
                 {Normal({1})},
                 {{{kNumStepScalars}, Operand::Fill::kPoison, DType::kF64, 0}},
                 [=](Kernels& k, Inputs, Outputs out) -> absl::Status {
                   StepScalars values;
                   values.lr = 0.25;
                   values.step = 8;
                   values.beta1 = 0.9;
                   values.beta2 = 0.99;
                   values.loss_count = 3;
                   Tensor scalars = Tensor::Empty(out[0].shape(), DType::kF64,
                                                  k.allocator());
                   TROUPE_RETURN_IF_ERROR(k.SetStepScalars(values, scalars));
                   return k.CountFrom(first, scalars, out[0]);
                 }});
}

// Adds a state after some steps, and the scalars of the next one.
void AddLossScale(double skipped_steps, bool dynamic,
                  std::vector<OpCase>& all) {
  constexpr auto kPoison = Operand::Fill::kPoison;
  all.push_back(
      {absl::StrCat("loss_scale_", skipped_steps, dynamic ? "" : "_fixed"),
       {Normal({1})},
       {{{kNumStepScalars}, kPoison, DType::kF64, 0},
        {{kNumLossScaleState}, kPoison, DType::kF64, 0}},
       [=](Kernels& k, Inputs, Outputs out) -> absl::Status {
         StepScalars values;
         values.step = 8;
         values.beta1 = 0.9;
         values.beta2 = 0.99;
         Tensor state =
             Tensor::Empty(out[1].shape(), DType::kF32, k.allocator());
         TROUPE_RETURN_IF_ERROR(
             k.SetValues({512, 1, static_cast<double>(skipped_steps)}, state));
         TROUPE_RETURN_IF_ERROR(k.Copy(state, out[1]));
         LossScaleRule rule = LossScaleRule::Fixed();
         if (dynamic) rule = {/*growth_interval=*/3};
         for (const double non_finite : {0.0, 2.0, 0.0, 0.0, 0.0, 0.0}) {
           values.non_finite = non_finite;
           TROUPE_RETURN_IF_ERROR(k.SetStepScalars(values, out[0]));
           TROUPE_RETURN_IF_ERROR(k.ApplyLossScale(out[1], out[0]));
           TROUPE_RETURN_IF_ERROR(k.UpdateLossScale(rule, out[0], out[1]));
         }
         return absl::OkStatus();
       }});
}

}  // namespace

void AddOptimizerCases(std::vector<OpCase>& all) {
  for (std::int64_t n : {0, 1, 7, 16, 64, 1000}) {
    AddAllSgd(n, all);
    AddAdam("adam", false, false, 0, n, all);
    AddAdam("adam_decay", false, false, 0.05, n, all);
    AddAdam("adam_amsgrad", false, true, 0.05, n, all);
    AddAdam("adamw", true, false, 0.05, n, all);
    AddAdam("adamw_amsgrad", true, true, 0.05, n, all);
    // Not for one element, which may come near 0 by cancellation.
    if (n != 1) AddLayerwise(n, all);
    AddPasses(n, all);
  }
  for (std::int64_t n : {0, 1, 7, 64, 1000, 40001}) AddNorms(n, all);
  for (std::int64_t first : {0, 6}) {
    for (std::int64_t n : {0, 1, 3, 7, 3000}) AddRounding(first, n, all);
  }
  for (double square_sum : {0.0, 1.0, 9.0}) {
    for (double summed : {0.0, 1.0}) AddClipFactor(square_sum, summed, all);
  }
  for (double first : {0.0, 3.0, 8.0}) AddCountFrom(first, all);
  for (double skipped_steps : {0.0, 3.0}) {
    AddLossScale(skipped_steps, /*dynamic=*/true, all);
  }
  AddLossScale(/*skipped_steps=*/3, /*dynamic=*/false, all);
  AddSummed(1000, all);
}

}  // namespace troupe::nn
