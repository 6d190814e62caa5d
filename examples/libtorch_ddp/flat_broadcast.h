// Copies tensors of rank 0, of any dtypes, to all ranks by one broadcast.
//
//   FlatBroadcast buffers(rank, model->buffers());
//   buffers.Run();                              // all ranks
//
// The tensors are contiguous and on the CPU, of equal sizes on all ranks.
// Errors: base::StatusError, those of Group::Broadcast().
// Threads: the rank's own.

#ifndef FLAT_BROADCAST_H_
#define FLAT_BROADCAST_H_

#include <torch/types.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "troupe/rank.h"

class FlatBroadcast {
 public:
  FlatBroadcast(troupe::Rank& rank, std::vector<at::Tensor> tensors)
      : rank_(rank), tensors_(std::move(tensors)) {
    std::int64_t bytes = 0;
    for (const at::Tensor& tensor : tensors_) {
      TORCH_CHECK(tensor.is_contiguous() && tensor.is_cpu(),
                  "a tensor that is broadcast must be contiguous and on the "
                  "CPU; call contiguous()");
      bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
    flat_ = rank.Zeros({bytes}, troupe::DType::kU8).tensor();
  }

  void Run() const {
    if (flat_.numel() == 0 || rank_.size() == 1) return;
    const bool is_root = rank_.number() == 0;
    if (is_root) Copy(/*to_flat=*/true);
    rank_.world().Broadcast(flat_, /*root=*/0);
    if (!is_root) Copy(/*to_flat=*/false);
  }

 private:
  void Copy(bool to_flat) const {
    auto* flat = flat_.data<std::uint8_t>();
    for (const at::Tensor& tensor : tensors_) {
      void* const to = to_flat ? flat : tensor.data_ptr();
      const void* const from = to_flat ? tensor.data_ptr() : flat;
      std::memcpy(to, from, tensor.nbytes());
      flat += tensor.nbytes();
    }
  }

  troupe::Rank& rank_;
  const std::vector<at::Tensor> tensors_;
  troupe::Tensor flat_;
};

#endif  // FLAT_BROADCAST_H_
