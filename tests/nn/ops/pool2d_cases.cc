#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddPool2d(const ImageCase& c, std::vector<OpCase>& all) {
  const Window2d win = c.window;
  const Shape y = c.Output(c.x[3]);
  const Operand argmax = {y, Operand::Fill::kZero, DType::kI32, 0};
  for (Operand::Fill fill : {Operand::Fill::kNormal, Operand::Fill::kSpecial}) {
    const std::string suffix =
        fill == Operand::Fill::kSpecial ? "_special" : "";
    all.push_back({absl::StrCat("max_pool2d_", c.name, suffix),
                   {{c.x, fill, {}, 0}, Normal(y)},
                   {Poison(y), argmax, Poison(c.x)},
                   [win](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                     TROUPE_RETURN_IF_ERROR(
                         k.MaxPool2dForward(win, in[0], out[0], out[1]));
                     return k.MaxPool2dBackward(win, in[1], out[1], out[2]);
                   }});
  }
  all.push_back({"avg_pool2d_" + c.name,
                 {Normal(c.x), Normal(y)},
                 {Poison(y), Poison(c.x)},
                 [win](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(
                       k.AvgPool2dForward(win, in[0], out[0]));
                   return k.AvgPool2dBackward(win, in[1], out[1]);
                 }});
}

}  // namespace

void AddPool2dCases(std::vector<OpCase>& all) {
  AddPool2d({"2x2", {3, 24, 24, 6}, 0, {2, 2, 2, 2}}, all);
  AddPool2d({"2x2_odd", {2, 7, 5, 3}, 0, {2, 2, 2, 2}}, all);
  AddPool2d({"3x3_overlap", {2, 9, 8, 17}, 0, {3, 3, 2, 2, 1, 1}}, all);
  AddPool2d({"3x3_channels", {2, 7, 9, 32}, 0, {3, 3, 1, 1, 1, 1}}, all);
  AddPool2d({"tall", {1, 9, 4, 5}, 0, {3, 2, 1, 2, 1, 0}}, all);
  AddPool2d({"empty_batch", {0, 24, 24, 6}, 0, {2, 2, 2, 2}}, all);
  AddPool2d({"empty_batch_overlap", {0, 9, 8, 17}, 0, {3, 3, 2, 2, 1, 1}}, all);
}

}  // namespace troupe::nn
