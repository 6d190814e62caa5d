// Conversions between the floating dtypes, rounding to nearest, ties to even.

#ifndef NN_KERNELS_CPU_CONVERT_H_
#define NN_KERNELS_CPU_CONVERT_H_

#include "nn/kernels/cpu/loops.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::cpu {

// y = x, element by element. Tensors of one dtype are copied, whatever the
// dtype; returns false if the dtypes differ and one is not floating.
bool ConvertAny(const Loops& loops, const Tensor& x, Tensor& y);

// y = value. Returns false if the dtype is an integer type that cannot hold it
// exactly, such as 0.5 for i32 or 300 for u8.
bool FillAny(double value, Tensor& y);

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CONVERT_H_
