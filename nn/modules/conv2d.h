// Two-dimensional convolution over images (torch.nn.Conv2d).
//
//   Conv2d conv(3, 6, Window2d{5, 5});        // weight [6, 3, 5, 5], bias [6]
//   Tensor y = conv(ctx, x);  // (N, 32, 32, 3) -> (N, 28, 28, 6)
//
//   Conv2d::Options options;
//   options.groups = 6;                       // weight [6, 1, 3, 3]: depthwise
//   options.padding_mode = PadMode::kReflect;
//   Conv2d depthwise(6, 6, Window2d{3, 3, 1, 1, 1, 1}, options);
//
// The window also has stride, padding and dilation. Default initialisation as
// in PyTorch: U(-1/sqrt(fan_in), 1/sqrt(fan_in)) with
// fan_in = in_channels / groups * kernel height * kernel width.

#ifndef NN_MODULES_CONV2D_H_
#define NN_MODULES_CONV2D_H_

#include <cstdint>

#include "nn/modules/module.h"
#include "nn/ops/conv_options.h"

namespace troupe::nn {

class Conv2d : public Module {
 public:
  struct Options : ConvOptions {
    bool bias = true;
    DType dtype = DType::kF32;
  };
  Conv2d(std::int64_t in_channels, std::int64_t out_channels,
         const Window2d& window)
      : Conv2d(in_channels, out_channels, window, Options()) {}
  Conv2d(std::int64_t in_channels, std::int64_t out_channels,
         const Window2d& window, const Options& options);

  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  const Window2d window_;
  const ConvOptions options_;
  Parameter& weight_;
  Parameter* bias_ = nullptr;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_CONV2D_H_
