// How a reference kernel is written and bound. It is a template over the type
// of an element, in a file named like its family of ops:
//
//   struct Add {
//     template <typename T>
//     static absl::Status Run(In a, In b, Tensor& y);
//   };
//   BindFloating<Add>(ops.Add);       // for f32, f64, bf16 and f16
//
// Loop letters are those of the ops' headers: N batch, K M features, C O
// channels, H W input pixels, P Q output pixels, R S filter rows and columns.

#ifndef NN_KERNELS_REFERENCE_REFERENCE_OPS_H_
#define NN_KERNELS_REFERENCE_REFERENCE_OPS_H_

#include <cstdint>

#include "nn/kernels/kernels.h"
#include "nn/kernels/reference/element.h"

namespace troupe::nn::reference {

template <typename Kernel, typename... Args>
void BindFloating(Op<absl::Status(Args...)>& op) {
  using ThisOp = Op<absl::Status(Args...)>;
  op.BindFunction(
      [](const ThisOp& op, Args... args) -> absl::Status {
        return ForFloating(op.name(), DTypeOfNumbers(args...), [&](auto e) {
          return Kernel::template Run<decltype(e)>(args...);
        });
      },
      nullptr);
}

// Where row `out` of a window's output reads its row `tap`, counted in input
// rows: the input row, or -1 in the padding. The same for columns.
inline std::int64_t InputAt(std::int64_t out, std::int64_t stride,
                            std::int64_t pad, std::int64_t tap,
                            std::int64_t extent) {
  const std::int64_t at = out * stride - pad + tap;
  return at >= 0 && at < extent ? at : -1;
}

// The output row whose window has `in` at row `tap`, or -1 if there is none.
inline std::int64_t OutputAt(std::int64_t in, std::int64_t stride,
                             std::int64_t pad, std::int64_t tap,
                             std::int64_t extent) {
  const std::int64_t at = in + pad - tap;
  if (at < 0 || at % stride != 0 || at / stride >= extent) return -1;
  return at / stride;
}

void BindLinear(LinearKernels& ops);
void BindAttention(AttentionKernels& ops);
void BindRotary(RotaryKernels& ops);
void BindConv2d(Conv2dKernels& ops);
void BindPool2d(Pool2dKernels& ops);
void BindBatchNorm(BatchNormKernels& ops);
void BindBias(BiasKernels& ops);
void BindNorm(NormKernels& ops);
void BindPad2d(Pad2dKernels& ops);
void BindElementwise(ElementwiseKernels& ops);
void BindDropout(DropoutKernels& ops);
void BindEmbedding(EmbeddingKernels& ops);
void BindLayout(LayoutKernels& ops);
void BindLoss(LossKernels& ops);
void BindOptimizer(OptimizerKernels& ops);
void BindUnary(UnaryKernels& ops);
void BindBinary(BinaryKernels& ops);
void BindSoftmax(SoftmaxKernels& ops);
void BindReduction(ReductionKernels& ops);
void BindMatMul(MatMulKernels& ops);
void BindStrided(StridedKernels& ops);

}  // namespace troupe::nn::reference

#endif  // NN_KERNELS_REFERENCE_REFERENCE_OPS_H_
