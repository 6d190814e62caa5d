// A tensor with the context that it is computed in, for loops and models that
// read as in PyTorch: expressions take the context from their operands.
//
//   Var x(ctx, images);
//   Var y = 2 * x + 1;
//   Var loss = MeanSquaredError(y, Var(ctx, targets));
//   loss.Backward();                          // gradients of the mean
//   double value = loss.item();
//   Var tokens = y.Flatten().Unsqueeze(0)[0];
//
// Functions of a Var are in var_math.h, new tensors in create.h; any op of
// nn/ops is called as x.Apply(ops::Silu), and a Var is a `const Tensor&` for
// everything else. Copying a Var copies two handles, not the elements.
//
// Errors: an operation that fails throws base::StatusError, on its line, with
// the shapes. Outside of modules the context is as before; inside a module the
// module catches it, and the error has the path (nn/modules/module.h).
//
// Backward() ends the tape: what a Var has computed is a constant afterwards,
// so one that is kept from the last step holds no activations. The context must
// outlive the Var. In a job, whose contexts are shorter, a module keeps no Var.
//
// A loss (nn/ops/loss.h) is a sum and a count. As an operand it is its mean, a
// scalar of the prediction's dtype, so losses and penalties add up as in
// PyTorch. On a device, the mean and item() wait for its work.
//
// Threads: the same as for the context.

#ifndef NN_AUTOGRAD_VAR_H_
#define NN_AUTOGRAD_VAR_H_

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/types/span.h"
#include "nn/autograd/context.h"
#include "nn/autograd/parameter.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

class Var {
 public:
  Var() = default;
  // The result of an op in `ctx`. Throws the context's error if it has one.
  Var(Context& ctx, Tensor tensor);
  // A loss: statistics (nn/ops/loss.h) of predictions of `dtype`.
  static Var Loss(Context& ctx, Tensor statistics, DType dtype);

  operator const Tensor&() const { return tensor_; }
  const Tensor& tensor() const { return tensor_; }
  // Gives up the tensor, for an op that takes over its memory.
  Tensor Release() && { return std::move(tensor_); }
  // Throws if the Var is undefined.
  Context& context() const;

  bool defined() const { return tensor_.defined(); }
  const Shape& shape() const { return tensor_.shape(); }
  // `axis` counts from 0, or from the end when negative.
  std::int64_t dim(int axis) const { return tensor_.shape()[axis]; }
  std::int64_t numel() const { return tensor_.numel(); }
  DType dtype() const { return tensor_.dtype(); }
  bool is_loss() const { return is_loss_; }

  // Returns the only element, or the mean of a loss; waits for the device.
  double item() const;
  // Computes the gradients of this loss's mean, or of this one element, with
  // respect to all parameters that it was computed from, and adds them to those
  // of the step (Parameter::grad). The context's sink is told of each.
  void Backward() const;
  // Returns the same tensor as a constant: gradients stop here.
  Var Detached() const;
  // Returns the loss's mean as a scalar of the prediction's dtype; any other
  // Var as it is.
  Var Mean() const;

  // Returns op(context, tensor, arguments...), an op of nn/ops.
  template <typename Op, typename... Args>
  Var Apply(Op op, const Args&... arguments) const {
    Context& ctx = context();
    return Var(ctx, op(ctx, tensor_, arguments...));
  }
  // Returns a parameter's value, for a module that computes with its own.
  Var Use(Parameter& parameter) const {
    Context& ctx = context();
    return Var(ctx, ctx.Use(parameter));
  }

  // The same elements under another shape; one extent may be -1: the rest.
  Var View(absl::Span<const std::int64_t> extents) const;
  // Extents without braces are a compile error that says what to write.
  template <typename... Extents,
            std::enable_if_t<(sizeof...(Extents) > 0) &&
                                 (... && std::is_integral_v<Extents>),
                             int> = 0>
  Var View(Extents...) const {
    static_assert(sizeof...(Extents) == 0,
                  "View() takes the extents in braces: x.View({-1, 784})");
    return *this;
  }
  // [N, ...] to [N, features]; images in PyTorch's order (nn/ops/flatten.h).
  Var Flatten() const;
  // With a new axis of extent 1, which is axis `axis` of the result.
  Var Unsqueeze(int axis) const;
  // Without the axis, if its extent is 1; without all axes of extent 1.
  Var Squeeze(int axis) const;
  Var Squeeze() const;
  Var Transpose(int first, int second) const;
  Var Permute(absl::Span<const int> axes) const;
  template <
      typename... Axes,
      std::enable_if_t<
          (sizeof...(Axes) > 0) && (... && std::is_integral_v<Axes>), int> = 0>
  Var Permute(Axes...) const {
    static_assert(sizeof...(Axes) == 0,
                  "Permute() takes the axes in braces: x.Permute({0, 2, 1})");
    return *this;
  }
  // Element `index` of the first axis, without that axis; negative: from the
  // end.
  Var operator[](std::int64_t index) const;
  // Indices [begin, end) of an axis; negative ones count from the end.
  static constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  Var Slice(std::int64_t begin, std::int64_t end = kEnd, int axis = 0) const;

  Var Relu() const;
  Var Sigmoid() const;
  Var Tanh() const;
  Var Softmax(int axis = -1) const;
  Var LogSoftmax(int axis = -1) const;

  // Change the elements in place, for all handles. They are no ops of autograd:
  // they throw if this, or `other`, was computed from a parameter (under a
  // NoGrad guard, nothing is). Tensors that backward has saved must not be
  // changed before it.
  Var& operator+=(double value);
  Var& operator-=(double value);
  Var& operator*=(double factor);
  Var& operator/=(double divisor);
  Var& operator+=(const Var& other);
  Var& operator-=(const Var& other);
  Var& operator*=(const Var& other);
  Var& operator/=(const Var& other);

 private:
  Context* ctx_ = nullptr;
  Tensor tensor_;
  bool is_loss_ = false;
  DType of_loss_ = DType::kF32;  // dtype of the predictions of a loss
};

// Computes element by element; tensors are broadcast as in nn/ops/arithmetic.h.
Var operator-(const Var& x);
Var operator+(const Var& a, const Var& b);
Var operator-(const Var& a, const Var& b);
Var operator*(const Var& a, const Var& b);
Var operator/(const Var& a, const Var& b);
Var operator+(const Var& a, double b);
Var operator-(const Var& a, double b);
Var operator*(const Var& a, double b);
Var operator/(const Var& a, double b);
Var operator+(double a, const Var& b);
Var operator-(double a, const Var& b);
Var operator*(double a, const Var& b);
Var operator/(double a, const Var& b);

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_VAR_H_
