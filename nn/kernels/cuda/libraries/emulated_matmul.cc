// Products by plain loops on the CPU, behind the interface of matmul.h. Tests
// that emulate CUDA link it instead of cuBLASLt. Sums are in f64, or in f32 in
// one of two orders (emulated_choice.h); the epilogue is computed in f64, and
// the result is rounded once.

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/cuda/emulated/enqueue.h"
#include "nn/kernels/cuda/libraries/emulated_choice.h"
#include "nn/kernels/cuda/libraries/emulated_elements.h"
#include "nn/kernels/cuda/libraries/matmul.h"
#include "nn/kernels/cuda/libraries/plan_cache.h"

namespace troupe::nn::cuda {
namespace {

using Values = std::vector<double>;

// Returns the transpose of x[rows, cols].
Values Transposed(const Values& x, std::int64_t rows, std::int64_t cols) {
  Values y(x.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) y[j * rows + i] = x[i * cols + j];
  }
  return y;
}

// Computes s[rows, cols] += a[rows, depth] b[depth, cols], rounding s to `Sum`
// after each addition.
template <typename Sum>
void AddProduct(const MatmulSpec& spec, const Values& a, const Values& b,
                bool reversed, Values& s) {
  for (std::int64_t i = 0; i < spec.rows; ++i) {
    double* row = s.data() + i * spec.cols;
    for (std::int64_t n = 0; n < spec.depth; ++n) {
      const std::int64_t k = reversed ? spec.depth - 1 - n : n;
      const double factor = a[i * spec.depth + k];
      const double* from = b.data() + k * spec.cols;
      for (std::int64_t j = 0; j < spec.cols; ++j) {
        row[j] = static_cast<Sum>(row[j] + factor * from[j]);
      }
    }
  }
}

// Return sqrt(2/pi) (x + 0.044715 x^3), and its derivative.
double GeluArgument(double x) {
  return 0.7978845608028654 * (x + 0.044715 * x * x * x);
}
double GeluArgumentSlope(double x) {
  return 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

double Gelu(double x) { return 0.5 * x * (1 + std::tanh(GeluArgument(x))); }

double GeluSlope(double x) {
  const double t = std::tanh(GeluArgument(x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * GeluArgumentSlope(x);
}

void AddBias(const MatmulSpec& spec, const void* bias, Values& s) {
  const Values added = WidenAll(bias, spec.out_dtype, spec.cols);
  for (std::size_t i = 0; i < s.size(); ++i) s[i] += added[i % spec.cols];
}

void WriteRowSums(const MatmulSpec& spec, const Values& a, void* row_sums) {
  Values sums(static_cast<std::size_t>(spec.rows), 0.0);
  for (std::size_t i = 0; i < a.size(); ++i) sums[i / spec.depth] += a[i];
  RoundAll(sums, spec.out_dtype, row_sums);
}

// Applies the epilogue to the product `s`; kGeluBias also writes aux.
void ApplyEpilogue(const MatmulSpec& spec, const MatmulOperands& operands,
                   Values& s) {
  if (spec.has_bias()) AddBias(spec, operands.bias, s);
  switch (spec.epilogue) {
    case Epilogue::kReluBias:
      for (double& value : s) value = value <= 0 ? 0 : value;  // NaN stays
      break;
    case Epilogue::kGeluBias:
      RoundAll(s, spec.out_dtype, operands.aux);
      for (double& value : s) value = Gelu(value);
      break;
    case Epilogue::kGeluBackward: {
      const Values x = WidenAll(operands.aux, spec.out_dtype,
                                static_cast<std::int64_t>(s.size()));
      for (std::size_t i = 0; i < s.size(); ++i) s[i] *= GeluSlope(x[i]);
      break;
    }
    default:
      break;
  }
}

void Multiply(const MatmulSpec& spec, const MatmulOperands& operands,
              EmulatedSums sums) {
  Values a = WidenAll(operands.a, spec.dtype, spec.rows * spec.depth);
  Values b = WidenAll(operands.b, spec.dtype, spec.depth * spec.cols);
  if (spec.transpose_a) a = Transposed(a, spec.depth, spec.rows);
  if (spec.transpose_b) b = Transposed(b, spec.cols, spec.depth);
  const std::int64_t count = spec.rows * spec.cols;
  Values s = spec.accumulate ? WidenAll(operands.c, spec.out_dtype, count)
                             : Values(static_cast<std::size_t>(count), 0.0);
  if (sums == EmulatedSums::kF64) {
    AddProduct<double>(spec, a, b, /*reversed=*/false, s);
  } else {
    AddProduct<float>(spec, a, b, sums == EmulatedSums::kF32Reversed, s);
  }
  ApplyEpilogue(spec, operands, s);
  if (spec.epilogue == Epilogue::kRowSums) {
    WriteRowSums(spec, a, operands.row_sums);
  }
  RoundAll(s, spec.out_dtype, operands.c);
}

class EmulatedPlan final : public MatmulPlan {
 public:
  EmulatedPlan(const MatmulSpec& spec, EmulatedSums sums)
      : MatmulPlan(spec, kEmulatedSumsNames[static_cast<int>(sums)],
                   kEmulatedWorkspaceBytes),
        sums_(sums) {}

  absl::Status Run(const MatmulOperands& operands, void* workspace,
                   cudaStream_t stream) override {
    TROUPE_RETURN_IF_ERROR(CheckOperands(spec(), operands));
    return EnqueuedStatus(
        "Matmul", emulated_cuda::EnqueueHostWork(
                      stream, {"Matmul", __FILE__, __LINE__},
                      [spec = spec(), operands, workspace, sums = sums_] {
                        PoisonWorkspace(workspace);
                        Multiply(spec, operands, sums);
                      }));
  }

 private:
  const EmulatedSums sums_;
};

using Emulated =
    EmulatedLibrary<MatmulSpec, MatmulPlan, EmulatedPlan, cudaStream_t>;

}  // namespace

std::string MatmulLibraryName() { return "emulated products"; }

absl::StatusOr<std::unique_ptr<MatmulPlans>> OpenMatmulPlans(
    const LibraryOptions& options) {
  return std::make_unique<LibraryPlans<Emulated, MatmulPlans>>(options);
}

}  // namespace troupe::nn::cuda
