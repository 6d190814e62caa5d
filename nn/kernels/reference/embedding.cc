#include <vector>

#include "absl/strings/str_cat.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

struct PieceEmbeddingForward {
  template <typename T>
  static absl::Status Run(In rows, std::int64_t first, std::int64_t V,
                          In piece_PD, Tensor& y) {
    const std::int64_t P = piece_PD.dim(0), D = piece_PD.dim(1);
    const std::int64_t* row = rows.data<std::int64_t>();
    const T* piece = piece_PD.data<T>();
    T* out = y.data<T>();
    for (std::int64_t r = 0; r < rows.numel(); ++r) {
      if (row[r] < 0 || row[r] >= V) {
        return absl::OutOfRangeError(
            absl::StrCat("Embedding: index ", r, " is ", row[r],
                         ", but the table has ", V, " rows"));
      }
      const std::int64_t own = row[r] - first;
      const bool is_here = own >= 0 && own < P;
      for (std::int64_t d = 0; d < D; ++d) {
        out[r * D + d] = is_here ? piece[own * D + d] : T{};
      }
    }
    return absl::OkStatus();
  }
};

// The whole table is the only piece.
struct EmbeddingForward {
  template <typename T>
  static absl::Status Run(In rows, In table, Tensor& y) {
    return PieceEmbeddingForward::Run<T>(rows, /*first=*/0, table.dim(0), table,
                                         y);
  }
};

struct PieceEmbeddingBackward {
  template <typename T>
  static absl::Status Run(In rows, std::int64_t first, In dy,
                          std::int64_t padding_row, bool accumulate,
                          Tensor& dpiece_PD) {
    const std::int64_t V = dpiece_PD.dim(0), D = dpiece_PD.dim(1);
    const std::int64_t* row = rows.data<std::int64_t>();
    const T* from = dy.data<T>();
    T* to = dpiece_PD.data<T>();
    std::vector<double> sums(V * D, 0.0);
    for (std::int64_t i = 0; i < V * D && accumulate; ++i) {
      sums[i] = Load(to[i]);
    }
    for (std::int64_t r = 0; r < rows.numel(); ++r) {
      const std::int64_t own = row[r] - first;
      if (row[r] == padding_row || own < 0 || own >= V) continue;
      for (std::int64_t d = 0; d < D; ++d) {
        sums[own * D + d] += Load(from[r * D + d]);
      }
    }
    for (std::int64_t i = 0; i < V * D; ++i) to[i] = Store<T>(sums[i]);
    return absl::OkStatus();
  }
};

struct EmbeddingBackward {
  template <typename T>
  static absl::Status Run(In rows, In dy, std::int64_t padding_row,
                          bool accumulate, Tensor& dtable) {
    return PieceEmbeddingBackward::Run<T>(rows, /*first=*/0, dy, padding_row,
                                          accumulate, dtable);
  }
};

struct AddPositions {
  template <typename T>
  static absl::Status Run(In x_NTD, In table, std::int64_t first, Tensor& y) {
    const std::int64_t N = x_NTD.dim(0), row = x_NTD.dim(1) * x_NTD.dim(2);
    const T* from = x_NTD.data<T>();
    const T* add = table.data<T>() + first * table.dim(1);
    T* to = y.data<T>();
    for (std::int64_t i = 0; i < N * row; ++i) {
      to[i] = Store<T>(Load(from[i]) + Load(add[i % row]));
    }
    return absl::OkStatus();
  }
};

struct AddPositionsBackward {
  template <typename T>
  static absl::Status Run(In dy_NTD, std::int64_t first, bool accumulate,
                          Tensor& dtable) {
    const std::int64_t N = dy_NTD.dim(0), row = dy_NTD.dim(1) * dy_NTD.dim(2);
    const std::int64_t begin = first * dtable.dim(1);
    const T* from = dy_NTD.data<T>();
    T* to = dtable.data<T>();
    for (std::int64_t i = 0; i < dtable.numel(); ++i) {
      double sum = accumulate ? Load(to[i]) : 0;
      const bool inside = i >= begin && i < begin + row;
      for (std::int64_t n = 0; inside && n < N; ++n) {
        sum += Load(from[n * row + i - begin]);
      }
      to[i] = Store<T>(sum);
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(EmbeddingKernels& ops) {
  BindFloating<EmbeddingForward>(ops.EmbeddingForward);
  BindFloating<EmbeddingBackward>(ops.EmbeddingBackward);
  BindFloating<PieceEmbeddingForward>(ops.PieceEmbeddingForward);
  BindFloating<PieceEmbeddingBackward>(ops.PieceEmbeddingBackward);
  BindFloating<AddPositions>(ops.AddPositions);
  BindFloating<AddPositionsBackward>(ops.AddPositionsBackward);
}

}  // namespace troupe::nn::reference
