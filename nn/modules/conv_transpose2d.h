// Transposed convolution over images (torch.nn.ConvTranspose2d).
//
//   ConvTranspose2d up(16, 8, Window2d{2, 2, 2, 2});   // weight [16, 8, 2, 2]
//   Tensor y = up(ctx, x);                // (N, H, W, 16) -> (N, 2 H, 2 W, 8)
//
// Default initialisation as in PyTorch: U(-1/sqrt(fan_in), 1/sqrt(fan_in)) with
// fan_in = out_channels / groups * kernel height * kernel width, following from
// weights [in_channels, out_channels / groups, R, S].

#ifndef NN_MODULES_CONV_TRANSPOSE2D_H_
#define NN_MODULES_CONV_TRANSPOSE2D_H_

#include <cstdint>

#include "nn/modules/module.h"
#include "nn/ops/conv_transpose2d.h"

namespace troupe::nn {

class ConvTranspose2d : public Module {
 public:
  struct Options : ConvTransposeOptions {
    bool bias = true;
    DType dtype = DType::kF32;
  };
  ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels,
                  const Window2d& window)
      : ConvTranspose2d(in_channels, out_channels, window, Options()) {}
  ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels,
                  const Window2d& window, const Options& options);

  Tensor Forward(Context& ctx, const Tensor& x) override;

 private:
  const Window2d window_;
  const ConvTransposeOptions options_;
  Parameter& weight_;
  Parameter* bias_ = nullptr;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_CONV_TRANSPOSE2D_H_
