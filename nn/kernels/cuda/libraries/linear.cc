#include "nn/kernels/cuda/libraries/linear.h"

#include "base/check.h"
#include "nn/kernels/cuda/libraries/call_memory.h"
#include "nn/kernels/cuda/libraries/matrix_kernels.h"

namespace troupe::nn::cuda {

absl::Status Multiply(LibraryOps& gpu, MatmulSpec spec, In a, In b, In bias,
                      Tensor& c) {
  spec.dtype = a.dtype();
  spec.out_dtype = c.dtype();
  spec.allow_tf32 = gpu.allow_tf32 && spec.dtype == DType::kF32;
  TROUPE_ASSIGN_OR_RETURN(MatmulPlan* const plan,
                          gpu.matmuls->Get(spec, gpu.stream));
  CallMemory memory(gpu);
  MatmulOperands operands;
  TROUPE_ASSIGN_OR_RETURN(operands.a, memory.Read(a));
  TROUPE_ASSIGN_OR_RETURN(operands.b, memory.Read(b));
  TROUPE_ASSIGN_OR_RETURN(operands.bias, memory.Read(bias));
  TROUPE_ASSIGN_OR_RETURN(operands.c, memory.Write(c, spec.accumulate));
  TROUPE_ASSIGN_OR_RETURN(void* const workspace,
                          memory.Bytes(plan->workspace_bytes()));
  TROUPE_RETURN_IF_ERROR(plan->Run(operands, workspace, gpu.stream));
  return memory.Finish();
}

absl::Status LinearForward(LibraryOps& gpu, In x_NK, In w_MK, In b_M,
                           Tensor& y_NM) {
  if (x_NK.dim(0) == 0) return absl::OkStatus();
  MatmulSpec spec;
  spec.rows = x_NK.dim(0), spec.cols = w_MK.dim(0), spec.depth = x_NK.dim(1);
  spec.transpose_b = true;
  spec.epilogue = b_M.defined() ? Epilogue::kBias : Epilogue::kNone;
  return Multiply(gpu, spec, x_NK, w_MK, b_M, y_NM);
}

absl::Status LinearBackwardInput(LibraryOps& gpu, In dy_NM, In w_MK,
                                 Tensor& dx_NK) {
  if (dy_NM.dim(0) == 0) return absl::OkStatus();
  MatmulSpec spec;
  spec.rows = dy_NM.dim(0), spec.cols = w_MK.dim(1), spec.depth = w_MK.dim(0);
  return Multiply(gpu, spec, dy_NM, w_MK, /*bias=*/Tensor(), dx_NK);
}

absl::Status LinearBackwardWeight(LibraryOps& gpu, In x_NK, In dy_NM,
                                  bool accumulate, Tensor& dw_MK,
                                  Tensor& db_M) {
  if (x_NK.dim(0) == 0) {
    TROUPE_RETURN_IF_ERROR(AddNothing(gpu, accumulate, dw_MK));
    return AddNothing(gpu, accumulate, db_M);
  }
  MatmulSpec spec;
  spec.rows = dy_NM.dim(1), spec.cols = x_NK.dim(1), spec.depth = x_NK.dim(0);
  spec.transpose_a = true;
  spec.accumulate = accumulate;
  TROUPE_RETURN_IF_ERROR(
      Multiply(gpu, spec, dy_NM, x_NK, /*bias=*/Tensor(), dw_MK));
  // The product's epilogue (kRowSums) is not used, because it cannot add to the
  // gradient; the first and later micro-batches must use one order of sums.
  return BiasGradient(gpu, dy_NM, accumulate, db_M);
}

absl::Status BiasGradient(LibraryOps& gpu, In dy, bool accumulate,
                          Tensor& db_M) {
  if (!db_M.defined()) return absl::OkStatus();
  const MatrixShape shape{dy.numel() / db_M.numel(), db_M.numel()};
  CallMemory memory(gpu);
  TROUPE_ASSIGN_OR_RETURN(void* const scratch,
                          memory.Bytes(ColumnSumsScratchBytes(shape)));
  return ColumnSums(shape, {dy.dtype(), dy.device_data()}, accumulate,
                    {db_M.dtype(), db_M.device_data()}, scratch, gpu.stream);
}

absl::Status AddNothing(LibraryOps& gpu, bool accumulate, Tensor& t) {
  if (accumulate || !t.defined() || t.bytes() == 0) return absl::OkStatus();
  // Column sums over no rows are zeros.
  return ColumnSums({0, t.numel()}, {t.dtype(), t.device_data()},
                    /*accumulate=*/false, {t.dtype(), t.device_data()},
                    /*scratch=*/nullptr, gpu.stream);
}

void BindLinear(LinearKernels& ops, LibraryOps* state) {
  BindLibrary<LinearForward>(state, ops.LinearForward);
  BindLibrary<LinearBackwardInput>(state, ops.LinearBackwardInput);
  BindLibrary<LinearBackwardWeight>(state, ops.LinearBackwardWeight);
}

}  // namespace troupe::nn::cuda
