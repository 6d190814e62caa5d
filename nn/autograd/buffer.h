// A tensor that a module keeps beside its parameters: saved in checkpoints, not
// trained. Running statistics, counters, fixed tables.
//
//   Buffer& mean = DeclareBuffer("running_mean", {channels}, /*initial=*/0);
//   ctx.Use(mean);                 // its value, a constant of the tape
//   if (ctx.updates_buffers()) kernels.Add(mean.value, delta, mean.value);
//
// A buffer is declared like a parameter: shape first, memory later
// (BindBuffers). Every rank has its own copy. A job gives all replicas the
// first one's before an evaluation and a checkpoint, which holds those; in
// between, each replica changes its own.
//
// An op may keep the value for its backward: a module that changes a buffer in
// forward must not pass that buffer to such an op.
//
// Threads: one at a time, the rank's compute strand.

#ifndef NN_AUTOGRAD_BUFFER_H_
#define NN_AUTOGRAD_BUFFER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

struct Buffer {
  std::string name;  // "0.running_mean": the module's path and its own name
  Shape shape;
  DType dtype = DType::kF32;
  double initial = 0;  // value of every element
  // Axis of the mesh along which all ranks compute the same value, as the
  // statistics of a synchronised batch norm. Empty: each computes its own.
  std::string same_along = {};

  Tensor value;  // meta until BindBuffers()
};

// Gives each buffer memory of the kernels' device, filled with its initial
// value. An error of the kernel that fills it has the buffer's name.
absl::Status BindBuffers(absl::Span<Buffer* const> buffers, Kernels& kernels);
// Does the same with one block of memory for each dtype, so that one collective
// can exchange all buffers of a dtype. Returns the blocks, which are flat, in
// the order of the dtypes' first buffers.
absl::StatusOr<std::vector<Tensor>> BindBuffersInBlocks(
    absl::Span<Buffer* const> buffers, Kernels& kernels);

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_BUFFER_H_
