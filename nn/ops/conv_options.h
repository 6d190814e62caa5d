// What the fronts of convolutions have beside their window.
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
  // Channels of x and y fall into so many groups, each a convolution of its
  // own; as many as channels: depthwise.
  std::int64_t groups = 1;
  // What stands in the window's padding.
  PadMode padding_mode = PadMode::kZeros;
  // PyTorch's padding="same": as much padding as makes y as large as x, the odd
  // pixel behind the image; the window's own is not looked at. Stride 1.
  bool same = false;
};

// Those of transposed convolutions.
struct ConvTransposeOptions {
  std::int64_t groups = 1;
  // Rows and columns that y has beyond those which x calls for.
  std::int64_t output_padding_h = 0, output_padding_w = 0;
};

}  // namespace troupe::nn

#endif  // NN_OPS_CONV_OPTIONS_H_
