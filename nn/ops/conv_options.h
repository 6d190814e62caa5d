// Options of convolutions beside their window.
//
//   ConvOptions options;
//   options.groups = 32;
//   options.padding_mode = PadMode::kCircular;

#ifndef NN_OPS_CONV_OPTIONS_H_
#define NN_OPS_CONV_OPTIONS_H_

#include <cstdint>

#include "nn/kernels/pad2d.h"

namespace troupe::nn {

struct ConvOptions {
  // Number of groups of channels of x and y, each a convolution of its own; as
  // many as channels: depthwise.
  std::int64_t groups = 1;
  // Contents of the window's padding.
  PadMode padding_mode = PadMode::kZeros;
  // Whether to pad as PyTorch's padding="same": so much that y is as large as
  // x, with the odd pixel behind the image. Ignores the window's own padding;
  // needs stride 1.
  bool same = false;
};

// Options of transposed convolutions.
struct ConvTransposeOptions {
  std::int64_t groups = 1;
  // Number of rows and columns that y has beyond the smallest size for x.
  std::int64_t output_padding_h = 0, output_padding_w = 0;
};

}  // namespace troupe::nn

#endif  // NN_OPS_CONV_OPTIONS_H_
