// Converts a model to another floating dtype (PyTorch's
// model.to(torch.float64)).
//
//   ToDType(*model, DType::kF64);
//
// Call it when the model is made, before a plan or an arena is made from it:
// until then its parameters have a dtype and no memory.

#ifndef NN_MODULES_TO_DTYPE_H_
#define NN_MODULES_TO_DTYPE_H_

#include "base/check.h"
#include "nn/modules/module.h"

namespace troupe::nn {

// Sets the dtype of parameters and floating buffers to `dtype`, a floating one.
// For 16 bits, buffers become f32: in 16 bits running statistics would lose the
// contribution of a batch.
inline void ToDType(Module& model, DType dtype) {
  TROUPE_CHECK(IsFloating(dtype), "models are of a floating dtype");
  for (Parameter* p : model.Parameters()) {
    p->dtype = dtype;
    p->value = Tensor::Meta(p->shape, dtype, Device{});
  }
  const DType of_buffers = SizeOf(dtype) < 4 ? DType::kF32 : dtype;
  for (Buffer* b : model.Buffers()) {
    if (!IsFloating(b->dtype)) continue;
    b->dtype = of_buffers;
    b->value = Tensor::Meta(b->shape, of_buffers, Device{});
  }
}

}  // namespace troupe::nn

#endif  // NN_MODULES_TO_DTYPE_H_
