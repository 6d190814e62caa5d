// Compares every kind of product of matmul.h with its definition in f64: by
// plain loops on the emulation, by cuBLASLt on a GPU if there is one
// (matmul_gpu_test). Convolutions are tested as ops (ops_test.cc).

#include "nn/kernels/cuda/libraries/matmul.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "nn/tensor/tensor.h"
#include "tests/base/cuda/emulated/test_device.h"
#include "tests/nn/kernels/cuda/test_kernels.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn::cuda {
namespace {

using Values = std::vector<double>;

double Gelu(double x) {
  const double u = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}

// Computes the slope by differences, so that the test does not repeat a wrong
// formula of the code.
double GeluSlope(double x) { return (Gelu(x + 1e-6) - Gelu(x - 1e-6)) / 2e-6; }

// The operands of a product, in memory that the host can also access.
struct Product {
  Tensor a, b, c, bias, aux, row_sums;
};

// Returns the element of row i and column j of the product, before the
// epilogue.
double SumAt(const MatmulSpec& spec, const Values& a, const Values& b,
             std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t k = 0; k < spec.depth; ++k) {
    sum += a[spec.transpose_a ? k * spec.rows + i : i * spec.depth + k] *
           b[spec.transpose_b ? j * spec.depth + k : k * spec.cols + j];
  }
  return sum;
}

struct Want {
  Values c, aux, row_sums;
};

// Returns the expected results of a product with the operands `before`.
Want WantOf(const MatmulSpec& spec, const Product& before) {
  const Values a = ValuesOf(before.a), b = ValuesOf(before.b);
  const Values bias = ValuesOf(before.bias);
  Want want{ValuesOf(before.c), ValuesOf(before.aux),
            ValuesOf(before.row_sums)};
  for (std::int64_t i = 0; i < spec.rows; ++i) {
    for (std::int64_t j = 0; j < spec.cols; ++j) {
      double& c = want.c[i * spec.cols + j];
      double& aux = want.aux[i * spec.cols + j];
      double s = SumAt(spec, a, b, i, j) + (spec.accumulate ? c : 0);
      if (spec.has_bias()) s += bias[j];
      if (spec.epilogue == Epilogue::kReluBias) s = std::fmax(s, 0);
      if (spec.epilogue == Epilogue::kGeluBias) {
        aux = s;
        s = Gelu(s);
      }
      if (spec.epilogue == Epilogue::kGeluBackward) s *= GeluSlope(aux);
      c = s;
    }
    if (spec.epilogue != Epilogue::kRowSums) continue;
    want.row_sums[i] = 0;
    for (std::int64_t k = 0; k < spec.depth; ++k) {
      want.row_sums[i] +=
          a[spec.transpose_a ? k * spec.rows + i : i * spec.depth + k];
    }
  }
  return want;
}

class MatmulTest : public testing::TestWithParam<MatmulSpec> {
 protected:
  void SetUp() override {
    const std::string why_not = emulated_cuda_test::WhyNoDevice();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    CachingAllocator::Options options;
    options.source = SharedMemory();
    memory_ = std::make_unique<CachingAllocator>(options);
  }

  Tensor Draws(const std::string& name, std::int64_t count, DType dtype) {
    return MakeTensor({count}, dtype, NormalDraws(name, count), *memory_);
  }
  Product Operands(const MatmulSpec& spec) {
    return {Draws("a", spec.rows * spec.depth, spec.dtype),
            Draws("b", spec.depth * spec.cols, spec.dtype),
            Draws("c", spec.rows * spec.cols, spec.out_dtype),
            Draws("bias", spec.cols, spec.out_dtype),
            Draws("aux", spec.rows * spec.cols, spec.out_dtype),
            Draws("row_sums", spec.rows, spec.out_dtype)};
  }
  absl::Status Run(const MatmulSpec& spec, const Product& product) {
    LibraryOptions options;
    options.allocator = memory_.get();
    options.measure = false;
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<MatmulPlans> plans,
                            OpenMatmulPlans(options));
    TROUPE_ASSIGN_OR_RETURN(MatmulPlan * plan, plans->Get(spec, nullptr));
    TROUPE_ASSIGN_OR_RETURN(const StoragePtr workspace,
                            memory_->Allocate(plan->workspace_bytes()));
    MatmulOperands operands;
    operands.a = product.a.device_data();
    operands.b = product.b.device_data();
    operands.c = product.c.device_data();
    if (spec.has_bias()) operands.bias = product.bias.device_data();
    if (spec.has_aux()) operands.aux = product.aux.device_data();
    if (spec.epilogue == Epilogue::kRowSums) {
      operands.row_sums = product.row_sums.device_data();
    }
    return emulated_cuda_test::WaitFor(
        plan->Run(operands, workspace->data(), nullptr));
  }

  std::unique_ptr<CachingAllocator> memory_;
};

TEST_P(MatmulTest, IsWhatItsDefinitionSays) {
  const MatmulSpec& spec = GetParam();
  const Product product = Operands(spec);
  const Want want = WantOf(spec, product);
  const absl::Status status = Run(spec, product);
  ASSERT_TRUE(status.ok()) << status;
  const double tolerance = spec.out_dtype == DType::kBF16 ? 0x1p-7 : 1e-5;
  EXPECT_TRUE(Near(ValuesOf(product.c), want.c, tolerance)) << "c";
  EXPECT_TRUE(Near(ValuesOf(product.aux), want.aux, tolerance)) << "aux";
  EXPECT_TRUE(Near(ValuesOf(product.row_sums), want.row_sums, tolerance))
      << "row_sums";
}

std::vector<MatmulSpec> Specs() {
  std::vector<MatmulSpec> specs;
  const auto add = [&](Epilogue epilogue, bool accumulate, bool transpose_a,
                       bool transpose_b) {
    for (const auto& [dtype, out_dtype] :
         {std::pair(DType::kF32, DType::kF32),
          std::pair(DType::kBF16, DType::kBF16),
          std::pair(DType::kBF16, DType::kF32)}) {
      MatmulSpec spec;
      spec.rows = 24, spec.cols = 40, spec.depth = 56;
      spec.dtype = dtype, spec.out_dtype = out_dtype;
      spec.epilogue = epilogue, spec.accumulate = accumulate;
      spec.transpose_a = transpose_a, spec.transpose_b = transpose_b;
      if (spec.Check().ok()) specs.push_back(spec);
    }
  };
  for (bool transpose_a : {false, true}) {
    for (bool transpose_b : {false, true}) {
      add(Epilogue::kNone, false, transpose_a, transpose_b);
      add(Epilogue::kNone, true, transpose_a, transpose_b);
    }
  }
  add(Epilogue::kBias, false, false, true);
  add(Epilogue::kReluBias, false, false, true);
  add(Epilogue::kGeluBias, false, false, true);
  add(Epilogue::kGeluBackward, false, false, false);
  add(Epilogue::kRowSums, false, true, false);
  add(Epilogue::kRowSums, true, true, false);
  return specs;
}

INSTANTIATE_TEST_SUITE_P(Specs, MatmulTest, testing::ValuesIn(Specs()),
                         [](const testing::TestParamInfo<MatmulSpec>& info) {
                           return absl::StrReplaceAll(
                               info.param.Key(),
                               {{":", "_"}, {".", "x"}, {"+", "_"}});
                         });

TEST(MatmulPlansTest, ASpecThatGoesNotTogetherIsRefused) {
  if (!emulated_cuda_test::WhyNoDevice().empty()) GTEST_SKIP();
  CachingAllocator::Options memory;
  memory.source = SharedMemory();
  CachingAllocator allocator(memory);
  LibraryOptions options;
  options.allocator = &allocator;
  const auto plans = OpenMatmulPlans(options);
  ASSERT_TRUE(plans.ok());
  EXPECT_EQ((*plans)->Get(MatmulSpec(), nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::nn::cuda
