#include "tests/nn/fronts/golden_fronts.h"

#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/nn/ops/op_suite.h"

namespace troupe::nn {
namespace {

// The op suite is linked for its tolerances, and runs elsewhere.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ElementWiseSuite);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendSuite);

TEST(GoldenFronts, OfTheReferenceInF64) {
  ExpectGoldenFronts(*CreateReferenceKernels(), DType::kF64);
}

TEST(GoldenFronts, OfTheReferenceInF32) {
  ExpectGoldenFronts(*CreateReferenceKernels(), DType::kF32);
}

TEST(GoldenFronts, OfTheCpu) {
  for (const base::CpuIsa isa :
       {base::CpuIsa::kPlain, base::CpuIsa::kAvx2, base::CpuIsa::kAvx512}) {
    if (isa > base::BestCpuIsa()) continue;
    CpuKernelOptions options;
    options.isa = isa;
    ExpectGoldenFronts(*CreateCpuKernels(options), DType::kF32);
  }
}

}  // namespace
}  // namespace troupe::nn
