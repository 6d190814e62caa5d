#include "nn/kernels/cuda/device/peer_access.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cuda/cuda_status.h"

namespace troupe::nn::cuda {

absl::Status PeerAccess::Enable(int peer) {
  if (peer == ordinal_ ||
      std::find(enabled_.begin(), enabled_.end(), peer) != enabled_.end()) {
    return absl::OkStatus();
  }
  int can = 0;
  TROUPE_RETURN_IF_ERROR(
      base::CudaStatus(cudaDeviceCanAccessPeer(&can, ordinal_, peer),
                       "cudaDeviceCanAccessPeer"));
  if (can == 0) {
    return absl::UnavailableError(absl::StrCat(
        "cuda:", ordinal_, " cannot reach the memory of cuda:", peer,
        "; use GPUs that are peers for the ranks of one process"));
  }
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(peer, /*flags=*/0);
  if (enabled != cudaErrorPeerAccessAlreadyEnabled) {
    TROUPE_RETURN_IF_ERROR(
        base::CudaStatus(enabled, "cudaDeviceEnablePeerAccess"));
  } else {
    cudaGetLastError();
  }
  enabled_.push_back(peer);
  return absl::OkStatus();
}

}  // namespace troupe::nn::cuda
