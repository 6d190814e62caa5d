// A measured op or whole training step, named by a line that the PyTorch peer
// (torch_ops.py) reads as well:
//
//     linear f|bd|bw N K M
//     conv   f|bd|bw N H C O kernel stride pad
//     pool   f|bd N H C            2x2 windows
//     attention f|bd N T H D  causal; q, k and v lie in one tensor
//     relu f|bd, sgd, momentum, mse, add  n
//     xent N C        cross entropy, forward and backward
//     step toy_mlp | toy_cnn | mnist_mlp | mlp_25m
//
// f: forward; bd, bw: backward to data (input) and to weights (and bias).

#ifndef TOOLS_BENCH_OPS_OP_BENCH_CASE_H_
#define TOOLS_BENCH_OPS_OP_BENCH_CASE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/kernels/kernels.h"

namespace troupe::bench {

struct OpBenchCase {
  std::string line;
  double flops = 0;  // operations of one run; 0 if `bytes` are the measure
  double bytes = 0;  // bytes that one run reads and writes, each once
  std::function<absl::Status()> run;
};

// Makes the case, with tensors of `kernels` filled with numbers of order one.
//   kInvalidArgument: no such case.
absl::StatusOr<OpBenchCase> MakeOpBenchCase(const std::string& line,
                                            nn::Kernels& kernels);

// Makes the same op by oneDNN; a case without `run` if there is none.
absl::StatusOr<OpBenchCase> MakeOneDnnCase(const std::string& line,
                                           nn::Kernels& memory);

// Returns the lines of the cases that the benchmark runs by default.
std::vector<std::string> DefaultOpBenchLines();

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_OPS_OP_BENCH_CASE_H_
