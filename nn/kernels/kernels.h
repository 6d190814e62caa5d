// The kernel set of one device. Fronts in nn/ops check shapes and record the
// tape; kernels only compute, on tensors that have memory.
//
//   std::unique_ptr<Kernels> kernels = CreateCpuKernels({});
//   status = kernels->LinearForward(x, w, b, y);       // y = x w^T + b
//
// The ops are those of the families below, one header for each; op.h explains
// how code over all ops is written, and families.h how a device binds its
// kernels. Images are (N, H, W, C) on every device.
//
// The same call on the same numbers gives the same bits, on any thread and at
// any address: a kernel is chosen from shape and instruction set alone.
//
// Threads: one thread at a time per object (it holds primitives and scratch
// memory); one object per rank. Errors: kUnimplemented for an op or a dtype
// that the set does not compute, naming op, dtype and device. Cost: no
// allocation after the first call with a shape.

#ifndef NN_KERNELS_KERNELS_H_
#define NN_KERNELS_KERNELS_H_

#include <cstdint>
#include <string>

#include "nn/kernels/attention.h"
#include "nn/kernels/batch_norm.h"
#include "nn/kernels/bias.h"
#include "nn/kernels/binary.h"
#include "nn/kernels/conv2d.h"
#include "nn/kernels/dropout.h"
#include "nn/kernels/elementwise.h"
#include "nn/kernels/embedding.h"
#include "nn/kernels/families.h"
#include "nn/kernels/indexing.h"
#include "nn/kernels/layout.h"
#include "nn/kernels/linear.h"
#include "nn/kernels/loss.h"
#include "nn/kernels/matmul.h"
#include "nn/kernels/norm.h"
#include "nn/kernels/optimizer.h"
#include "nn/kernels/pad2d.h"
#include "nn/kernels/pool2d.h"
#include "nn/kernels/reduction.h"
#include "nn/kernels/rotary.h"
#include "nn/kernels/select.h"
#include "nn/kernels/softmax.h"
#include "nn/kernels/strided.h"
#include "nn/kernels/unary.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/device.h"

namespace troupe::nn {

class DeviceQueues;

// The bases are the list of families: no other file names them all.
class Kernels
    : public Families<
          LinearKernels, AttentionKernels, RotaryKernels, Conv2dKernels,
          Pool2dKernels, NormKernels, BatchNormKernels, Pad2dKernels,
          BiasKernels, ElementwiseKernels, DropoutKernels, EmbeddingKernels,
          LayoutKernels, LossKernels, OptimizerKernels, UnaryKernels,
          BinaryKernels, SoftmaxKernels, ReductionKernels, MatMulKernels,
          StridedKernels, SelectKernels, IndexingKernels> {
 public:
  virtual ~Kernels() = default;

  Device device() const { return device_; }
  // Allocator of this device's tensors.
  virtual Allocator& allocator() = 0;
  // Queues, events and copies of a device that executes asynchronously
  // (device_queues.h); null if calls return when their work is done.
  virtual DeviceQueues* queues() { return nullptr; }
  // Returns the number of rows of a linear weight's gradient dw[M, K] that
  // LinearBackwardWeightRows computes best at a time, for callers that use them
  // while they are in the cache. 0: compute it whole, since parts would have
  // other bits, or bring no gain.
  virtual std::int64_t LinearGradientRows(DType /*dtype*/, std::int64_t /*n*/,
                                          std::int64_t /*k*/,
                                          std::int64_t /*m*/) const {
    return 0;
  }
  // Returns one line for logs: "cpu:0, avx512 with bf16, 1 thread, oneDNN
  // 2.6.3".
  virtual std::string Describe() const = 0;

 protected:
  explicit Kernels(Device device) : device_(device) {
    ForEachOp([&](auto op) { (this->*op).set_device(device); });
  }

 private:
  const Device device_;
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_KERNELS_H_
