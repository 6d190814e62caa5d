// Converts elements of device memory to doubles and back, for host code that
// replaces libraries in tests that emulate CUDA.
//
//   std::vector<double> x = WidenAll(operands.a, spec.dtype, count);
//   RoundAll(sums, spec.out_dtype, operands.c);
//
// f32, bf16 and f16; each element is rounded once, to nearest. Only for code
// that runs as an operation of a stream (base/cuda/emulated/enqueue.h).

#ifndef NN_KERNELS_CUDA_LIBRARIES_EMULATED_ELEMENTS_H_
#define NN_KERNELS_CUDA_LIBRARIES_EMULATED_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/tensor/dtype.h"

namespace troupe::nn::cuda {

// Calls fn(T{}) with the type T of `dtype`.
template <typename Fn>
void ForEmulated(DType dtype, Fn fn) {
  switch (dtype) {
    case DType::kF32:
      return fn(float{});
    case DType::kBF16:
      return fn(bf16{});
    case DType::kF16:
      return fn(f16{});
    default:
      TROUPE_CHECK(false, "a spec that was checked has f32, bf16 or f16");
  }
}

inline std::vector<double> WidenAll(const void* from, DType dtype,
                                    std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  ForEmulated(dtype, [&](auto element) {
    const auto* elements = static_cast<const decltype(element)*>(from);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = ToF64(elements[i]);
    }
  });
  return values;
}

inline void RoundAll(const std::vector<double>& values, DType dtype, void* to) {
  ForEmulated(dtype, [&](auto element) {
    using T = decltype(element);
    auto* elements = static_cast<T*>(to);
    for (std::size_t i = 0; i < values.size(); ++i) {
      elements[i] = FromF64<T>(values[i]);
    }
  });
}

// Size of a workspace that the algorithms do not need. Their work overwrites it
// with NaNs, so that tests detect a wrong address.
inline constexpr std::size_t kEmulatedWorkspaceBytes = 256;

// Converts the result of EnqueueHostWork(): null, or the name of an error.
inline absl::Status EnqueuedStatus(const char* what, const char* error) {
  if (error == nullptr) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": ", error));
}

inline void PoisonWorkspace(void* workspace) {
  std::memset(workspace, 0xFF, kEmulatedWorkspaceBytes);
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_EMULATED_ELEMENTS_H_
