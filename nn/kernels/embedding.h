// Kernels that look up rows of a table, and that add rows by position.
//
//   status = kernels.EmbeddingForward(rows, table, y);

#ifndef NN_KERNELS_EMBEDDING_H_
#define NN_KERNELS_EMBEDDING_H_

#include <cstdint>

#include "nn/kernels/op.h"

namespace troupe::nn {

struct EmbeddingKernels {
  // y[R, D] = table[rows[R], D]; rows i64. kOutOfRange names the row.
  Op<absl::Status(FixedIn rows, In table, Out y)> EmbeddingForward{
      "EmbeddingForward"};
  // dtable[rows[R], D] (+)= dy[R, D], in ascending order of R. Lookups of
  // `padding_row` add nothing; -1: no padding row.
  Op<absl::Status(FixedIn rows, In dy, std::int64_t padding_row,
                  bool accumulate, Grad dtable)>
      EmbeddingBackward{"EmbeddingBackward"};

  // The same for ranks that have pieces of a table of V rows: this one has the
  // rows from `first` on, and perhaps padding behind them. Rows y of lookups
  // in other pieces are 0. kOutOfRange: a row is none of V.
  Op<absl::Status(FixedIn rows, std::int64_t first, std::int64_t V, In piece,
                  Out y)>
      PieceEmbeddingForward{"PieceEmbeddingForward"};
  // Lookups in other pieces add nothing, nor do those of `padding_row` of the
  // whole table.
  Op<absl::Status(FixedIn rows, std::int64_t first, In dy,
                  std::int64_t padding_row, bool accumulate, Grad dpiece)>
      PieceEmbeddingBackward{"PieceEmbeddingBackward"};

  // y[N, T, D] = x[N, T, D] + table[first + t, D]
  Op<absl::Status(In x, In table, std::int64_t first, Out y)> AddPositions{
      "AddPositions"};
  // dtable[first + t, D] (+)= the sum over N of dy[N, T, D], within one
  // kernel's fixed scheme; other rows get no addend.
  Op<absl::Status(In dy, std::int64_t first, bool accumulate, Grad dtable)>
      AddPositionsBackward{"AddPositionsBackward"};

  template <typename Visit>
  static void ForEachOp(Visit visit) {
    using K = EmbeddingKernels;
    VisitOps<K>(visit, &K::EmbeddingForward, &K::EmbeddingBackward,
                &K::PieceEmbeddingForward, &K::PieceEmbeddingBackward,
                &K::AddPositions, &K::AddPositionsBackward);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_EMBEDDING_H_
