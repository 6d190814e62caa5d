// Max and average pooling (torch.nn.MaxPool2d, torch.nn.AvgPool2d).
//
//   MaxPool2d pool(2);                    // 2x2, stride 2
//   Tensor y = pool(ctx, x);              // (N, 28, 28, C) -> (N, 14, 14, C)
//
// A stride of 0 means the kernel's extent, PyTorch's default.

#ifndef NN_MODULES_POOL2D_H_
#define NN_MODULES_POOL2D_H_

#include <cstdint>

#include "nn/modules/module.h"

namespace troupe::nn {

class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(std::int64_t kernel, std::int64_t stride = 0,
                     std::int64_t padding = 0);
  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  Window2d window_;
};

class AvgPool2d : public Module {
 public:
  explicit AvgPool2d(std::int64_t kernel, std::int64_t stride = 0,
                     std::int64_t padding = 0);
  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  Window2d window_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_POOL2D_H_
