// The extents of a convolution or pooling in the form of the loops.
//
//   const ImageShape shape = ImageShapeOf(window, x.shape(), y.shape());

#ifndef NN_KERNELS_CPU_WINDOW_SHAPE_H_
#define NN_KERNELS_CPU_WINDOW_SHAPE_H_

#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/window2d.h"
#include "nn/tensor/shape.h"

namespace troupe::nn::cpu {

// x is (N, H, W, C), y is (N, P, Q, O).
inline ImageShape ImageShapeOf(const Window2d& window, const Shape& x,
                               const Shape& y) {
  return {x[0],
          x[1],
          x[2],
          x[3],
          y[1],
          y[2],
          y[3],
          window.kernel_h,
          window.kernel_w,
          window.stride_h,
          window.stride_w,
          window.pad_h,
          window.pad_w,
          window.dilation_h,
          window.dilation_w};
}

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_WINDOW_SHAPE_H_
