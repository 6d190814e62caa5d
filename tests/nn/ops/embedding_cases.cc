#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddEmbedding(std::int64_t R, std::int64_t V, std::int64_t D,
                  std::vector<OpCase>& all) {
  const std::string size = absl::StrCat(R, "x", V, "x", D);
  const Operand rows = {{R}, Operand::Fill::kRows, DType::kI64, V};
  all.push_back({"embedding_" + size,
                 {rows, Normal({V, D})},
                 {Poison({R, D})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.EmbeddingForward(in[0], in[1], out[0]);
                 }});
  const std::int64_t padding_row = V > 30 ? 16 : -1;
  for (bool accumulate : {false, true}) {
    all.push_back(
        {absl::StrCat("embedding_dw_", accumulate ? "added_" : "", size),
         {rows, Normal({R, D})},
         {Gradient(accumulate, {V, D})},
         [=](Kernels& k, Inputs in, Outputs out) {
           return k.EmbeddingBackward(in[0], in[1], padding_row, accumulate,
                                      out[0]);
         }});
  }
}

// Rows from `first` on of a table of V, of which a rank has P, some of them
// padding.
void AddPiece(std::int64_t R, std::int64_t V, std::int64_t first,
              std::int64_t P, std::int64_t D, std::vector<OpCase>& all) {
  const std::string size =
      absl::StrCat(R, "x", V, "x", D, "_", first, "_to_", first + P);
  const Operand rows = {{R}, Operand::Fill::kRows, DType::kI64, V};
  all.push_back({"piece_embedding_" + size,
                 {rows, Normal({P, D})},
                 {Poison({R, D})},
                 [=](Kernels& k, Inputs in, Outputs out) {
                   return k.PieceEmbeddingForward(in[0], first, V, in[1],
                                                  out[0]);
                 }});
  const std::int64_t padding_row = V > 30 ? 16 : -1;
  for (bool accumulate : {false, true}) {
    all.push_back(
        {absl::StrCat("piece_embedding_dw_", accumulate ? "added_" : "", size),
         {rows, Normal({R, D})},
         {Gradient(accumulate, {P, D})},
         [=](Kernels& k, Inputs in, Outputs out) {
           return k.PieceEmbeddingBackward(in[0], first, in[1], padding_row,
                                           accumulate, out[0]);
         }});
  }
}

void AddPositions(const Shape& x, std::int64_t P, std::int64_t first,
                  std::vector<OpCase>& all) {
  const std::string size =
      absl::StrCat(x[0], "x", x[1], "x", x[2], "_", first, "_of_", P);
  all.push_back({"add_positions_" + size,
                 {Normal(x), Normal({P, x[2]})},
                 {Poison(x)},
                 [=](Kernels& k, Inputs in, Outputs out) {
                   return k.AddPositions(in[0], in[1], first, out[0]);
                 }});
  for (bool accumulate : {false, true}) {
    all.push_back(
        {absl::StrCat("add_positions_dw_", accumulate ? "added_" : "", size),
         {Normal(x)},
         {Gradient(accumulate, {P, x[2]})},
         [=](Kernels& k, Inputs in, Outputs out) {
           return k.AddPositionsBackward(in[0], first, accumulate, out[0]);
         }});
  }
}

}  // namespace

void AddEmbeddingCases(std::vector<OpCase>& all) {
  AddEmbedding(0, 3, 4, all);
  AddEmbedding(1, 1, 1, all);
  AddEmbedding(40, 17, 33, all);
  AddEmbedding(1500, 41, 24, all);
  // The large piece below has as many lookups too: a whole table of that size
  // is the same to every backend's kernels, and takes the emulated GPU seconds.
  AddEmbedding(40, 1030, 9, all);
  AddPiece(0, 7, 4, 4, 3, all);
  AddPiece(40, 17, 9, 9, 33, all);
  AddPiece(40, 17, 18, 6, 8, all);  // padding alone
  AddPiece(1500, 41, 14, 14, 24, all);
  AddPiece(1030, 2050, 1025, 1025, 9, all);
  AddPositions({0, 2, 3}, 4, 1, all);
  AddPositions({3, 5, 7}, 5, 0, all);
  AddPositions({2, 3, 16}, 9, 4, all);
  AddPositions({40, 6, 24}, 7, 0, all);
}

}  // namespace troupe::nn
