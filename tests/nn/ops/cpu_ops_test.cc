// The op suite on the cpu kernels: the loops in every instruction set that this
// machine has, and oneDNN (which uses the best) on one thread and on two.

#include "nn/kernels/cpu/cpu_kernels.h"
#include "tests/nn/ops/op_suite.h"

namespace troupe::nn {
namespace {

std::vector<Backend> Backends() {
  const std::pair<base::CpuIsa, const char*> sets[] = {
      {base::CpuIsa::kPlain, "plain"},
      {base::CpuIsa::kAvx2, "avx2"},
      {base::CpuIsa::kAvx512, "avx512"}};
  std::vector<Backend> backends;
  auto add = [&](const std::string& name, const CpuKernelOptions& options) {
    backends.push_back({name,
                        [options] { return CreateCpuKernels(options); },
                        {DType::kF32, DType::kBF16, DType::kF16}});
  };
  CpuKernelOptions options;
  options.onednn = false;
  for (auto [isa, name] : sets) {
    options.isa = isa;
    if (isa <= base::BestCpuIsa()) add(name, options);
  }
  options = CpuKernelOptions();
  add("onednn", options);
  options.bf16 = false;
  add("onednn_without_bf16", options);
  options.bf16 = true;
  options.threads = 2;
  add("onednn_2_threads", options);
  return backends;
}

INSTANTIATE_TEST_SUITE_P(Cpu, OpSuite, testing::ValuesIn(OpTests(Backends())),
                         OpName);
INSTANTIATE_TEST_SUITE_P(Cpu, AgreementSuite,
                         testing::ValuesIn(OpTests(Backends())), OpName);
INSTANTIATE_TEST_SUITE_P(Cpu, ElementWiseSuite,
                         testing::ValuesIn(ElementWiseOpTests(Backends())),
                         OpName);
INSTANTIATE_TEST_SUITE_P(Cpu, BackendSuite, testing::ValuesIn(Backends()),
                         BackendName);

}  // namespace
}  // namespace troupe::nn
