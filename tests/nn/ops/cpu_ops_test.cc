// The op suite on the cpu kernels: every instruction set that this machine
// has, with oneDNN and without.

#include "nn/kernels/cpu/cpu_kernels.h"
#include "tests/nn/ops/op_suite.h"

namespace troupe::nn {
namespace {

std::vector<Backend> Backends() {
  const std::pair<CpuIsa, const char*> sets[] = {{CpuIsa::kPlain, "plain"},
                                                 {CpuIsa::kAvx2, "avx2"},
                                                 {CpuIsa::kAvx512, "avx512"}};
  std::vector<Backend> backends;
  for (auto [isa, name] : sets) {
    if (isa > BestCpuIsa()) continue;
    for (bool onednn : {false, true}) {
      CpuKernelOptions options;
      options.isa = isa;
      options.onednn = onednn;
      backends.push_back({std::string(name) + (onednn ? "_onednn" : "_own"),
                          [options] { return CreateCpuKernels(options); },
                          {DType::kF32, DType::kBF16, DType::kF16}});
    }
  }
  return backends;
}

INSTANTIATE_TEST_SUITE_P(Cpu, OpSuite, testing::ValuesIn(OpTests(Backends())),
                         OpName);
INSTANTIATE_TEST_SUITE_P(Cpu, BackendSuite, testing::ValuesIn(Backends()),
                         BackendName);

}  // namespace
}  // namespace troupe::nn
