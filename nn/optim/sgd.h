// Stochastic gradient descent with momentum, Nesterov momentum and weight decay
// as torch.optim.SGD defines them (the formula is at SgdRule).
//
//   Sgd sgd({/*lr=*/0.1, /*momentum=*/0.9});
//
//   SgdOptions options;                        // a schedule, and groups
//   options.common.schedule = LrSchedule::Cosine(/*steps=*/10000);
//   options.common.groups = {{"*.bias", /*lr_factor=*/1, /*weight_decay=*/0}};
//
// Source: Sutskever et al. 2013, "On the importance of initialization and
// momentum in deep learning", with lr placed as in PyTorch.

#ifndef NN_OPTIM_SGD_H_
#define NN_OPTIM_SGD_H_

#include "absl/status/status.h"
#include "nn/optim/arena_optimizer.h"

namespace troupe::nn {

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  OptimizerOptions common = {};

  // Returns kInvalidArgument like PyTorch for negative values, and for nesterov
  // without momentum or with dampening; also for values that are not finite,
  // and for errors in `common`. Errors name the field (base/field_error.h).
  absl::Status Validate() const;
};

class Sgd : public ArenaOptimizer {
 public:
  explicit Sgd(const SgdOptions& options)
      : ArenaOptimizer(options.lr, options.weight_decay, options.common),
        options_(options) {}

  // The first update is not dampened. Without dampening it is like the others,
  // since momentum begins with zeros.
  bool CountsUpdates() const override {
    return options_.momentum != 0 && options_.dampening != 0;
  }

 private:
  absl::Status AttachStates(ParameterArena& arena, DType dtype) override;
  // kFailedPrecondition: momentum is set and Attach() was not called.
  absl::Status UpdatePart(Kernels& kernels, Part& part) override;

  const SgdOptions options_;
  Tensor momentum_;  // undefined without momentum
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_SGD_H_
