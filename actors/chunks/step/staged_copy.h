// Copies tensors from the host to a device, one after the other, while it works
// (double buffering): two staging buffers on the device take turns.
//
//   StagedCopy inputs(kernels);
//   nn::Tensor here = nn::Tensor::Empty(shape, dtype, kernels.allocator());
//   status = inputs.Bring(loaded, here);      // kCompute may read it
//
// Copies of three tensors; meanwhile the device works on the first:
//
//     copy      |a0| place 0  b0     place 1  b1   |a2| place 0  b2
//     compute        |b0| 0 -> here  a2 .. work ..      |b2| 0 -> here ..
//
// The queue kCopy makes the first copy, once the tensor before the last has
// left its place; kCompute makes the second. The next batch is thus copied
// while the device works on this one, and the host never waits. If `here` has
// another floating dtype than the loaded tensor, the second copy converts.
//
// Errors: kResourceExhausted: there is no memory for a staging buffer.
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_STEP_STAGED_COPY_H_
#define ACTORS_CHUNKS_STEP_STAGED_COPY_H_

#include "absl/status/status.h"
#include "base/event.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class StagedCopy {
 public:
  // `kernels` has queues, and outlives it.
  explicit StagedCopy(nn::Kernels& kernels) : kernels_(&kernels) {}

  // Copies `loaded` to `here`, which is memory of the device, in the order of
  // kCompute.
  absl::Status Bring(const nn::Tensor& loaded, nn::Tensor& here);

 private:
  struct Place {
    nn::Tensor tensor;
    base::Event free;  // completes when the tensor may be overwritten
  };

  nn::Kernels* kernels_;
  Place places_[2];
  int turn_ = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_STAGED_COPY_H_
