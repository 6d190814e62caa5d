#include "nn/modules/pool2d.h"

#include "nn/ops/pool2d.h"

namespace troupe::nn {
namespace {

Window2d Square(std::int64_t kernel, std::int64_t stride,
                std::int64_t padding) {
  if (stride == 0) stride = kernel;
  return Window2d{kernel, kernel, stride, stride, padding, padding};
}

}  // namespace

MaxPool2d::MaxPool2d(std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding)
    : window_(Square(kernel, stride, padding)) {}

Tensor MaxPool2d::Forward(Context& ctx, const Tensor& x) {
  return ops::MaxPool2d(ctx, x, window_);
}

AvgPool2d::AvgPool2d(std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding)
    : window_(Square(kernel, stride, padding)) {}

Tensor AvgPool2d::Forward(Context& ctx, const Tensor& x) {
  return ops::AvgPool2d(ctx, x, window_);
}

}  // namespace troupe::nn
