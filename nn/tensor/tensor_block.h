// Tensors of any shapes and dtypes side by side in one block of memory, so that
// one copy moves them all.
//
//   const std::vector<Tensor> like = {inputs, targets};
//   TROUPE_ASSIGN_OR_RETURN(const TensorBlock here,
//                           TensorBlock::Create(like, host_allocator));
//   TROUPE_ASSIGN_OR_RETURN(const TensorBlock there,
//                           TensorBlock::Create(like, kernels.allocator()));
//   CopyBytes(kernels, Queue::kCopy, here.bytes(), there.bytes());
//   there.tensors()[1];                       // shape and dtype of targets
//
// Blocks of the same list have the same layout. Each tensor keeps the whole
// block alive and begins at a multiple of kPartAlignmentBytes within it.
//
// Threads: the same as for a tensor.

#ifndef NN_TENSOR_TENSOR_BLOCK_H_
#define NN_TENSOR_TENSOR_BLOCK_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

class TensorBlock {
 public:
  // Alignment for the kernels with the widest loads.
  static constexpr std::size_t kPartAlignmentBytes = 256;

  // Allocates room for tensors of these shapes and dtypes; `like` may hold meta
  // tensors.
  //   kResourceExhausted: the same as Tensor::Create().
  static absl::StatusOr<TensorBlock> Create(const std::vector<Tensor>& like,
                                            Allocator& allocator);
  // Returns the bytes that a block for `like` takes.
  static std::size_t BytesOf(const std::vector<Tensor>& like);

  // The whole block as u8[n], with the padding between the tensors.
  const Tensor& bytes() const { return bytes_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  Tensor bytes_;
  std::vector<Tensor> tensors_;
};

}  // namespace troupe::nn

#endif  // NN_TENSOR_TENSOR_BLOCK_H_
