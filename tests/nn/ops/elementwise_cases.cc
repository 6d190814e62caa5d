#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddElementWise(std::int64_t n, std::vector<OpCase>& all) {
  const std::string size = absl::StrCat("_", n);
  const Operand x = Normal({n}), y = Poison({n});
  const Operand special = {{n}, Operand::Fill::kSpecial, {}, 0};
  for (const Operand& in : {x, special}) {
    const char* kind = in.fill == Operand::Fill::kSpecial ? "_special" : "";
    all.push_back({absl::StrCat("relu", kind, size),
                   {in, x},
                   {y, y},
                   [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                     TROUPE_RETURN_IF_ERROR(k.ReluForward(in[0], out[0]));
                     return k.ReluBackward(out[0], in[1], out[1]);
                   },
                   /*element_wise=*/true});
    all.push_back({absl::StrCat("add", kind, size),
                   {in, x},
                   {y},
                   [](Kernels& k, Inputs in, Outputs out) {
                     return k.Add(in[0], in[1], out[0]);
                   },
                   /*element_wise=*/true});
  }
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    all.push_back({absl::StrCat("set_values_", DTypeName(dtype), size),
                   {},
                   {{{n}, Operand::Fill::kPoison, dtype, 0}},
                   [n](Kernels& k, Inputs, Outputs out) {
                     std::vector<double> values(n);
                     for (std::int64_t i = 0; i < n; ++i) {
                       values[i] = 0.1 * static_cast<double>(i + 1);
                     }
                     return k.SetValues(values, out[0]);
                   }});
  }
  all.push_back({"relu_in_place" + size,
                 {},
                 {x, x},
                 [](Kernels& k, Inputs, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.ReluForward(out[0], out[0]));
                   return k.ReluBackward(out[0], out[1], out[1]);
                 },
                 /*element_wise=*/true});
  all.push_back({"add_in_place" + size,
                 {x},
                 {x},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.Add(out[0], in[0], out[0]);
                 },
                 /*element_wise=*/true});
  all.push_back({"scale" + size,
                 {x, {{1}, Operand::Fill::kNormal, DType::kF64, 0}},
                 {y, x},
                 [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.Scale(out[1], in[1], out[1]));
                   return k.Scale(in[0], in[1], out[0]);
                 }});
  all.push_back({"count_non_finite" + size,
                 {x, {{n}, Operand::Fill::kSpecial, {}, 0}},
                 {{{1}, Operand::Fill::kNormal, DType::kF64, 0}},
                 [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.CountNonFinite(in[0], out[0]));
                   return k.CountNonFinite(in[1], out[0]);
                 }});
  all.push_back(
      {"fill" + size,
       {},
       {y},
       [](Kernels& k, Inputs, Outputs out) { return k.Fill(-0.3, out[0]); },
       /*element_wise=*/true});
}

void AddCopy(DType to, std::vector<OpCase>& all) {
  all.push_back({absl::StrCat("copy_to_", DTypeName(to)),
                 {Normal({1000}), {{1000}, Operand::Fill::kSpecial, {}, 0}},
                 {{{1000}, Operand::Fill::kPoison, to, 0},
                  {{1000}, Operand::Fill::kPoison, to, 0}},
                 [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.Copy(in[0], out[0]));
                   return k.Copy(in[1], out[1]);
                 },
                 /*element_wise=*/true});
}

}  // namespace

void AddElementwiseCases(std::vector<OpCase>& all) {
  for (std::int64_t n : {0, 1, 7, 16, 64, 1000, 40003}) {
    AddElementWise(n, all);
  }
  for (DType to : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    AddCopy(to, all);
  }
}

}  // namespace troupe::nn
