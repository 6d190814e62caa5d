// A tensor that a module keeps beside its parameters: saved in checkpoints, not
// trained. Running statistics, counters, fixed tables.
//
//   Buffer& mean = DeclareBuffer("running_mean", {channels}, /*initial=*/0);
//   ctx.Use(mean);                 // its value, a constant of the tape
//   if (ctx.updates_buffers()) kernels.Add(mean.value, delta, mean.value);
//
// A buffer is declared like a parameter: shape first, memory later
// (BindBuffers). Every rank has its own copy, which is not kept equal to those
// of its peers; a checkpoint holds the first replica's, and all replicas load
// it.
//
// An op may keep the value for its backward: a module that changes a buffer in
// forward must not pass that buffer to such an op.
//
// Threads: one at a time, the rank's compute strand.

#ifndef NN_AUTOGRAD_BUFFER_H_
#define NN_AUTOGRAD_BUFFER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

struct Buffer {
  std::string name;  // "0.running_mean": the module's path and its own name
  Shape shape;
  DType dtype = DType::kF32;
  double initial = 0;  // value of every element

  Tensor value;  // meta until BindBuffers()
};

// Gives each buffer memory of the kernels' device, filled with its initial
// value. An error of the kernel that fills it has the buffer's name.
absl::Status BindBuffers(absl::Span<Buffer* const> buffers, Kernels& kernels);

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_BUFFER_H_
