#include "nn/modules/pool2d.h"

namespace troupe::nn {
namespace {

Window2d Square(std::int64_t kernel, std::int64_t stride,
                std::int64_t padding) {
  if (stride == 0) stride = kernel;
  return Window2d{kernel, kernel, stride, stride, padding, padding};
}

}  // namespace

MaxPool2d::MaxPool2d(std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding, const MaxPoolOptions& options)
    : window_(Square(kernel, stride, padding)), options_(options) {}

Tensor MaxPool2d::Forward(Context& ctx, const Tensor& x) {
  return ops::MaxPool2d(ctx, x, window_, options_);
}

AvgPool2d::AvgPool2d(std::int64_t kernel, std::int64_t stride,
                     std::int64_t padding, const AvgPoolOptions& options)
    : window_(Square(kernel, stride, padding)), options_(options) {}

Tensor AvgPool2d::Forward(Context& ctx, const Tensor& x) {
  return ops::AvgPool2d(ctx, x, window_, options_);
}

Tensor AdaptiveAvgPool2d::Forward(Context& ctx, const Tensor& x) {
  return ops::AdaptiveAvgPool2d(ctx, x, rows_, columns_);
}

}  // namespace troupe::nn
