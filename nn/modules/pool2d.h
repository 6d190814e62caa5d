// Max and average pooling (torch.nn.MaxPool2d, AvgPool2d, AdaptiveAvgPool2d).
//
//   MaxPool2d pool(2);                    // 2x2, stride 2
//   Tensor y = pool(ctx, x);              // (N, 28, 28, C) -> (N, 14, 14, C)
//   AdaptiveAvgPool2d mean(1);            // (N, H, W, C) -> (N, 1, 1, C)
//   MaxPool2d wide(Window2d{3, 2, 3, 2}, {/*ceil_mode=*/true});
//
// A stride of 0 means the kernel's extent, PyTorch's default.

#ifndef NN_MODULES_POOL2D_H_
#define NN_MODULES_POOL2D_H_

#include <cstdint>

#include "nn/modules/module.h"
#include "nn/ops/pool2d.h"

namespace troupe::nn {

class MaxPool2d : public Module {
 public:
  explicit MaxPool2d(std::int64_t kernel, std::int64_t stride = 0,
                     std::int64_t padding = 0,
                     const MaxPoolOptions& options = {});
  explicit MaxPool2d(const Window2d& window, const MaxPoolOptions& options = {})
      : window_(window), options_(options) {}
  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  const Window2d window_;
  const MaxPoolOptions options_;
};

class AvgPool2d : public Module {
 public:
  explicit AvgPool2d(std::int64_t kernel, std::int64_t stride = 0,
                     std::int64_t padding = 0,
                     const AvgPoolOptions& options = {});
  explicit AvgPool2d(const Window2d& window, const AvgPoolOptions& options = {})
      : window_(window), options_(options) {}
  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  const Window2d window_;
  const AvgPoolOptions options_;
};

class AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(std::int64_t size)
      : AdaptiveAvgPool2d(size, size) {}
  AdaptiveAvgPool2d(std::int64_t rows, std::int64_t columns)
      : rows_(rows), columns_(columns) {}
  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  const std::int64_t rows_, columns_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_POOL2D_H_
