// How a reference kernel is written and bound: it is a template over the
// element type, in a file named like its family of ops:
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

// Returns the input row that row `tap` of the window of output row `out` reads,
// or -1 in the padding; `tap` counts input rows. The same for columns.
inline std::int64_t InputAt(std::int64_t out, std::int64_t stride,
                            std::int64_t pad, std::int64_t tap,
                            std::int64_t extent) {
  const std::int64_t at = out * stride - pad + tap;
  return at >= 0 && at < extent ? at : -1;
}

// Returns the output row whose window has `in` at row `tap`, or -1 if none.
inline std::int64_t OutputAt(std::int64_t in, std::int64_t stride,
                             std::int64_t pad, std::int64_t tap,
                             std::int64_t extent) {
  const std::int64_t at = in + pad - tap;
  if (at < 0 || at % stride != 0 || at / stride >= extent) return -1;
  return at / stride;
}

// Binds the kernels of a family to its ops. The family's file specializes it.
template <typename Family>
void BindFamily(Family& ops);

}  // namespace troupe::nn::reference

#endif  // NN_KERNELS_REFERENCE_REFERENCE_OPS_H_
