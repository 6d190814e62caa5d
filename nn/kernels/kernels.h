// The kernel set of one device: numbers in, numbers out. Fronts in nn/ops check
// shapes and record the tape; kernels only compute, on tensors that exist.
//
//   std::unique_ptr<Kernels> kernels = CreateCpuKernels({});
//   status = kernels->LinearForward(x, w, b, y);       // y = x w^T + b
//
// The ops are those of the families below, one header for each; op.h says how
// a device brings its kernels, and how code over all ops is written. Images are
// (N, H, W, C) on every device.
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
#include "nn/kernels/softmax.h"
#include "nn/kernels/strided.h"
#include "nn/kernels/unary.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/device.h"

namespace troupe::nn {

class DeviceQueues;

class Kernels : public LinearKernels,
                public AttentionKernels,
                public RotaryKernels,
                public Conv2dKernels,
                public Pool2dKernels,
                public NormKernels,
                public BatchNormKernels,
                public Pad2dKernels,
                public BiasKernels,
                public ElementwiseKernels,
                public DropoutKernels,
                public EmbeddingKernels,
                public LayoutKernels,
                public LossKernels,
                public OptimizerKernels,
                public UnaryKernels,
                public BinaryKernels,
                public SoftmaxKernels,
                public ReductionKernels,
                public MatMulKernels,
                public StridedKernels {
 public:
  virtual ~Kernels() = default;

  Device device() const { return device_; }
  // The memory this device's tensors come from.
  virtual Allocator& allocator() = 0;
  // Queues, events and copies of a device that works later than it is told
  // (device_queues.h); null where calls return when their work is done.
  virtual DeviceQueues* queues() { return nullptr; }
  // For whoever uses a gradient dw[M, K] of a linear weight while it is in the
  // cache: how many rows LinearBackwardWeightRows computes best at a time. 0:
  // the whole is computed at once, since parts would not have its bits, or
  // nothing is gained.
  virtual std::int64_t LinearGradientRows(DType /*dtype*/, std::int64_t /*n*/,
                                          std::int64_t /*k*/,
                                          std::int64_t /*m*/) const {
    return 0;
  }
  // One line for logs: "cpu:0, avx512 with bf16, 1 thread, oneDNN 2.6.3".
  virtual std::string Describe() const = 0;

  // Calls visit(op) for every op of every family, with a pointer to the member:
  //
  //   Kernels::ForEachOp([&](auto op) { LOG((kernels.*op).name()); });
  template <typename Visit>
  static void ForEachOp(Visit visit) {
    LinearKernels::ForEachOp(visit);
    AttentionKernels::ForEachOp(visit);
    RotaryKernels::ForEachOp(visit);
    Conv2dKernels::ForEachOp(visit);
    Pool2dKernels::ForEachOp(visit);
    NormKernels::ForEachOp(visit);
    BatchNormKernels::ForEachOp(visit);
    Pad2dKernels::ForEachOp(visit);
    BiasKernels::ForEachOp(visit);
    ElementwiseKernels::ForEachOp(visit);
    DropoutKernels::ForEachOp(visit);
    EmbeddingKernels::ForEachOp(visit);
    LayoutKernels::ForEachOp(visit);
    LossKernels::ForEachOp(visit);
    OptimizerKernels::ForEachOp(visit);
    UnaryKernels::ForEachOp(visit);
    BinaryKernels::ForEachOp(visit);
    SoftmaxKernels::ForEachOp(visit);
    ReductionKernels::ForEachOp(visit);
    MatMulKernels::ForEachOp(visit);
    StridedKernels::ForEachOp(visit);
  }

 protected:
  explicit Kernels(Device device) : device_(device) {
    ForEachOp([&](auto op) { (this->*op).set_device(device); });
  }

 private:
  const Device device_;
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_KERNELS_H_
