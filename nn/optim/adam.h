// Adam and AdamW as torch.optim defines them (the formula is at AdamRule).
//
//   Adam adam({/*lr=*/1e-3});
//   Adam adamw(AdamWDefaults());            // decoupled weight decay of 0.01
//
//   AdamOptions options = AdamWDefaults();
//   options.beta2 = 0.95;
//   options.common.groups = {NoDecayGroup()};
//
// Sources: Kingma and Ba 2015, arXiv:1412.6980; Loshchilov and Hutter 2019,
// arXiv:1711.05101 (AdamW); Reddi et al. 2018, arXiv:1904.09237 (AMSGrad).

#ifndef NN_OPTIM_ADAM_H_
#define NN_OPTIM_ADAM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "nn/optim/arena_optimizer.h"

namespace troupe::nn {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  // AdamW: weight decay shrinks the parameters, without changing the gradients.
  bool decoupled_weight_decay = false;
  bool amsgrad = false;
  OptimizerOptions common = {};

  // Returns kInvalidArgument like PyTorch for a value below 0 and betas that
  // are not below 1; also for values that are not finite, and for errors in
  // `common`. Errors name the field (base/field_error.h).
  absl::Status Validate() const;
};

// Returns the defaults of torch.optim.AdamW.
AdamOptions AdamWDefaults();

// Sets the bias corrections of the step after `step` committed ones.
void SetBiasCorrections(double beta1, double beta2, std::int64_t step,
                        StepScalars& values);

class Adam : public ArenaOptimizer {
 public:
  explicit Adam(const AdamOptions& options)
      : ArenaOptimizer(options.lr, options.weight_decay, options.common),
        options_(options) {}

  bool CountsUpdates() const override { return true; }
  void FillScalars(std::int64_t step, StepScalars& values) const override;

 private:
  absl::Status AttachStates(ParameterArena& arena, DType dtype) override;
  // kFailedPrecondition: Attach() was not called.
  absl::Status UpdatePart(Kernels& kernels, Part& part) override;

  const AdamOptions options_;
  Tensor exp_avg_, exp_avg_sq_;
  Tensor max_exp_avg_sq_;  // undefined without amsgrad
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_ADAM_H_
