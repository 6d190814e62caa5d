// One suite for every kernel set: each op of AllOpCases() in each dtype is
// compared with the reference kernels, repeated, and moved in memory, and then
// compared with the golden values of PyTorch. A kernel set is added in a few
// lines:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, OpSuite,
//                            testing::ValuesIn(OpTests(Backends())), OpName);
//   INSTANTIATE_TEST_SUITE_P(Cpu, AgreementSuite,
//                            testing::ValuesIn(OpTests(Backends())), OpName);
//   INSTANTIATE_TEST_SUITE_P(
//       Cpu, ElementWiseSuite,
//       testing::ValuesIn(ElementWiseOpTests(Backends())), OpName);
//   INSTANTIATE_TEST_SUITE_P(Cpu, BackendSuite,
//                            testing::ValuesIn(Backends()), BackendName);
//
// Tolerances are in docs/numerics.md.

#ifndef TESTS_NN_OPS_OP_SUITE_H_
#define TESTS_NN_OPS_OP_SUITE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/kernels.h"
#include "tests/nn/ops/op_case.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {

// A kernel set under test. The host can read the memory of its tensors.
struct Backend {
  std::string name;  // letters, digits and underscores
  std::function<std::unique_ptr<Kernels>()> create;
  std::vector<DType> dtypes;
  bool has_queues = false;  // whether its device has queues of its own
};

struct OpTest {
  Backend backend;
  OpCase op;
  DType dtype;
};

// Runs the case on fresh operands and returns its outputs.
std::vector<Tensor> RunCase(const OpTest& test, Kernels& kernels);

// Returns every op in every dtype; under sanitizers a part of them, as for
// seeds (tests/base/seeds.h).
std::vector<OpTest> OpTests(const std::vector<Backend>& backends);
// Returns those of OpCase::element_wise.
std::vector<OpTest> ElementWiseOpTests(const std::vector<Backend>& backends);
std::string OpName(const testing::TestParamInfo<OpTest>& info);
std::string BackendName(const testing::TestParamInfo<Backend>& info);

class OpSuite : public testing::TestWithParam<OpTest> {};
// Compares with the reference, and so is not for the reference itself.
class AgreementSuite : public testing::TestWithParam<OpTest> {};
class ElementWiseSuite : public testing::TestWithParam<OpTest> {};
class BackendSuite : public testing::TestWithParam<Backend> {};

}  // namespace troupe::nn

#endif  // TESTS_NN_OPS_OP_SUITE_H_
