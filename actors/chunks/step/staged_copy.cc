#include "actors/chunks/step/staged_copy.h"

#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

using nn::Queue;

absl::Status StagedCopy::Bring(const nn::Tensor& loaded, nn::Tensor& here) {
  nn::Kernels& kernels = *kernels_;
  Place& place = places_[turn_];
  turn_ = 1 - turn_;
  if (!place.tensor.defined() || place.tensor.shape() != loaded.shape() ||
      place.tensor.dtype() != loaded.dtype()) {
    TROUPE_ASSIGN_OR_RETURN(place.tensor,
                            nn::Tensor::Create(loaded.shape(), loaded.dtype(),
                                               kernels.allocator()));
    // Work of kCompute may still use the memory for another tensor.
    place.free = nn::Record(kernels, Queue::kCompute);
  }
  nn::Wait(kernels, Queue::kCopy, place.free);
  nn::CopyBytes(kernels, Queue::kCopy, loaded, place.tensor);
  const base::Event copied = nn::Record(kernels, Queue::kCopy);
  nn::Wait(kernels, Queue::kCompute, copied);
  if (here.dtype() == loaded.dtype()) {
    nn::CopyBytes(kernels, Queue::kCompute, place.tensor, here);
  } else {
    TROUPE_RETURN_IF_ERROR(kernels.Copy(place.tensor, here));
  }
  place.free = nn::Record(kernels, Queue::kCompute);
  return absl::OkStatus();
}

}  // namespace troupe::actors
