// A border around images (torch.nn.ZeroPad2d, ReflectionPad2d,
// ReplicationPad2d and CircularPad2d in one).
//
//   Pad2d pad({/*top=*/1, /*bottom=*/1, /*left=*/2, /*right=*/2,
//              PadMode::kReflect});
//   Tensor y = pad(ctx, x);          // (N, H, W, C) -> (N, H + 2, W + 4, C)

#ifndef NN_MODULES_PAD2D_H_
#define NN_MODULES_PAD2D_H_

#include "nn/modules/module.h"
#include "nn/ops/pad.h"

namespace troupe::nn {

class Pad2d : public Module {
 public:
  explicit Pad2d(const Padding2d& padding) : padding_(padding) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Pad2d(ctx, x, padding_);
  }

 private:
  const Padding2d padding_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_PAD2D_H_
