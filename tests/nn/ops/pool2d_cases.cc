#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddPool2d(const ImageCase& c, std::vector<OpCase>& all) {
  const Window2d win = c.window;
  Shape y = c.Output(c.x[3]);
  if (c.y_rows > 0) y = {c.x[0], c.y_rows, c.y_columns, c.x[3]};
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
  for (AvgDivisor by : {AvgDivisor::kPaddedImage, AvgDivisor::kImage}) {
    const std::string of = by == AvgDivisor::kImage ? "of_image_" : "";
    all.push_back(
        {absl::StrCat("avg_pool2d_", of, c.name),
         {Normal(c.x), Normal(y)},
         {Poison(y), Poison(c.x)},
         [win, by](Kernels& k, Inputs in, Outputs out) -> absl::Status {
           TROUPE_RETURN_IF_ERROR(k.AvgPool2dForward(win, by, in[0], out[0]));
           return k.AvgPool2dBackward(win, by, in[1], out[1]);
         }});
  }
}

void AddAdaptive(const std::string& name, const Shape& x, const Shape& y,
                 std::vector<OpCase>& all) {
  all.push_back({"adaptive_avg_pool2d_" + name,
                 {Normal(x), Normal(y)},
                 {Poison(y), Poison(x)},
                 [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(
                       k.AdaptiveAvgPool2dForward(in[0], out[0]));
                   return k.AdaptiveAvgPool2dBackward(in[1], out[1]);
                 }});
}

}  // namespace

void AddPool2dCases(std::vector<OpCase>& all) {
  AddPool2d({"2x2", {3, 24, 24, 6}, 0, {2, 2, 2, 2}}, all);
  AddPool2d({"2x2_odd", {2, 7, 5, 3}, 0, {2, 2, 2, 2}}, all);
  AddPool2d({"3x3_overlap", {2, 9, 8, 17}, 0, {3, 3, 2, 2, 1, 1}}, all);
  AddPool2d({"3x3_channels", {2, 7, 9, 32}, 0, {3, 3, 1, 1, 1, 1}}, all);
  AddPool2d({"tall", {1, 9, 4, 5}, 0, {3, 2, 1, 2, 1, 0}}, all);
  AddPool2d({"2x2_ceil", {2, 7, 5, 3}, 0, {2, 2, 2, 2}, 1, 4, 3}, all);
  AddPool2d({"3x3_ceil", {2, 6, 9, 16}, 0, {3, 3, 2, 3, 1, 0}, 1, 4, 3}, all);
  AddAdaptive("one", {3, 7, 5, 19}, {3, 1, 1, 19}, all);
  AddAdaptive("halves", {2, 8, 6, 4}, {2, 4, 3, 4}, all);
  AddAdaptive("uneven", {2, 7, 10, 16}, {2, 3, 4, 16}, all);
  AddAdaptive("more", {1, 3, 2, 5}, {1, 7, 5, 5}, all);
  AddAdaptive("empty_batch", {0, 7, 5, 3}, {0, 2, 2, 3}, all);
  AddPool2d({"empty_batch", {0, 24, 24, 6}, 0, {2, 2, 2, 2}}, all);
  AddPool2d({"empty_batch_overlap", {0, 9, 8, 17}, 0, {3, 3, 2, 2, 1, 1}}, all);
}

}  // namespace troupe::nn
