#include "nn/ops/loss.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "nn/ops/axis_part.h"
#include "nn/ops/op_util.h"
#include "nn/ops/rank_sum.h"

namespace troupe::nn::ops {
namespace {

// The node of every loss: forward has computed the gradient already.
class LossNode final : public Node {
 public:
  LossNode(const char* name, Tensor dx) : name_(name), dx_(std::move(dx)) {}
  const char* name() const override { return name_; }
  bool is_loss() const override { return true; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    dx[0] = std::move(dx_);
    return dy.is_meta() ? absl::OkStatus() : kernels.Scale(dx[0], dy, dx[0]);
  }

 private:
  const char* name_;
  Tensor dx_;
};

// The node of a loss of the difference of prediction and target: the gradient
// of one is that of the other, negated.
class DifferenceLossNode final : public Node {
 public:
  DifferenceLossNode(const char* name, Tensor dx)
      : name_(name), dx_(std::move(dx)) {}
  const char* name() const override { return name_; }
  bool is_loss() const override { return true; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    if (!dy.is_meta()) TROUPE_RETURN_IF_ERROR(kernels.Scale(dx_, dy, dx_));
    if (wanted[1]) {
      TROUPE_ASSIGN_OR_RETURN(
          dx[1], Tensor::Create(dx_.shape(), dx_.dtype(), kernels.allocator()));
      TROUPE_RETURN_IF_ERROR(
          kernels.UnaryForward(UnaryFunction::kNegate, 0, dx_, dx[1]));
    }
    if (wanted[0]) dx[0] = std::move(dx_);
    return absl::OkStatus();
  }

 private:
  const char* name_;
  Tensor dx_;
};

class ScaleLossNode final : public Node {
 public:
  explicit ScaleLossNode(double weight) : weight_(weight) {}
  const char* name() const override { return "scale_loss"; }
  bool is_loss() const override { return true; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(dy.shape(), dy.dtype(), kernels.allocator()));
    if (dy.is_meta()) return kernels.Fill(weight_, dx[0]);
    return kernels.CombineLosses(dy, weight_, Tensor(), 0, dx[0]);
  }

 private:
  const double weight_;
};

class AddLossesNode final : public Node {
 public:
  const char* name() const override { return "add_losses"; }
  bool is_loss() const override { return true; }

  absl::Status BackwardInputs(Kernels&, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    for (int i = 0; i < 2; ++i) {
      if (wanted[i]) dx[i] = dy;
    }
    return absl::OkStatus();
  }
};

// Runs a loss. The gradient takes the memory of `x` if `takes_x`, else its own.
template <typename Kernel>
Tensor Loss(Context& ctx, const char* name, const Tensor& x, bool takes_x,
            Kernel kernel) {
  Tensor stats = ctx.Empty(name, {kNumLossStats}, DType::kF64);
  ctx.Note(name, stats, 4.0 * x.numel());
  if (ctx.shape_only()) return stats;
  Tensor dx;
  if (ctx.Tracks({x})) {
    dx = takes_x ? x.Detached() : ctx.Empty(name, x.shape(), x.dtype());
  }
  if (!ctx.ok()) return Tensor();
  const absl::Status status = kernel(stats, dx);
  return Finish(ctx, status, {x}, /*num_weights=*/0, stats,
                [&] { return std::make_unique<LossNode>(name, dx); });
}

// Whether the loss is a function of prediction - target.
bool IsOfDifference(PairLossFunction function) {
  return function != PairLossFunction::kBceWithLogits;
}

// The same as Loss() for a target that has a gradient, too.
template <typename Kernel>
Tensor LossOfDifference(Context& ctx, const char* name, const Tensor& x,
                        const Tensor& target, Kernel kernel) {
  Tensor stats = ctx.Empty(name, {kNumLossStats}, DType::kF64);
  ctx.Note(name, stats, 4.0 * x.numel());
  if (ctx.shape_only()) return stats;
  Tensor dx = ctx.Empty(name, x.shape(), x.dtype());
  if (!ctx.ok()) return Tensor();
  const absl::Status status = kernel(stats, dx);
  return Finish(ctx, status, {x, target}, /*num_weights=*/0, stats,
                [&] { return std::make_unique<DifferenceLossNode>(name, dx); });
}

// Runs a loss of elements beside their targets; checks their shapes and dtypes.
Tensor LossOfPairs(Context& ctx, const char* name, const PairLossRule& rule,
                   const Tensor& prediction, const Tensor& target) {
  if (!ctx.ok()) return Tensor();
  if (prediction.shape() != target.shape() ||
      prediction.dtype() != target.dtype()) {
    return BadShapes(ctx, name, " takes two tensors of one shape and dtype, ",
                     "got ", Str(prediction), " and ", Str(target));
  }
  const auto kernel = [&](Tensor& stats, Tensor& dx) {
    return ctx.kernels().PairLoss(rule, prediction, target, stats, dx);
  };
  if (!ctx.Tracks({target})) {
    return Loss(ctx, name, prediction, /*takes_x=*/false, kernel);
  }
  if (!IsOfDifference(rule.function)) {
    return BadShapes(ctx, name, " has no gradient for its target ", Str(target),
                     ", which is tracked: pass target.Detached()");
  }
  return LossOfDifference(ctx, name, prediction, target, kernel);
}

// Whether `targets` has one target for each row of `logits`.
bool FitTargets(const Tensor& logits, const Tensor& targets) {
  const int last = logits.shape().rank() - 1;
  return last >= 1 && logits.dim(last) >= 1 && targets.dtype() == DType::kI64 &&
         targets.shape() == Shape(logits.shape().dims().first(last));
}

// Whether the operands and options fit, for all `classes`; otherwise fails the
// context.
bool CheckCrossEntropy(Context& ctx, const Tensor& logits,
                       const Tensor& targets,
                       const CrossEntropyOptions& options,
                       std::int64_t classes) {
  const auto weights = static_cast<std::int64_t>(options.class_weights.size());
  if (!FitTargets(logits, targets) || (weights > 0 && weights != classes)) {
    BadShapes(ctx,
              "cross entropy takes logits[..., C], i64 targets[...] and "
              "C class weights or none, got ",
              Str(logits), ", ", Str(targets), " and ", weights);
  } else if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
    BadShapes(ctx, "cross entropy takes a label_smoothing from 0 to 1, ",
              "got ", options.label_smoothing);
  }
  return ctx.ok();
}

// Returns the class weights in the memory of the kernels; undefined: all 1.
absl::StatusOr<Tensor> ClassWeights(Kernels& kernels,
                                    const CrossEntropyOptions& options,
                                    DType logits) {
  if (options.class_weights.empty()) return Tensor();
  TROUPE_ASSIGN_OR_RETURN(
      Tensor by_class,
      Tensor::Create({static_cast<std::int64_t>(options.class_weights.size())},
                     logits == DType::kF64 ? DType::kF64 : DType::kF32,
                     kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.SetValues(options.class_weights, by_class));
  return by_class;
}

// Whether a piece of the classes has that many columns: gathered logits, which
// every rank would count, have more.
bool IsPiece(std::int64_t columns, const SplitLogits& split, int ranks) {
  if (split.axis.empty()) return columns == split.classes;
  const std::int64_t blocks = ranks * split.blocks;
  return columns == (split.classes + blocks - 1) / blocks * split.blocks;
}

// Computes the sums of block `block` of a piece [N, P], whose classes begin at
// column `begin`.
absl::Status SumBlock(Kernels& kernels, const Tensor& logits,
                      const Tensor& targets, const Tensor& by_class,
                      const CrossEntropyRule& rule, const ClassPiece& block,
                      std::int64_t begin, const Tensor& largest, Tensor& sums) {
  if (block.count == 0) return kernels.Fill(0.0, sums);
  const Shape shape = {logits.dim(0), block.count};
  TROUPE_ASSIGN_OR_RETURN(Tensor columns, Tensor::Create(shape, logits.dtype(),
                                                         kernels.allocator()));
  if (shape.numel() > 0) {
    TROUPE_RETURN_IF_ERROR(kernels.CopyStrided(
        FromPart(logits.shape(), /*axis=*/1, begin, shape), logits, columns));
  }
  return kernels.PieceSums(columns, targets, by_class, rule, block, largest,
                           sums);
}

// Computes the loss of split logits [N, P], with sums over `peers`.
// Null peers: this rank has all of them.
absl::Status SumPieces(Kernels& kernels, Collectives* peers,
                       const Tensor& logits, const Tensor& targets,
                       const CrossEntropyOptions& options,
                       const SplitLogits& split, Tensor& stats, Tensor& dx) {
  const std::int64_t classes = split.classes;
  const CrossEntropyRule rule = {options.ignore_index, options.label_smoothing};
  ClassPiece piece;
  piece.classes = classes;
  piece.first =
      peers == nullptr ? 0 : std::min(classes, peers->rank() * logits.dim(1));
  piece.count = std::min(logits.dim(1), classes - piece.first);
  TROUPE_ASSIGN_OR_RETURN(const Tensor by_class,
                          ClassWeights(kernels, options, logits.dtype()));
  const std::int64_t rows = logits.dim(0);
  TROUPE_ASSIGN_OR_RETURN(
      Tensor largest, Tensor::Create({rows}, DType::kF64, kernels.allocator()));
  TROUPE_ASSIGN_OR_RETURN(
      Tensor sums,
      Tensor::Create({rows, kNumPieceSums}, DType::kF64, kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.PieceLargest(logits, piece, largest));
  if (rows > 0 && peers != nullptr) {  // they have as many
    TROUPE_RETURN_IF_ERROR(peers->AllReduce(ReduceOp::kMax, largest));
  }
  if (split.blocks == 1) {
    TROUPE_RETURN_IF_ERROR(kernels.PieceSums(logits, targets, by_class, rule,
                                             piece, largest, sums));
  } else {
    const std::int64_t most = (logits.dim(1) + split.blocks - 1) / split.blocks;
    const auto compute = [&](int number, Tensor& into) {
      const std::int64_t begin = std::min(piece.count, number * most);
      ClassPiece block;
      block.classes = classes;
      block.first = piece.first + begin;
      block.count = std::min(most, piece.count - begin);
      return SumBlock(kernels, logits, targets, by_class, rule, block, begin,
                      largest, into);
    };
    TROUPE_RETURN_IF_ERROR(
        SumOfBlocks(kernels, 0, split.blocks, compute, sums));
  }
  TROUPE_RETURN_IF_ERROR(AddUp(peers, sums));
  Tensor dx_rows = dx.defined() ? AsMatrix(dx) : dx;
  return kernels.PieceCrossEntropy(logits, targets, by_class, rule, piece,
                                   largest, sums, stats, dx_rows);
}

}  // namespace

Tensor SoftmaxCrossEntropy(Context& ctx, Tensor logits, const Tensor& targets,
                           std::int64_t ignore_index) {
  if (!ctx.ok()) return Tensor();
  if (!FitTargets(logits, targets)) {
    return BadShapes(
        ctx, "cross entropy takes logits[..., C] and i64 targets[...], got ",
        Str(logits), " and ", Str(targets));
  }
  return Loss(ctx, "cross_entropy", logits, logits.owns_alone(),
              [&](Tensor& stats, Tensor& dx) {
                Kernels& kernels = ctx.kernels();
                if (IsMatrix(logits)) {
                  return kernels.SoftmaxCrossEntropy(logits, targets,
                                                     ignore_index, stats, dx);
                }
                Tensor dx_rows = dx.defined() ? AsMatrix(dx) : dx;
                return kernels.SoftmaxCrossEntropy(
                    AsMatrix(logits), targets.View({targets.numel()}),
                    ignore_index, stats, dx_rows);
              });
}

Tensor SoftmaxCrossEntropy(Context& ctx, Tensor logits, const Tensor& targets,
                           const CrossEntropyOptions& options) {
  if (options.label_smoothing == 0 && options.class_weights.empty()) {
    return SoftmaxCrossEntropy(ctx, std::move(logits), targets,
                               options.ignore_index);
  }
  if (!ctx.ok()) return Tensor();
  const int last = logits.shape().rank() - 1;
  if (!CheckCrossEntropy(ctx, logits, targets, options,
                         last >= 0 ? logits.dim(last) : 0)) {
    return Tensor();
  }
  return Loss(
      ctx, "cross_entropy", logits, logits.owns_alone(),
      [&](Tensor& stats, Tensor& dx) -> absl::Status {
        Kernels& kernels = ctx.kernels();
        TROUPE_ASSIGN_OR_RETURN(const Tensor by_class,
                                ClassWeights(kernels, options, logits.dtype()));
        Tensor dx_rows = dx.defined() ? AsMatrix(dx) : dx;
        return kernels.WeightedCrossEntropy(
            AsMatrix(logits), targets.View({targets.numel()}), by_class,
            {options.ignore_index, options.label_smoothing}, stats, dx_rows);
      });
}

Tensor SoftmaxCrossEntropy(Context& ctx, Tensor logits, const Tensor& targets,
                           const CrossEntropyOptions& options,
                           const SplitLogits& split) {
  Collectives* const peers =
      split.axis.empty() ? nullptr : PeersAlong(ctx, split.axis);
  if (!ctx.ok() || !CheckCrossEntropy(ctx, logits, targets, options,
                                      /*classes=*/split.classes)) {
    return Tensor();
  }
  const int ranks = peers == nullptr ? 1 : peers->size();
  if (!ctx.shape_only() &&
      !IsPiece(logits.dim(logits.shape().rank() - 1), split, ranks)) {
    return BadShapes(ctx, "cross entropy takes logits of equal pieces of ",
                     split.classes, " classes for ", ranks, " ranks along ",
                     split.axis, ", got ", Str(logits),
                     "; give whole logits to the form without a split");
  }
  return Loss(ctx, "cross_entropy", logits, logits.owns_alone(),
              [&](Tensor& stats, Tensor& dx) -> absl::Status {
                return SumPieces(ctx.kernels(), peers, AsMatrix(logits),
                                 targets.View({targets.numel()}), options,
                                 split, stats, dx);
              });
}

LossFn CrossEntropyLoss(const CrossEntropyOptions& options) {
  return SplitLoss{
      [options](Context& ctx, Tensor logits, const Tensor& targets) {
        return SoftmaxCrossEntropy(ctx, std::move(logits), targets, options);
      },
      [options](Context& ctx, Tensor logits, const Tensor& targets,
                const SplitLogits& split) {
        return SoftmaxCrossEntropy(ctx, std::move(logits), targets, options,
                                   split);
      }};
}

Tensor MeanSquaredError(Context& ctx, const Tensor& prediction,
                        const Tensor& target) {
  return LossOfPairs(ctx, "mse", {PairLossFunction::kSquaredError}, prediction,
                     target);
}

Tensor L1Loss(Context& ctx, const Tensor& prediction, const Tensor& target) {
  return LossOfPairs(ctx, "l1_loss", {PairLossFunction::kAbsoluteError},
                     prediction, target);
}

Tensor HuberLoss(Context& ctx, const Tensor& prediction, const Tensor& target,
                 double delta) {
  if (!ctx.ok()) return Tensor();
  if (!(delta > 0) || std::isinf(delta)) {
    return BadShapes(ctx, "huber_loss takes a delta above 0, got ", delta);
  }
  return LossOfPairs(ctx, "huber_loss",
                     {PairLossFunction::kHuber, delta, /*q=*/1}, prediction,
                     target);
}

Tensor SmoothL1Loss(Context& ctx, const Tensor& prediction,
                    const Tensor& target, double beta) {
  if (beta == 0) return L1Loss(ctx, prediction, target);
  if (!ctx.ok()) return Tensor();
  if (!(beta > 0) || std::isinf(beta)) {
    return BadShapes(ctx, "smooth_l1_loss takes a beta from 0 on, got ", beta);
  }
  return LossOfPairs(ctx, "smooth_l1_loss",
                     {PairLossFunction::kHuber, beta, /*q=*/1 / beta},
                     prediction, target);
}

Tensor BceWithLogits(Context& ctx, const Tensor& logits, const Tensor& target,
                     double pos_weight) {
  if (!ctx.ok()) return Tensor();
  if (!(pos_weight >= 0) || std::isinf(pos_weight)) {
    return BadShapes(ctx, "bce_with_logits takes a pos_weight from 0 on, got ",
                     pos_weight);
  }
  return LossOfPairs(ctx, "bce_with_logits",
                     {PairLossFunction::kBceWithLogits, pos_weight}, logits,
                     target);
}

Tensor ScaleLoss(Context& ctx, const Tensor& loss, double weight) {
  if (!ctx.ok()) return Tensor();
  if (!IsLoss(loss) || !std::isfinite(weight)) {
    return BadShapes(ctx, "scale_loss takes a loss and a finite weight, got ",
                     Str(loss), " and ", weight);
  }
  Tensor stats = ctx.Empty("scale_loss", loss.shape(), loss.dtype());
  ctx.Note("scale_loss", stats, 1);
  if (!ctx.computes()) return stats;
  const absl::Status status =
      ctx.kernels().CombineLosses(loss, weight, Tensor(), 0, stats);
  return Finish(ctx, status, {loss}, /*num_weights=*/0, stats,
                [&] { return std::make_unique<ScaleLossNode>(weight); });
}

Tensor AddLosses(Context& ctx, const Tensor& first, const Tensor& second) {
  if (!ctx.ok()) return Tensor();
  if (!IsLoss(first) || !IsLoss(second)) {
    return BadShapes(ctx, "add_losses takes two losses, got ", Str(first),
                     " and ", Str(second));
  }
  Tensor stats = ctx.Empty("add_losses", first.shape(), first.dtype());
  ctx.Note("add_losses", stats, 1);
  if (!ctx.computes()) return stats;
  const absl::Status status =
      ctx.kernels().CombineLosses(first, 1, second, 1, stats);
  return Finish(ctx, status, {first, second}, /*num_weights=*/0, stats,
                [] { return std::make_unique<AddLossesNode>(); });
}

bool IsLoss(const Tensor& tensor) {
  return tensor.defined() && tensor.dtype() == DType::kF64 &&
         tensor.shape() == Shape{kNumLossStats};
}

}  // namespace troupe::nn::ops
