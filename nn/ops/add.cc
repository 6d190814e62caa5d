#include "nn/ops/add.h"

#include "nn/ops/add_node.h"
#include "nn/ops/binary.h"

namespace troupe::nn::ops {

Tensor Add(Context& ctx, const Tensor& a, const Tensor& b) {
  return Binary(ctx, "add", BinaryFunction::kAdd, a, b, [&](const Tensor&) {
    return std::make_unique<AddNode>(a.shape(), b.shape());
  });
}

}  // namespace troupe::nn::ops
