// Interface to the files in which programs keep tensors by name.
//
//   for (std::size_t i = 0; i < source.tensors().size(); ++i) {
//     Show(source.tensors()[i].name, source.tensors()[i].shape);
//   }
//   absl::Status r = source.Read(0, into);
//
// Threads: any number of threads may read.

#ifndef NN_SERIALIZE_TENSOR_SOURCE_H_
#define NN_SERIALIZE_TENSOR_SOURCE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  // Dtype and shape, "bool[1, 1, 8, 8]", of a tensor that no Tensor can hold;
  // `dtype` and `shape` then mean nothing. Empty: the tensor can be read.
  std::string unreadable = {};
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::vector<StoredTensor>& tensors() const = 0;
  // Fills `into`, which is on the host and has dtype and shape of
  // tensors()[index], a readable one. Errors name the file.
  virtual absl::Status Read(std::size_t index, const Tensor& into) const = 0;
};

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TENSOR_SOURCE_H_
