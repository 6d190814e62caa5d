// The backward of a sum of two tensors, for ops that compute a sum and more.

#ifndef NN_OPS_ADD_NODE_H_
#define NN_OPS_ADD_NODE_H_

#include "nn/ops/broadcast.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {

// The node of y = a + b, broadcast; `a` and `b` are the shapes of the operands.
class AddNode final : public Node {
 public:
  AddNode(const Shape& a, const Shape& b) : shapes_{a, b} {}
  const char* name() const override { return "add"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    for (int i = 0; i < 2; ++i) {
      if (!wanted[i]) continue;
      TROUPE_ASSIGN_OR_RETURN(dx[i], SumTo(kernels, dy, shapes_[i]));
    }
    return absl::OkStatus();
  }

 private:
  const Shape shapes_[2];
};

}  // namespace troupe::nn::ops

#endif  // NN_OPS_ADD_NODE_H_
