// The sliding window of a convolution or pooling over images.
//
//   Window2d window{/*kernel_h=*/5, /*kernel_w=*/5};
//   window.OutH(28);                          // 24
//   window.dilation_h = 2;                    // every other row of 9
//   window.OutH(28);                          // 20
//   Window2d square = 5;                      // 5 by 5

#ifndef NN_KERNELS_WINDOW2D_H_
#define NN_KERNELS_WINDOW2D_H_

#include <cstdint>

namespace troupe::nn {

// Height first, then width.
struct Window2d {
  // Sides, strides, paddings and dilations; the defaults are PyTorch's.
  constexpr Window2d() = default;
  constexpr Window2d(std::int64_t kernel)
      : kernel_h(kernel), kernel_w(kernel) {}
  constexpr Window2d(std::int64_t kernel_rows, std::int64_t kernel_cols,
                     std::int64_t stride_rows = 1, std::int64_t stride_cols = 1,
                     std::int64_t pad_rows = 0, std::int64_t pad_cols = 0,
                     std::int64_t dilation_rows = 1,
                     std::int64_t dilation_cols = 1)
      : kernel_h(kernel_rows),
        kernel_w(kernel_cols),
        stride_h(stride_rows),
        stride_w(stride_cols),
        pad_h(pad_rows),
        pad_w(pad_cols),
        dilation_h(dilation_rows),
        dilation_w(dilation_cols) {}

  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_h = 0, pad_w = 0;  // zeros (conv) or nothing (pool)
  // Distance from one tap to the next, in input pixels.
  std::int64_t dilation_h = 1, dilation_w = 1;

  // Number of input pixels from the first tap to the last.
  std::int64_t SpanH() const { return dilation_h * (kernel_h - 1) + 1; }
  std::int64_t SpanW() const { return dilation_w * (kernel_w - 1) + 1; }

  // Returns the output extent for an input extent; a valid window gives at
  // least 1.
  std::int64_t OutH(std::int64_t h) const {
    return (h + 2 * pad_h - SpanH()) / stride_h + 1;
  }
  std::int64_t OutW(std::int64_t w) const {
    return (w + 2 * pad_w - SpanW()) / stride_w + 1;
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_WINDOW2D_H_
