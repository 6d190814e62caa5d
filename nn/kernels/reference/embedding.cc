#include <vector>

#include "absl/strings/str_cat.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

struct EmbeddingForward {
  template <typename T>
  static absl::Status Run(In rows, In table_VD, Tensor& y) {
    const std::int64_t V = table_VD.dim(0), D = table_VD.dim(1);
    const std::int64_t* row = rows.data<std::int64_t>();
    const T* table = table_VD.data<T>();
    T* out = y.data<T>();
    for (std::int64_t r = 0; r < rows.numel(); ++r) {
      if (row[r] < 0 || row[r] >= V) {
        return absl::OutOfRangeError(
            absl::StrCat("Embedding: index ", r, " is ", row[r],
                         ", but the table has ", V, " rows"));
      }
      for (std::int64_t d = 0; d < D; ++d) {
        out[r * D + d] = table[row[r] * D + d];
      }
    }
    return absl::OkStatus();
  }
};

struct EmbeddingBackward {
  template <typename T>
  static absl::Status Run(In rows, In dy, bool accumulate, Tensor& dtable_VD) {
    const std::int64_t V = dtable_VD.dim(0), D = dtable_VD.dim(1);
    const std::int64_t* row = rows.data<std::int64_t>();
    const T* from = dy.data<T>();
    T* to = dtable_VD.data<T>();
    std::vector<double> sums(V * D, 0.0);
    for (std::int64_t i = 0; i < V * D && accumulate; ++i) {
      sums[i] = Load(to[i]);
    }
    for (std::int64_t r = 0; r < rows.numel(); ++r) {
      for (std::int64_t d = 0; d < D; ++d) {
        sums[row[r] * D + d] += Load(from[r * D + d]);
      }
    }
    for (std::int64_t i = 0; i < V * D; ++i) to[i] = Store<T>(sums[i]);
    return absl::OkStatus();
  }
};

}  // namespace

void BindEmbedding(EmbeddingKernels& ops) {
  BindFloating<EmbeddingForward>(ops.EmbeddingForward);
  BindFloating<EmbeddingBackward>(ops.EmbeddingBackward);
}

}  // namespace troupe::nn::reference
