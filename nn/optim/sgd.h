// Stochastic gradient descent with momentum, Nesterov momentum and weight decay
// as torch.optim.SGD defines them (the formula is at SgdRule).
//
//   Sgd sgd({/*lr=*/0.1, /*momentum=*/0.9});
//
//   SgdOptions options;                        // a schedule, and groups
//   options.schedule = LrSchedule::Cosine(/*steps=*/10000);
//   options.groups = {{"*.bias", /*lr_factor=*/1, /*weight_decay=*/0}};
//
// A parameter that a step did not use has the gradient 0, as with PyTorch's
// DistributedDataParallel and find_unused_parameters: weight decay and momentum
// still move it. (torch.optim.SGD alone leaves a parameter without gradient.)
// One that is frozen lies in no bucket, so it stays as it is.
//
// Source: Sutskever et al. 2013, "On the importance of initialization and
// momentum in deep learning", with PyTorch's placing of lr.

#ifndef NN_OPTIM_SGD_H_
#define NN_OPTIM_SGD_H_

#include <vector>

#include "absl/status/status.h"
#include "nn/optim/lr_schedule.h"
#include "nn/optim/optimizer.h"
#include "nn/optim/parameter_groups.h"

namespace troupe::nn {

struct SgdOptions {
  double lr = 0.01;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  LrSchedule schedule = {};                 // lr is multiplied by its factor
  std::vector<ParameterGroup> groups = {};  // the first that matches counts
  // Keeps f32 values of 16-bit parameters ("master_value") and f32 momentum:
  // updates add to them, and the parameters are their roundings (Micikevicius
  // et al. 2018, arXiv:1710.03740).
  bool f32_master = false;
  // Skips a step with a gradient that is not finite, as happens under a loss
  // scale that is too large.
  bool skip_nonfinite = false;

  // kInvalidArgument as PyTorch: negative values; nesterov without momentum or
  // with dampening. And values that are not finite, and what the schedule and
  // the groups refuse. Errors blame the field (base/field_error.h).
  absl::Status Validate() const;
};

class Sgd : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options) : options_(options) {}

  absl::Status Attach(ParameterArena& arena) override;
  // kFailedPrecondition: there is momentum and Attach() was not called.
  absl::Status UpdateRange(Kernels& kernels, const Tensor& scalars,
                           ParameterArena& arena, const ArenaRange& range,
                           const Tensor& grads) override;
  absl::Status Begin(Kernels& kernels, ParameterArena& arena) override;
  bool IsElementwise() const override { return true; }
  bool NeedsAllBuckets() const override { return options_.skip_nonfinite; }
  bool MaySkipSteps() const override { return options_.skip_nonfinite; }
  absl::Status Inspect(Kernels& kernels, const Tensor& scalars,
                       const ParameterArena& arena) override;
  double LearningRate(std::int64_t step) const override {
    return options_.lr * options_.schedule.Factor(step);
  }

 private:
  absl::Status UpdatePart(Kernels& kernels, const SgdRule& rule,
                          const Tensor& scalars, ParameterArena& arena,
                          const ArenaRange& range, const Tensor& grads);

  const SgdOptions options_;
  Tensor master_;       // undefined without f32_master, or for wide parameters
  Tensor momentum_;     // undefined without momentum
  GroupRanges groups_;  // used where options_ has groups
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_SGD_H_
