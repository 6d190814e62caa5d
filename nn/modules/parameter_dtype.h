// Converts a model to another precision: all of its floating parameters become
// bf16, say, and with inputs of that dtype all results computed from them.
//
//   SetParameterDType(*model, DType::kBF16);
//
// Kernels add up in f32 whatever the dtype (docs/numerics.md); optimizers keep
// f32 values beside 16-bit ones with OptimizerOptions::f32_master. Floating
// buffers become f64 with kF64, otherwise f32: running statistics would not
// move in 16 bits. Call it when the model is made, before a plan or an arena is
// made from it.

#ifndef NN_MODULES_PARAMETER_DTYPE_H_
#define NN_MODULES_PARAMETER_DTYPE_H_

#include "nn/modules/module.h"
#include "nn/tensor/dtype.h"

namespace troupe::nn {

// Sets the dtype of all floating parameters and, to f32 or f64, of floating
// buffers; `dtype` must be floating.
void SetParameterDType(Module& model, DType dtype);

}  // namespace troupe::nn

#endif  // NN_MODULES_PARAMETER_DTYPE_H_
