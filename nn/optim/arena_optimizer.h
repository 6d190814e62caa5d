// The part of an optimizer that does not depend on its rule: groups, f32 master
// values, averages, clipping, rounding (OptimizerOptions). A derived class
// updates one part of an arena at a time, all of whose parameters are in one
// group.
//
//   class Descent : public ArenaOptimizer {
//    public:
//     explicit Descent(double lr) : ArenaOptimizer(lr, /*decay=*/0, {}) {}
//    private:
//     absl::Status AttachStates(ParameterArena&, DType) override {
//       return absl::OkStatus();
//     }
//     absl::Status UpdatePart(Kernels& kernels, Part& part) override {
//       SgdRule rule;
//       rule.lr_factor = part.lr_factor;
//       Tensor none;
//       return kernels.SgdUpdate(rule, part.scalars, part.grads, part.values,
//                                none);
//     }
//   };
//
// A part's scalars count steps from the first update of its parameters
// (SetFirstUpdates). Parts that begin with the run's first update read the
// step's scalars themselves.
//
// A gradient of zeros is a gradient: weight decay and momentum still change its
// parameter. To leave a parameter without gradient alone, as torch.optim does,
// the caller updates the ranges beside it (actors/chunks/use_marks.h). A frozen
// parameter is in no bucket, so it does not change.

#ifndef NN_OPTIM_ARENA_OPTIMIZER_H_
#define NN_OPTIM_ARENA_OPTIMIZER_H_

#include "absl/status/status.h"
#include "nn/optim/optimizer.h"
#include "nn/optim/optimizer_options.h"

namespace troupe::nn {

// Names of the states that begin as copies of the parameters: f32 values of
// 16-bit parameters, and averages. All other states begin as zeros.
inline constexpr char kMasterState[] = "master_value";
inline constexpr char kAverageState[] = "ema_value";

class ArenaOptimizer : public Optimizer {
 public:
  ArenaOptimizer(double lr, double weight_decay, const OptimizerOptions& common)
      : lr_(lr), weight_decay_(weight_decay), common_(common) {}

  absl::Status Attach(ParameterArena& arena) override;
  absl::Status Begin(Kernels& kernels, ParameterArena& arena) override;
  void SetFirstUpdates(const ParameterArena& arena,
                       absl::Span<const double> first) override;
  absl::Status UpdateRange(Kernels& kernels, const Tensor& scalars,
                           ParameterArena& arena, const ArenaRange& range,
                           const Tensor& grads) override;
  absl::Status Inspect(Kernels& kernels, const Tensor& scalars,
                       const ParameterArena& arena) override;
  absl::Status Conclude(Kernels& kernels, Tensor& scalars) override;
  bool NeedsAllBuckets() const override {
    return common_.skip_nonfinite || common_.clip_grad_norm > 0;
  }
  bool MaySkipSteps() const override { return common_.skip_nonfinite; }
  bool IsElementwise() const override { return !per_parameter(); }
  double LearningRate(std::int64_t step) const override {
    return lr_ * common_.schedule.Factor(step);
  }

 protected:
  // The elements that one call updates: one whole parameter if per_parameter().
  struct Part {
    Tensor scalars;
    ParameterArena& arena;
    ArenaRange range;
    double lr_factor;
    double weight_decay;
    Tensor grads;   // sums; same dtype as `values`
    Tensor values;  // the parameters, their master values, or f32 copies
    const ArenaSlot* slot = nullptr;  // the parameter, if groups are parameters
  };

  // Adds the rule's states, of dtype `dtype`.
  virtual absl::Status AttachStates(ParameterArena& arena, DType dtype) = 0;
  // Updates one part in one pass of kernels, if the step is not skipped.
  virtual absl::Status UpdatePart(Kernels& kernels, Part& part) = 0;
  // Whether an update needs the norms of parameters: then a part is a whole
  // parameter, without the padding behind it, and UpdateRange() takes ranges of
  // whole parameters.
  virtual bool per_parameter() const { return false; }

 private:
  void SetGroups(const ParameterArena& arena, absl::Span<const double> first);
  absl::Status RunPart(Kernels& kernels, const Tensor& grads, const Part& part);
  absl::Status RunPiece(Kernels& kernels, const Tensor& grads, Part& part);

  const double lr_, weight_decay_;
  const OptimizerOptions common_;
  Tensor master_;   // undefined without f32_master, or for wide parameters
  Tensor average_;  // undefined without ema_decay
  bool rounds_at_random_ = false;
  // Used with groups, where parts are parameters, and if parameters begin later
  // than the run.
  GroupRanges groups_;
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_ARENA_OPTIMIZER_H_
