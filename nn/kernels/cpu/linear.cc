#include "nn/kernels/cpu/linear.h"

#include <algorithm>

#include "nn/kernels/cpu/bf16_kernels.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {
using Way = OneDnn::Way;

// Size of a block of a gradient that fits the second-level cache beside the
// values that it updates and the data that the product reads repeatedly.
constexpr std::int64_t kGradientBlock = std::int64_t{1} << 16;
// Limit below which a gradient fits that cache as a whole.
constexpr std::int64_t kGradientMin = 2 * kGradientBlock;

// Least number of rows that repays preparing the product's operands for each
// block.
constexpr std::int64_t kGradientRowsMin = 36;

// Returns the least number of rows with the same bits as in the whole; 0: no
// number has.
std::int64_t LinearRowsMin(const CpuDevice& cpu, DType dtype, std::int64_t n) {
  if (dtype == DType::kF32) return 1;
  if (dtype != DType::kBF16) return 0;
  return LinearRowsMinBF16(cpu, n);
}

}  // namespace

absl::Status LinearForward(CpuDevice& cpu, In x, In w, In b, Tensor& y) {
  const std::int64_t n = x.dim(0), k = x.dim(1), m = w.dim(0);
  if (cpu.uses_onednn() &&
      OneDnn::WantsLinear(Way::kForward, cpu.threads(), n, k, m)) {
    for (std::int64_t i = 0; b.defined() && i < n; ++i) {
      std::copy_n(b.data<float>(), m, y.data<float>() + i * m);
    }
    return cpu.onednn().Linear(Way::kForward, n, k, m, x.data<float>(),
                               w.data<float>(), /*accumulate=*/b.defined(),
                               y.data<float>());
  }
  if (cpu.uses_onednn() &&
      OneDnn::WantsLinear(Way::kBackwardInput, cpu.threads(), n, k, m)) {
    cpu.onednn().PrepareLinear();  // done before backward needs it
  }
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().linear_scratch(n, k, m)));
  cpu.loops().linear_forward(n, k, m, x.data<float>(), w.data<float>(),
                             /*ld=*/k, DataOrNull(b), y.data<float>(), scratch);
  return absl::OkStatus();
}

absl::Status LinearBackwardInput(CpuDevice& cpu, In dy, In w, Tensor& dx) {
  const std::int64_t n = dy.dim(0), k = w.dim(1), m = w.dim(0);
  if (cpu.uses_onednn() &&
      OneDnn::WantsLinear(Way::kBackwardInput, cpu.threads(), n, k, m)) {
    return cpu.onednn().Linear(Way::kBackwardInput, n, k, m, dy.data<float>(),
                               w.data<float>(), /*accumulate=*/false,
                               dx.data<float>());
  }
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().linear_scratch(n, k, m)));
  cpu.loops().linear_backward_input(n, k, m, dy.data<float>(), /*ld=*/m,
                                    w.data<float>(), /*accumulate=*/false,
                                    dx.data<float>(), scratch);
  return absl::OkStatus();
}

// Both keep to the loops here: oneDNN sums in an order that follows from the
// extents of the whole product.
absl::Status LinearForwardTerms(CpuDevice& cpu, In x, In w, TermRange terms,
                                Tensor& y) {
  const std::int64_t n = x.dim(0), ld = x.dim(1), m = w.dim(0);
  const std::int64_t k = terms.end - terms.begin;
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().linear_scratch(n, k, m)));
  cpu.loops().linear_forward(n, k, m, x.data<float>() + terms.begin,
                             w.data<float>() + terms.begin, ld, /*b=*/nullptr,
                             y.data<float>(), scratch);
  return absl::OkStatus();
}

absl::Status LinearBackwardInputTerms(CpuDevice& cpu, In dy, In w,
                                      TermRange terms, bool accumulate,
                                      Tensor& dx) {
  const std::int64_t n = dy.dim(0), k = w.dim(1), ld = dy.dim(1);
  const std::int64_t m = terms.end - terms.begin;
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().linear_scratch(n, k, m)));
  cpu.loops().linear_backward_input(n, k, m, dy.data<float>() + terms.begin, ld,
                                    w.data<float>() + terms.begin * k,
                                    accumulate, dx.data<float>(), scratch);
  return absl::OkStatus();
}

absl::Status LinearBackwardWeight(CpuDevice& cpu, In x, In dy, bool accumulate,
                                  Tensor& dw, Tensor& db) {
  const std::int64_t n = x.dim(0), k = x.dim(1), m = dy.dim(1);
  if (cpu.uses_onednn() &&
      OneDnn::WantsLinear(Way::kBackwardWeight, cpu.threads(), n, k, m)) {
    TROUPE_RETURN_IF_ERROR(
        cpu.onednn().Linear(Way::kBackwardWeight, n, k, m, x.data<float>(),
                            dy.data<float>(), accumulate, dw.data<float>()));
  } else {
    TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                            cpu.Scratch(cpu.loops().linear_scratch(n, k, m)));
    cpu.loops().linear_backward_weight(n, k, m, /*begin=*/0, /*rows=*/m,
                                       x.data<float>(), dy.data<float>(),
                                       accumulate, dw.data<float>(), scratch);
  }
  if (db.defined()) {
    cpu.loops().column_sums(n, m, dy.data<float>(), accumulate,
                            db.data<float>());
  }
  return absl::OkStatus();
}

absl::Status LinearBackwardWeightRows(CpuDevice& cpu, In x, In dy,
                                      std::int64_t begin, Tensor& dw) {
  const std::int64_t n = x.dim(0), k = x.dim(1), m = dy.dim(1);
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().linear_scratch(n, k, m)));
  cpu.loops().linear_backward_weight(
      n, k, m, begin, dw.dim(0), x.data<float>(), dy.data<float>(),
      /*accumulate=*/false, dw.data<float>(), scratch);
  return absl::OkStatus();
}

std::int64_t LinearGradientRows(const CpuDevice& cpu, DType dtype,
                                std::int64_t n, std::int64_t k,
                                std::int64_t m) {
  // With several threads, oneDNN computes large products and divides them as it
  // likes.
  if (cpu.threads() > 1 || k * m < kGradientMin) return 0;
  const std::int64_t least = LinearRowsMin(cpu, dtype, n);
  if (least == 0) return 0;
  const std::int64_t rows =
      std::max({kGradientBlock / k, kGradientRowsMin, least});
  return rows < m ? rows : 0;
}

template <>
void BindFamily(CpuDevice& cpu, LinearKernels& ops) {
  BindF32AndBF16<LinearForward, LinearForwardBF16>(cpu, ops.LinearForward);
  BindF32AndBF16<LinearBackwardInput, LinearBackwardInputBF16>(
      cpu, ops.LinearBackwardInput);
  BindF32AndBF16<LinearBackwardWeight, LinearBackwardWeightBF16>(
      cpu, ops.LinearBackwardWeight);
  BindF32AndBF16<LinearBackwardWeightRows, LinearBackwardWeightRowsBF16>(
      cpu, ops.LinearBackwardWeightRows);
  BindF32<LinearForwardTerms>(cpu, ops.LinearForwardTerms);
  BindF32<LinearBackwardInputTerms>(cpu, ops.LinearBackwardInputTerms);
}

}  // namespace troupe::nn::cpu
