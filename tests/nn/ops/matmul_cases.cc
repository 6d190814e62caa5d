#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

Shape WithMatrix(Shape batch, std::int64_t rows, std::int64_t cols) {
  std::vector<std::int64_t> dims(batch.dims().begin(), batch.dims().end());
  dims.push_back(rows);
  dims.push_back(cols);
  return Shape(dims);
}

struct ProductCase {
  const char* name;
  Shape a, b;  // axes before the matrices
  std::int64_t M, N, K;
};

void AddForms(const ProductCase& c, std::vector<OpCase>& all) {
  const Shape batch = *BroadcastShape(c.a, c.b);
  for (bool ta : {false, true}) {
    for (bool tb : {false, true}) {
      const MatMulForm form{ta, tb};
      all.push_back(
          {absl::StrCat("matmul_", c.name, "_", ta ? "t" : "n", tb ? "t" : "n"),
           {Normal(ta ? WithMatrix(c.a, c.K, c.M) : WithMatrix(c.a, c.M, c.K)),
            Normal(tb ? WithMatrix(c.b, c.N, c.K) : WithMatrix(c.b, c.K, c.N))},
           {Poison(WithMatrix(batch, c.M, c.N))},
           [form](Kernels& k, Inputs in, Outputs out) {
             return k.MatMul(form, in[0], in[1], out[0]);
           }});
    }
  }
}

}  // namespace

void AddMatMulCases(std::vector<OpCase>& all) {
  const ProductCase cases[] = {
      {"plain", {}, {}, 33, 20, 17},
      {"even", {}, {}, 16, 32, 64},
      {"row", {}, {}, 1, 40, 24},
      {"dot", {}, {}, 1, 1, 700},
      {"batch", {6}, {6}, 9, 11, 8},
      {"heads", {2, 3}, {2, 3}, 16, 16, 8},
      {"one_b", {4}, {}, 7, 5, 6},
      {"one_a", {}, {3}, 7, 5, 6},
      {"repeated", {2, 1, 3}, {4, 1}, 5, 4, 3},
      {"deep", {2}, {2}, 10, 6, 1300},
      {"no_terms", {2}, {2}, 3, 4, 0},
  };
  for (const ProductCase& c : cases) AddForms(c, all);
}

}  // namespace troupe::nn
