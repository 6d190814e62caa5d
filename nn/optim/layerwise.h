// Optimizers whose step length is proportional to the norm of each parameter:
// LAMB and LARS, for large batches. A parameter is a layer of the papers.
//
//   LambOptions lamb;
//   lamb.lr = 0.002;
//   lamb.weight_decay = 0.01;
//   Lamb optimizer(lamb);
//
// The formulas are at LambDirection and LarsRule. Norms are sums in f64, each
// over one parameter, so that no bit depends on the sizes of buckets. Owners of
// slices (ZeRO) add up the sums of theirs, which rounds in another order: to
// 1e-12 of a norm. LAMB then keeps its direction from its sums to its update.
//
// Sources: You et al. 2020, arXiv:1904.00962 (LAMB); You et al. 2017,
// arXiv:1708.03888 (LARS).

#ifndef NN_OPTIM_LAYERWISE_H_
#define NN_OPTIM_LAYERWISE_H_

#include "absl/status/status.h"
#include "nn/optim/arena_optimizer.h"

namespace troupe::nn {

struct LambOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0;
  OptimizerOptions common = {};

  // kInvalidArgument: the same as AdamOptions.
  absl::Status Validate() const;
};

class Lamb : public ArenaOptimizer {
 public:
  explicit Lamb(const LambOptions& options)
      : ArenaOptimizer(options.lr, options.weight_decay, options.common),
        options_(options) {}

  bool CountsUpdates() const override { return true; }
  void FillScalars(std::int64_t step, StepScalars& values) const override;

 private:
  absl::Status AttachStates(ParameterArena& arena, DType dtype) override;
  absl::Status SumPart(Kernels& kernels, Part& part) override;
  absl::Status UpdatePart(Kernels& kernels, Part& part) override;
  bool per_parameter() const override { return true; }

  const LambOptions options_;
  Tensor exp_avg_, exp_avg_sq_;
};

struct LarsOptions {
  double lr = 0.01;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust_coefficient = 0.001;
  double eps = 0;  // added to the divisor of the trust ratio
  OptimizerOptions common = {};

  // kInvalidArgument: a value below 0 or not finite, and errors in `common`.
  absl::Status Validate() const;
};

class Lars : public ArenaOptimizer {
 public:
  explicit Lars(const LarsOptions& options)
      : ArenaOptimizer(options.lr, options.weight_decay, options.common),
        options_(options) {}

 private:
  absl::Status AttachStates(ParameterArena& arena, DType dtype) override;
  absl::Status SumPart(Kernels& kernels, Part& part) override;
  absl::Status UpdatePart(Kernels& kernels, Part& part) override;
  bool per_parameter() const override { return true; }

  const LarsOptions options_;
  Tensor momentum_;  // undefined without momentum
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_LAYERWISE_H_
