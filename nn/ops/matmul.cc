#include "nn/ops/matmul.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "nn/ops/broadcast.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// Returns the axes before the matrices.
Shape BatchOf(const Shape& shape) {
  return Shape(shape.dims().first(shape.rank() - 2));
}

// Returns the shape of f(a) f(b). None if their batches do not broadcast, or it
// has too many elements.
std::optional<Shape> ProductShape(MatMulForm form, const Tensor& a,
                                  const Tensor& b) {
  const std::optional<Shape> batch =
      BroadcastShape(BatchOf(a.shape()), BatchOf(b.shape()));
  if (!batch) return std::nullopt;
  std::vector<std::int64_t> dims(batch->dims().begin(), batch->dims().end());
  dims.push_back(a.dim(form.transpose_a ? -1 : -2));
  dims.push_back(b.dim(form.transpose_b ? -2 : -1));
  if (!Shape::Fits(dims)) return std::nullopt;
  return Shape(dims);
}

// Returns f(a) f(b) in new memory, for batches that broadcast.
absl::StatusOr<Tensor> Product(Kernels& kernels, MatMulForm form,
                               const Tensor& a, const Tensor& b) {
  const Shape shape = *ProductShape(form, a, b);
  TROUPE_ASSIGN_OR_RETURN(
      Tensor c, Tensor::Create(shape, a.dtype(), kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.MatMul(form, a, b, c));
  return c;
}

// A = f(a), B = f(b): dA = dC B^T, dB = A^T dC.
class MatMulNode final : public Node {
 public:
  MatMulNode(MatMulForm form, Tensor a, Tensor b)
      : form_(form), a_(std::move(a)), b_(std::move(b)) {}
  const char* name() const override { return "matmul"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dc,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    const auto [ta, tb] = form_;
    if (wanted[0]) {
      TROUPE_ASSIGN_OR_RETURN(const Tensor da,
                              ta ? Product(kernels, {tb, true}, b_, dc)
                                 : Product(kernels, {false, !tb}, dc, b_));
      TROUPE_ASSIGN_OR_RETURN(dx[0], SumTo(kernels, da, a_.shape()));
    }
    if (wanted[1]) {
      TROUPE_ASSIGN_OR_RETURN(const Tensor db,
                              tb ? Product(kernels, {true, ta}, dc, a_)
                                 : Product(kernels, {!ta, false}, a_, dc));
      TROUPE_ASSIGN_OR_RETURN(dx[1], SumTo(kernels, db, b_.shape()));
    }
    return absl::OkStatus();
  }

 private:
  const MatMulForm form_;
  const Tensor a_, b_;
};

// The same if all of a is one matrix, and b another.
class ManyRowsNode final : public Node {
 public:
  ManyRowsNode(MatMulForm form, Tensor a, Tensor b)
      : shape_a_(a.shape()),
        shape_b_(b.shape()),
        one_(form, AsMatrix(a.Detached()), OneMatrix(b.Detached())) {}
  const char* name() const override { return "matmul"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dc,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    TROUPE_RETURN_IF_ERROR(
        one_.BackwardInputs(kernels, AsMatrix(dc), wanted, dx));
    if (wanted[0]) dx[0] = dx[0].View(shape_a_);
    if (wanted[1]) dx[1] = dx[1].View(shape_b_);
    return absl::OkStatus();
  }

  static Tensor OneMatrix(const Tensor& b) {
    return b.View({b.dim(-2), b.dim(-1)});
  }

 private:
  const Shape shape_a_, shape_b_;
  MatMulNode one_;
};

bool Fit(const Tensor& a, const Tensor& b, MatMulForm form) {
  if (!a.defined() || !b.defined() || a.dtype() != b.dtype() ||
      a.shape().rank() < 2 || b.shape().rank() < 2) {
    return false;
  }
  return a.dim(form.transpose_a ? -2 : -1) == b.dim(form.transpose_b ? -1 : -2);
}

}  // namespace

Tensor MatMul(Context& ctx, const Tensor& a, const Tensor& b, MatMulForm form) {
  if (!ctx.ok()) return Tensor();
  std::optional<Shape> shape;
  if (Fit(a, b, form)) shape = ProductShape(form, a, b);
  if (!shape) {
    return BadShapes(ctx, "matmul takes a[..., ",
                     form.transpose_a ? "K, M" : "M, K", "] and b[..., ",
                     form.transpose_b ? "N, K" : "K, N", "] of one dtype, got ",
                     Str(a), " and ", Str(b));
  }
  const std::int64_t K = a.dim(form.transpose_a ? -2 : -1);
  Tensor c = ctx.Empty("matmul", *shape, a.dtype());
  ctx.Note("matmul", c, 2.0 * c.numel() * K);
  if (!ctx.computes()) return c;
  const bool many_rows = !form.transpose_a && BatchOf(b.shape()).numel() == 1 &&
                         a.shape().rank() >= b.shape().rank();
  if (!many_rows) {
    const absl::Status status = ctx.kernels().MatMul(form, a, b, c);
    return Finish(ctx, status, {a, b}, /*num_weights=*/0, c,
                  [&] { return std::make_unique<MatMulNode>(form, a, b); });
  }
  Tensor rows = AsMatrix(c);
  const absl::Status status =
      ctx.kernels().MatMul(form, AsMatrix(a), ManyRowsNode::OneMatrix(b), rows);
  return Finish(ctx, status, {a, b}, /*num_weights=*/0, c,
                [&] { return std::make_unique<ManyRowsNode>(form, a, b); });
}

}  // namespace troupe::nn::ops
