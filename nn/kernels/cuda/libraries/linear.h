// Linear layers by matrix products, for the ops of linear layers and for 1x1
// convolutions, which are linear layers of their pixels. Also functions that
// all library ops share.
//
//   status = LinearForward(gpu, x_NK, w_MK, b_M, y_NM);
//
// Letters, undefined tensors and errors are those of nn/kernels/linear.h;
// batches without samples are allowed. Threads and memory: library_ops.h.

#ifndef NN_KERNELS_CUDA_LIBRARIES_LINEAR_H_
#define NN_KERNELS_CUDA_LIBRARIES_LINEAR_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "nn/kernels/cuda/libraries/library_ops.h"
#include "nn/kernels/op.h"

namespace troupe::nn::cuda {

absl::Status LinearForward(LibraryOps& gpu, In x, In w, In b, Tensor& y);
absl::Status LinearBackwardInput(LibraryOps& gpu, In dy, In w, Tensor& dx);
absl::Status LinearBackwardWeight(LibraryOps& gpu, In x, In dy, bool accumulate,
                                  Tensor& dw, Tensor& db);

// Computes c (+)= a b (+ bias), as the spec says. The dtypes of the spec are
// set from the tensors, and allow_tf32 from `gpu`.
absl::Status Multiply(LibraryOps& gpu, MatmulSpec spec, In a, In b, In bias,
                      Tensor& c);

// Computes db (+)= the sum of the rows of dy, viewed as [rows, elements of db].
// Does nothing if db is undefined.
absl::Status BiasGradient(LibraryOps& gpu, In dy, bool accumulate, Tensor& db);

// Adds a gradient of no samples: sets `t` to zeros, or does nothing if
// `accumulate`.
absl::Status AddNothing(LibraryOps& gpu, bool accumulate, Tensor& t);

inline bool LibraryComputes(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

// Binds the op to kKernel(*state, args...). Errors begin with the op's name.
template <auto kKernel, typename... Args>
void BindLibrary(LibraryOps* state, Op<absl::Status(Args...)>& op) {
  using ThisOp = Op<absl::Status(Args...)>;
  op.BindFunction(
      [](const ThisOp& op, Args... args) -> absl::Status {
        const DType dtype = DTypeOfNumbers(args...);
        if (!LibraryComputes(dtype)) {
          return DoesNotCompute(op.name(), dtype, op.device());
        }
        const absl::Status status =
            kKernel(op.template state<LibraryOps>(), args...);
        if (status.ok()) return status;
        return base::WithMessage(
            status, absl::StrCat(op.name(), " on ", op.device().ToString(),
                                 ": ", status.message()));
      },
      state);
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_LINEAR_H_
