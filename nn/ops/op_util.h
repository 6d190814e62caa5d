// Shared by the op fronts: errors with shapes, and the end of every forward.

#ifndef NN_OPS_OP_UTIL_H_
#define NN_OPS_OP_UTIL_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/autograd/context.h"

namespace troupe::nn::ops {

template <typename... Args>
Tensor BadShapes(Context& ctx, const Args&... parts) {
  return ctx.Fail(absl::InvalidArgumentError(absl::StrCat(parts...)));
}

inline std::string Str(const Tensor& t) {
  return t.defined() ? absl::StrCat(DTypeName(t.dtype()), t.shape().ToString())
                     : "undefined";
}

// Returns `axis` of x counted from 0 (a negative one counts from the end), or
// -1 if x has no such axis.
inline int AxisOf(const Tensor& x, int axis) {
  const int rank = x.shape().rank();
  if (!x.defined() || axis < -rank || axis >= rank) return -1;
  return axis < 0 ? axis + rank : axis;
}

inline bool IsMatrix(const Tensor& x) { return x.shape().rank() == 2; }

// Views x [..., K], at least of rank 1, as a matrix of rows [R, K]. The view is
// for kernels, not for the tape.
inline Tensor AsMatrix(const Tensor& x) {
  const int last = x.shape().rank() - 1;
  std::int64_t rows = 1;
  for (int axis = 0; axis < last; ++axis) rows *= x.dim(axis);
  return x.View({rows, x.dim(last)});
}

// Whether the window is valid and fits at least once into images `x`.
inline bool Fits(const Window2d& window, const Tensor& x) {
  return window.kernel_h >= 1 && window.kernel_w >= 1 && window.stride_h >= 1 &&
         window.stride_w >= 1 && window.pad_h >= 0 && window.pad_w >= 0 &&
         window.dilation_h >= 1 && window.dilation_w >= 1 &&
         x.dim(1) + 2 * window.pad_h >= window.SpanH() &&
         x.dim(2) + 2 * window.pad_w >= window.SpanW();
}

// View signals [N, L, C] as images [N, 1, L, C], and filters [O, C, K] as
// [O, C, 1, K]; images and their filters stay as they are. The views are for
// kernels, not for the tape.
inline Tensor AsImages(const Tensor& x) {
  return x.shape().rank() == 3 ? x.View({x.dim(0), 1, x.dim(1), x.dim(2)}) : x;
}
inline Tensor AsFilters(const Tensor& w) {
  return w.shape().rank() == 3 ? w.View({w.dim(0), w.dim(1), 1, w.dim(2)}) : w;
}

// Whether `b` is undefined or a bias for weight `w`, whose first axis counts
// outputs.
inline bool IsBiasOf(const Tensor& w, const Tensor& b) {
  return !b.defined() ||
         (b.shape() == Shape{w.dim(0)} && b.dtype() == w.dtype());
}

// Allocates a gradient for weight `w` if it has none: kernels always write that
// of the weight, even if only the bias's is wanted (the weight is frozen).
inline absl::Status EnsureWeightGrad(Kernels& kernels, const Tensor& w,
                                     WeightGrad& grad) {
  if (grad.wanted()) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(
      grad.grad, Tensor::Create(w.shape(), w.dtype(), kernels.allocator()));
  return kernels.Fill(0.0, grad.grad);  // the kernel may add to it
}

// Ends a forward: fails the context with the kernel's error, or if an input is
// a view of a tracked tensor; otherwise records `make_node()` if backward needs
// it.
template <typename MakeNode>
Tensor Finish(Context& ctx, const absl::Status& status,
              absl::Span<const Tensor> inputs, int num_weights, Tensor& y,
              MakeNode make_node) {
  if (!status.ok()) return ctx.Fail(status);
  if (!ctx.Tracks(inputs)) return y;
  auto node = make_node();  // may copy y, so before y is moved from
  const absl::Status inputs_fit = ctx.tape()->CheckInputs(node->name(), inputs);
  if (!inputs_fit.ok()) return ctx.Fail(inputs_fit);
  return ctx.tape()->Record(std::move(node), inputs, num_weights, std::move(y));
}

}  // namespace troupe::nn::ops

#endif  // NN_OPS_OP_UTIL_H_
