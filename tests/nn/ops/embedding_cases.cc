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
  for (bool accumulate : {false, true}) {
    all.push_back(
        {absl::StrCat("embedding_dw_", accumulate ? "added_" : "", size),
         {rows, Normal({R, D})},
         {Gradient(accumulate, {V, D})},
         [accumulate](Kernels& k, Inputs in, Outputs out) {
           return k.EmbeddingBackward(in[0], in[1], accumulate, out[0]);
         }});
  }
}

}  // namespace

void AddEmbeddingCases(std::vector<OpCase>& all) {
  AddEmbedding(0, 3, 4, all);
  AddEmbedding(1, 1, 1, all);
  AddEmbedding(40, 17, 33, all);
  AddEmbedding(1500, 41, 24, all);
  AddEmbedding(1030, 1030, 9, all);
}

}  // namespace troupe::nn
