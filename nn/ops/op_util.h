// Shared by the op fronts: errors with shapes, and the end of every forward.

#ifndef NN_OPS_OP_UTIL_H_
#define NN_OPS_OP_UTIL_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
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

// Ends a forward: keeps the kernel's error, or records `make_node()` where
// backward will want it.
template <typename MakeNode>
Tensor Finish(Context& ctx, const absl::Status& status,
              absl::Span<const Tensor> inputs, int num_weights, Tensor& y,
              MakeNode make_node) {
  if (!status.ok()) return ctx.Fail(status);
  if (!ctx.Tracks(inputs)) return y;
  return ctx.tape()->Record(make_node(), inputs, num_weights, std::move(y));
}

}  // namespace troupe::nn::ops

#endif  // NN_OPS_OP_UTIL_H_
