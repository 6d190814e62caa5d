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
#include "nn/optim/parameter_sums.h"

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
                           const Tensor& grads) override {
    return RunRange(kernels, scalars, arena, range, grads,
                    sums_.begun() ? Pass::kUpdate : Pass::kWhole);
  }
  absl::Status Inspect(Kernels& kernels, const Tensor& scalars,
                       const ParameterArena& arena) override;
  absl::Status Conclude(Kernels& kernels, Tensor& scalars) override;
  bool NeedsAllBuckets() const override {
    return common_.skip_nonfinite || common_.clip_grad_norm > 0;
  }
  bool MaySkipSteps() const override { return common_.skip_nonfinite; }
  bool IsElementwise() const override { return !per_parameter(); }
  bool SumsParameters() const override { return per_parameter(); }
  absl::StatusOr<Tensor> BeginSums(Kernels& kernels,
                                   const ParameterArena& arena,
                                   int bucket) override {
    return sums_.Begin(kernels, arena, bucket);
  }
  absl::Status SumRange(Kernels& kernels, const Tensor& scalars,
                        ParameterArena& arena, const ArenaRange& range,
                        const Tensor& grads) override {
    return RunRange(kernels, scalars, arena, range, grads, Pass::kSum);
  }
  double LearningRate(std::int64_t step) const override {
    return lr_ * common_.schedule.Factor(step);
  }

 protected:
  // The elements that one call updates: if per_parameter(), those of one
  // parameter, the whole or the slice that this owner has.
  struct Part {
    Tensor scalars;
    ParameterArena& arena;
    ArenaRange range;
    double lr_factor;
    double weight_decay;
    Tensor grads;   // sums; same dtype as `values`
    Tensor values;  // the parameters, their master values, or f32 copies
    const ArenaSlot* slot = nullptr;  // the parameter, if groups are parameters
    // If per_parameter(): two sums over the whole parameter, f64[2], and what
    // SumPart() has computed for UpdatePart().
    Tensor squares = {}, direction = {};
  };

  // Adds the rule's states, of dtype `dtype`.
  virtual absl::Status AttachStates(ParameterArena& arena, DType dtype) = 0;
  // Adds the sums over the part to its `squares`, before UpdatePart(). May set
  // `direction`, and change states. Overridden if per_parameter().
  virtual absl::Status SumPart(Kernels&, Part&) {
    return absl::UnimplementedError(
        "ArenaOptimizer: a derived class is per_parameter() and has no "
        "SumPart(); declare one");
  }
  // Updates one part in one pass of kernels, if the step is not skipped.
  virtual absl::Status UpdatePart(Kernels& kernels, Part& part) = 0;
  // Whether an update needs the norms of parameters: then a part belongs to one
  // parameter, without the padding behind it, and UpdateRange() takes ranges of
  // whole parameters, or follows SumRange().
  virtual bool per_parameter() const { return false; }

 private:
  void SetGroups(const ParameterArena& arena, absl::Span<const double> first);
  // Computes sums alone; updates with sums of all ranks; or does both.
  enum class Pass { kWhole, kSum, kUpdate };
  absl::Status RunRange(Kernels& kernels, const Tensor& scalars,
                        ParameterArena& arena, const ArenaRange& range,
                        const Tensor& grads, Pass pass);
  absl::Status RunPart(Kernels& kernels, const Tensor& grads, const Part& part,
                       Pass pass);
  absl::Status RunPiece(Kernels& kernels, const Tensor& grads, Part& part,
                        Pass pass);
  absl::Status SumUp(Kernels& kernels, Part& part, Pass pass);

  const double lr_, weight_decay_;
  const OptimizerOptions common_;
  Tensor master_;   // undefined without f32_master, or for wide parameters
  Tensor average_;  // undefined without ema_decay
  bool rounds_at_random_ = false;
  // Used with groups, where parts are parameters, and if parameters begin later
  // than the run.
  GroupRanges groups_;
  ParameterSums sums_;  // empty unless ranks have parts of parameters
};

}  // namespace troupe::nn

#endif  // NN_OPTIM_ARENA_OPTIMIZER_H_
