// Converts tensors of floats on the host, one of them or both 16 bits wide.
//
//   ConvertInto(tensor, /*transpose=*/false, converted);

#ifndef NN_SERIALIZE_FLOAT_CONVERSION_H_
#define NN_SERIALIZE_FLOAT_CONVERSION_H_

#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Writes the elements of `from` to `to`, which may have another floating dtype,
// rounded once. `transpose`: `from` is [rows, columns], `to` [columns, rows].
// Both are floats on the host, of equal size.
void ConvertInto(const Tensor& from, bool transpose, const Tensor& to);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_FLOAT_CONVERSION_H_
