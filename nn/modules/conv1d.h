// One-dimensional convolution over signals (torch.nn.Conv1d).
//
//   Conv1d conv(8, 16, Window1d{3});  // weight [16, 8, 3], bias [16]
//   Tensor y = conv(ctx, x);          // (N, L, 8) -> (N, L - 2, 16)
//
// Options and default initialisation are those of Conv2d, with
// fan_in = in_channels / groups * kernel.

#ifndef NN_MODULES_CONV1D_H_
#define NN_MODULES_CONV1D_H_

#include <cstdint>

#include "nn/kernels/window1d.h"
#include "nn/modules/module.h"
#include "nn/ops/conv_options.h"

namespace troupe::nn {

class Conv1d : public Module {
 public:
  struct Options : ConvOptions {
    bool bias = true;
    DType dtype = DType::kF32;
  };
  Conv1d(std::int64_t in_channels, std::int64_t out_channels,
         const Window1d& window)
      : Conv1d(in_channels, out_channels, window, Options()) {}
  Conv1d(std::int64_t in_channels, std::int64_t out_channels,
         const Window1d& window, const Options& options);

  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  const Window1d window_;
  const ConvOptions options_;
  Parameter& weight_;
  Parameter* bias_ = nullptr;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_CONV1D_H_
