// A model in another precision: all of its floating parameters become bf16,
// say, and with inputs of that dtype all that is computed from them.
//
//   SetParameterDType(*model, DType::kBF16);
//
// Kernels add up in f32 whatever the dtype (docs/numerics.md); optimizers keep
// f32 values beside 16 bits with OptimizerOptions::f32_master. Buffers stay as
// they are: running statistics would not move in 16 bits. Called when the model
// is made, before a plan or an arena is made of it.

#ifndef NN_MODULES_PARAMETER_DTYPE_H_
#define NN_MODULES_PARAMETER_DTYPE_H_

#include "nn/modules/module.h"
#include "nn/tensor/dtype.h"

namespace troupe::nn {

// `dtype` is a floating one.
void SetParameterDType(Module& model, DType dtype);

}  // namespace troupe::nn

#endif  // NN_MODULES_PARAMETER_DTYPE_H_
