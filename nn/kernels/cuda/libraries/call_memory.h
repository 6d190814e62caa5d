// Memory of one call of an op that a library computes: workspaces, copies of
// operands, results that go elsewhere afterwards.
//
//   CallMemory memory(gpu);
//   TROUPE_ASSIGN_OR_RETURN(const void* from, memory.Read(x));
//   TROUPE_ASSIGN_OR_RETURN(void* to, memory.Write(y, /*read_too=*/false));
//   TROUPE_ASSIGN_OR_RETURN(void* workspace, memory.Bytes(1 << 20));
//   TROUPE_RETURN_IF_ERROR(Enqueue(from, to, workspace));
//   return memory.Finish();                        // y has its numbers
//
// Libraries want operands at multiples of kOperandAlignmentBytes. Tensors lie
// there but for slices at odd rows; those are copied, on `gpu.stream`, so that
// the algorithm, and with it the last bits, do not depend on the address.
//
// Lifetime: gone before the op returns, while its work may still be queued: the
// allocator's blocks come back in the order of the stream (library_ops.h).

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

  // Null for no bytes.
  //   kResourceExhausted: there is none left.
  absl::StatusOr<void*> Bytes(std::size_t bytes);
  // Where the elements of `t` can be read; null for an undefined one.
  absl::StatusOr<const void*> Read(const Tensor& t);
  // Where to write the elements of `t`, and, where they are `read_too`, to read
  // them before.
  absl::StatusOr<void*> Write(Tensor& t, bool read_too);
  // Takes what was written to where it belongs.
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
