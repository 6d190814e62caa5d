// Linear layers by matrix products, for the ops of linear layers and for
// convolutions that are linear layers of their pixels.
//
//   status = LinearForward(gpu, x_NK, w_MK, b_M, y_NM);
//
// Letters, undefined tensors and errors are those of nn/kernels/linear.h;
// batches of no samples are fine. What all of a library's ops have in common is
// here, too. Threads and memory: library_ops.h.

#ifndef NN_KERNELS_CUDA_LIBRARIES_LINEAR_H_
#define NN_KERNELS_CUDA_LIBRARIES_LINEAR_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nn/kernels/cuda/libraries/library_ops.h"
#include "nn/kernels/op.h"

namespace troupe::nn::cuda {

absl::Status LinearForward(LibraryOps& gpu, In x, In w, In b, Tensor& y);
absl::Status LinearBackwardInput(LibraryOps& gpu, In dy, In w, Tensor& dx);
absl::Status LinearBackwardWeight(LibraryOps& gpu, In x, In dy, bool accumulate,
                                  Tensor& dw, Tensor& db);

// c (+)= a b (+ bias), as the spec says. Its dtypes are those of the tensors,
// and `gpu` says whether TF32 may be used.
absl::Status Multiply(LibraryOps& gpu, MatmulSpec spec, In a, In b, In bias,
                      Tensor& c);

// db (+)= the sum of the rows of dy, seen as [rows, elements of db]; nothing
// where db is undefined.
absl::Status BiasGradient(LibraryOps& gpu, In dy, bool accumulate, Tensor& db);

// Zeros, unless they are to be added.
absl::Status AddNothing(LibraryOps& gpu, bool accumulate, Tensor& t);

inline bool LibraryComputes(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

// The op is kKernel(*state, args...); its errors begin with the op's name.
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
        return absl::Status(
            status.code(),
            absl::StrCat(op.name(), " on ", op.device().ToString(), ": ",
                         status.message()));
      },
      state);
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_LINEAR_H_
