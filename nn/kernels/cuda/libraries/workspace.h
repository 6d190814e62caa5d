// Aligns the workspace of a library's plan.
//
//   room = Allocate(WorkspaceRoom(bytes));
//   Multiply(AlignedWorkspace(room), bytes);     // what the library gets
//
// Allocators align to 64 bytes, which is enough for operands. Libraries expect
// a multiple of 256, as cudaMalloc() returns. That is the most likely reason
// why products of cuBLASLt 13.1 failed with CUBLAS_STATUS_INVALID_VALUE on an
// H200; an algorithm that fails is not chosen.

#ifndef NN_KERNELS_CUDA_LIBRARIES_WORKSPACE_H_
#define NN_KERNELS_CUDA_LIBRARIES_WORKSPACE_H_

#include <cstddef>
#include <cstdint>

namespace troupe::nn::cuda {

inline constexpr std::size_t kWorkspaceAlignmentBytes = 256;

// Returns the bytes to allocate for an aligned workspace of `bytes`; 0 for 0.
inline std::size_t WorkspaceRoom(std::size_t bytes) {
  return bytes == 0 ? 0 : bytes + kWorkspaceAlignmentBytes - 1;
}

// Returns the first aligned address in `room`; null for null.
inline void* AlignedWorkspace(void* room) {
  const auto address = reinterpret_cast<std::uintptr_t>(room);
  const std::uintptr_t past = address % kWorkspaceAlignmentBytes;
  return past == 0 ? room
                   : static_cast<char*>(room) + kWorkspaceAlignmentBytes - past;
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_WORKSPACE_H_
