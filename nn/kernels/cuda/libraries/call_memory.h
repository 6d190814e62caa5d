// Memory of one call of an op that a library computes: workspaces, aligned
// copies of operands, and results that are copied to their tensor afterwards.
//
//   CallMemory memory(gpu);
//   TROUPE_ASSIGN_OR_RETURN(const void* from, memory.Read(x));
//   TROUPE_ASSIGN_OR_RETURN(void* to, memory.Write(y, /*read_too=*/false));
//   TROUPE_ASSIGN_OR_RETURN(void* workspace, memory.Bytes(1 << 20));
//   TROUPE_RETURN_IF_ERROR(Enqueue(from, to, workspace));
//   return memory.Finish();                        // y has its numbers
//
// Libraries need operands at multiples of kOperandAlignmentBytes. Tensors are
// aligned except for slices that begin at odd rows; these are copied, on
// `gpu.stream`, so that the algorithm, and with it the last bits, does not
// depend on the address.
//
// Lifetime: destroyed before the op returns, while its work may still be
// queued: the allocator reuses blocks in the order of the stream
// (library_ops.h).

#ifndef NN_KERNELS_CUDA_LIBRARIES_CALL_MEMORY_H_
#define NN_KERNELS_CUDA_LIBRARIES_CALL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/kernels/cuda/libraries/library_ops.h"
#include "nn/kernels/cuda/libraries/matrix_kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::cuda {

class CallMemory {
 public:
  explicit CallMemory(const LibraryOps& gpu) : gpu_(gpu) {}

  // Allocates memory; returns null for 0 bytes.
  //   kResourceExhausted: no memory is left.
  absl::StatusOr<void*> Bytes(std::size_t bytes);
  // Returns an aligned address of the elements of `t`, in place or in a copy;
  // null if `t` is undefined.
  absl::StatusOr<const void*> Read(const Tensor& t);
  // Returns an aligned address at which to write the elements of `t`. With
  // `read_too`, it holds the present elements.
  absl::StatusOr<void*> Write(Tensor& t, bool read_too);
  // Copies results from their aligned copies to the tensors.
  absl::Status Finish();

 private:
  struct Result {
    Tensor to;
    const void* from;
  };

  absl::Status Copy(const Elements& to, const ConstElements& from,
                    std::int64_t count);

  const LibraryOps& gpu_;
  std::vector<StoragePtr> blocks_;
  std::vector<Result> results_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CALL_MEMORY_H_
