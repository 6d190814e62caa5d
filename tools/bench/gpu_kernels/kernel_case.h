// Matrix products and convolutions that the gpu_kernels benchmark times: those
// of ResNet-50 (He et al. 2015, arXiv:1512.03385; batch 64, 224x224) and of
// GPT-2 124M (Radford et al. 2019; 8 sequences of 1024), forward and both
// backwards.
//
//   for (const KernelCase& c : KernelCases()) std::cout << c.name << "\n";
//   TROUPE_ASSIGN_OR_RETURN(KernelCase c, ParseKernelCase("linear f 8 16 32"));
//   c.flops, c.Bytes(nn::DType::kBF16);
//
// A case's line has the format of tools/bench/ops/op_bench_case.h:
//
//     linear f|bd|bw N K M
//     conv   f|bd|bw N H C O kernel stride pad
//
// Neither has a bias, so that all contestants do the same work: in a network,
// another kernel or an epilogue adds the bias.

#ifndef TOOLS_BENCH_GPU_KERNELS_KERNEL_CASE_H_
#define TOOLS_BENCH_GPU_KERNELS_KERNEL_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/kernels/window2d.h"
#include "nn/tensor/dtype.h"

namespace troupe::bench {

enum class KernelWay { kForward, kBackwardInput, kBackwardWeight };

struct KernelCase {
  std::string name;  // "gpt2 fc f": network, layer, way
  std::string line;
  KernelWay way = KernelWay::kForward;
  bool conv = false;
  // A linear layer: x[N, K], w[M, K], y[N, M].
  std::int64_t N = 0, K = 0, M = 0;
  // A convolution: x[N, H, H, C], w[O, C, R, R], y[N, P, P, O].
  std::int64_t H = 0, C = 0, O = 0;
  nn::Window2d window;

  double flops = 0;        // a multiply-add counts as two
  std::int64_t elems = 0;  // elements of both operands and the result
  std::int64_t P() const { return window.OutH(H); }
  // Returns the bytes of both operands and the result, each counted once.
  double Bytes(nn::DType dtype) const {
    return static_cast<double>(elems) * static_cast<double>(SizeOf(dtype));
  }
};

// Returns all cases, those that take most of a step first.
std::vector<KernelCase> KernelCases();
// Returns a tiny case of each kind, to try the benchmark.
std::vector<KernelCase> TinyKernelCases();

// Parses the line of a case.
//   kInvalidArgument: no such line; or extents below 1 or above kExtentMax.
constexpr std::int64_t kExtentMax = 1 << 20;
absl::StatusOr<KernelCase> ParseKernelCase(absl::string_view line);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_GPU_KERNELS_KERNEL_CASE_H_
