#include "nn/kernels/reference/reference_ops.h"
#include "nn/random/philox.h"

namespace troupe::nn::reference {
namespace {

struct Dropout {
  template <typename T>
  static absl::Status Run(const DropoutMask& mask, In x, Tensor& y) {
    const std::int64_t N = x.dim(0);
    const std::int64_t elems = N == 0 ? 0 : x.numel() / N;
    const SampleDraws first = DrawsOf(mask);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t e = 0; e < elems; ++e) {
        const std::int64_t at = n * elems + e, draw = mask.DrawOf(e);
        std::uint32_t block[4];
        FillBits32(first.key, first.At(n), static_cast<std::uint32_t>(draw / 4),
                   absl::MakeSpan(block));
        const bool keep = block[draw % 4] >= mask.drop_below;
        to[at] = keep ? Store<T>(Load(from[at]) * mask.scale) : Store<T>(0);
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(DropoutKernels& ops) {
  BindFloating<Dropout>(ops.Dropout);
}

}  // namespace troupe::nn::reference
