#include "comm/reduction/reduction_tree.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cpu_isa.h"
#include "comm/reduction/reduction_kernels.h"

namespace troupe::comm {
namespace {

using internal::KernelTable;
using internal::kKernelSourcesMax;
using internal::ReduceKernel;

// Number of bytes of each source that a tree wider than a kernel processes at a
// time.
constexpr std::size_t kPieceBytes = 2048;

const KernelTable& Kernels(base::CpuIsa isa) {
  switch (isa) {
    case base::CpuIsa::kAvx512:
      return internal::KernelsAvx512();
    case base::CpuIsa::kAvx2:
      return internal::KernelsAvx2();
    case base::CpuIsa::kPlain:
      break;
  }
  return internal::KernelsPlain();
}

ReduceKernel Find(base::CpuIsa isa, ReduceOp op, nn::DType dtype) {
  return Kernels(isa).tree[static_cast<int>(op)][static_cast<int>(dtype)];
}

// Computes one piece of a tree too wide for a kernel: its two subtrees are
// written to scratch memory of this stack frame, which also bounds the
// recursion (5 deep at 256 sources).
struct WideTree {
  ReduceKernel inner;  // kernel of a node that is not the root: never divides
  std::size_t count;   // number of elements in this piece

  // Writes the result to `scratch`, or returns the source itself if it is the
  // only one.
  const char* Subtree(const char* const* sources, int n, char* scratch) const {
    if (n == 1) return sources[0];
    if (n <= kKernelSourcesMax) {
      inner(sources, n, &scratch, 1, count, /*ranks=*/0);
    } else {
      Node(inner, sources, n, &scratch, 1, /*ranks=*/0);
    }
    return scratch;
  }

  void Node(ReduceKernel kernel, const char* const* sources, int n,
            char* const* destinations, int m, int ranks) const {
    alignas(64) char scratch[2][kPieceBytes];
    const int left = TreeSplit(n);
    const char* const halves[2] = {
        Subtree(sources, left, scratch[0]),
        Subtree(sources + left, n - left, scratch[1])};
    kernel(halves, 2, destinations, m, count, ranks);
  }
};

void ReduceWide(base::CpuIsa isa, const Reduction& reduction,
                absl::Span<const void* const> sources,
                absl::Span<void* const> destinations, std::size_t count) {
  const int n = static_cast<int>(sources.size());
  const int m = static_cast<int>(destinations.size());
  const std::size_t element_bytes = nn::SizeOf(reduction.dtype);
  const std::size_t piece = kPieceBytes / element_bytes;
  const ReduceKernel root = Find(isa, reduction.op, reduction.dtype);
  const char* from[kReductionSourcesMax];
  char* to[kReductionSourcesMax];
  for (std::size_t begin = 0; begin < count; begin += piece) {
    const std::size_t offset = begin * element_bytes;
    for (int i = 0; i < n; ++i) {
      from[i] = static_cast<const char*>(sources[i]) + offset;
    }
    for (int j = 0; j < m; ++j) {
      to[j] = static_cast<char*>(destinations[j]) + offset;
    }
    const WideTree tree{root, std::min(piece, count - begin)};
    tree.Node(root, from, n, to, m, reduction.ranks);
  }
}

}  // namespace

absl::Status CheckReduction(ReduceOp op, nn::DType dtype) {
  if (Find(base::CpuIsa::kPlain, op, dtype) != nullptr) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      nn::DTypeName(dtype), " has no ", ReduceOpName(op),
      nn::IsFloating(dtype) ? "; take it of integers" : "; widen it first"));
}

int TreeSplit(int n) {
  int left = 1;
  while (2 * left < n) left *= 2;
  return left;
}

void ReduceTree(const Reduction& reduction,
                absl::Span<const void* const> sources,
                absl::Span<void* const> destinations, std::size_t count) {
  ReduceTreeOn(base::BestCpuIsa(), reduction, sources, destinations, count);
}

void ReduceTreeOn(base::CpuIsa isa, const Reduction& reduction,
                  absl::Span<const void* const> sources,
                  absl::Span<void* const> destinations, std::size_t count) {
  TROUPE_CHECK(!sources.empty() && sources.size() <= kReductionSourcesMax &&
                   destinations.size() <= kReductionSourcesMax,
               "a tree has 1 to 256 sources and no more destinations");
  const ReduceKernel kernel = Find(isa, reduction.op, reduction.dtype);
  TROUPE_CHECK(kernel != nullptr, "the reduction passed CheckReduction()");
  if (sources.size() > kKernelSourcesMax) {
    return ReduceWide(isa, reduction, sources, destinations, count);
  }
  kernel(reinterpret_cast<const char* const*>(sources.data()),
         static_cast<int>(sources.size()),
         reinterpret_cast<char* const*>(destinations.data()),
         static_cast<int>(destinations.size()), count, reduction.ranks);
}

}  // namespace troupe::comm
