// The GPUs whose memory kernels of one GPU may access.
//
//   PeerAccess peers(/*ordinal=*/0);
//   TROUPE_RETURN_IF_ERROR(peers.Enable(tensor.device().index));
//
// Threads: the device's, whose GPU is the current one.

#ifndef NN_KERNELS_CUDA_DEVICE_PEER_ACCESS_H_
#define NN_KERNELS_CUDA_DEVICE_PEER_ACCESS_H_

#include <vector>

#include "absl/status/status.h"

namespace troupe::nn::cuda {

class PeerAccess {
 public:
  explicit PeerAccess(int ordinal) : ordinal_(ordinal) {}

  // Enables access to the memory of the GPU `peer`; does nothing if it is
  // enabled, or this one.
  //   kUnavailable: they are no peers.
  absl::Status Enable(int peer);

 private:
  const int ordinal_;
  std::vector<int> enabled_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_PEER_ACCESS_H_
