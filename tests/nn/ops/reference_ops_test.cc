// The op suite on the reference kernels: comparison with the golden values, and
// checks of the suite's cases.

#include "nn/kernels/reference/reference_kernels.h"
#include "tests/nn/ops/op_suite.h"

namespace troupe::nn {
namespace {

std::vector<Backend> Backends() {
  return {{"reference",
           [] { return CreateReferenceKernels(); },
           {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}}};
}

INSTANTIATE_TEST_SUITE_P(Reference, OpSuite,
                         testing::ValuesIn(OpTests(Backends())), OpName);
INSTANTIATE_TEST_SUITE_P(Reference, ElementWiseSuite,
                         testing::ValuesIn(ElementWiseOpTests(Backends())),
                         OpName);
INSTANTIATE_TEST_SUITE_P(Reference, BackendSuite, testing::ValuesIn(Backends()),
                         BackendName);

}  // namespace
}  // namespace troupe::nn
