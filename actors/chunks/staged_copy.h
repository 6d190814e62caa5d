// Brings tensors of the host to a device, one after the other, while it works:
// by two staging places there, which take turns.
//
//   StagedCopy inputs(kernels);
//   nn::Tensor here = nn::Tensor::Empty(shape, dtype, kernels.allocator());
//   status = inputs.Bring(loaded, here);      // kCompute finds it there
//
// Three tensors, of which the device works on the first meanwhile:
//
//     copy      |a0| place 0  b0     place 1  b1   |a2| place 0  b2
//     compute        |b0| 0 -> here  a2 .. work ..      |b2| 0 -> here ..
//
// The first hop is of the queue kCopy, and waits until its place is free, which
// is two tensors ago; the second is of kCompute. So the next batch is copied
// while the device works on this one, and nobody waits on the host. Where
// `here` has another floating dtype than what was loaded, the second hop
// converts.
//
// Errors: kResourceExhausted: there is no memory for a place. Threads: one at a
// time.

#ifndef ACTORS_CHUNKS_STAGED_COPY_H_
#define ACTORS_CHUNKS_STAGED_COPY_H_

#include "absl/status/status.h"
#include "base/event.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class StagedCopy {
 public:
  // `kernels` has queues, and outlives it.
  explicit StagedCopy(nn::Kernels& kernels) : kernels_(&kernels) {}

  // `here` is memory of the device, in the order of kCompute.
  absl::Status Bring(const nn::Tensor& loaded, nn::Tensor& here);

 private:
  struct Place {
    nn::Tensor tensor;
    base::Event free;  // its numbers were taken
  };

  nn::Kernels* kernels_;
  Place places_[2];
  int turn_ = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STAGED_COPY_H_
