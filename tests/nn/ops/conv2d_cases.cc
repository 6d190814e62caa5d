#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddConv2d(const ImageCase& c, std::vector<OpCase>& all) {
  const Window2d win = c.window;
  const Shape w_shape = {c.O, c.x[3], win.kernel_h, win.kernel_w};
  const Operand x = Normal(c.x), w = Normal(w_shape), b = Normal({c.O});
  const Operand dy = Normal(c.Output(c.O));
  all.push_back({"conv2d_" + c.name,
                 {x, w, b},
                 {Poison(c.Output(c.O))},
                 [win](Kernels& k, Inputs in, Outputs out) {
                   return k.Conv2dForward(win, in[0], in[1], in[2], out[0]);
                 }});
  all.push_back({"conv2d_no_bias_" + c.name,
                 {x, w},
                 {Poison(c.Output(c.O))},
                 [win](Kernels& k, Inputs in, Outputs out) {
                   return k.Conv2dForward(win, in[0], in[1], Tensor(), out[0]);
                 }});
  all.push_back({"conv2d_dx_" + c.name,
                 {dy, w},
                 {Poison(c.x)},
                 [win](Kernels& k, Inputs in, Outputs out) {
                   return k.Conv2dBackwardInput(win, in[0], in[1], out[0]);
                 }});
  for (bool accumulate : {false, true}) {
    all.push_back(
        {absl::StrCat("conv2d_dw_", accumulate ? "added_" : "", c.name),
         {x, dy},
         {Gradient(accumulate, w_shape), Gradient(accumulate, {c.O})},
         [win, accumulate](Kernels& k, Inputs in, Outputs out) {
           return k.Conv2dBackwardWeight(win, in[0], in[1], accumulate, out[0],
                                         out[1]);
         }});
  }
  all.push_back({"conv2d_dw_no_bias_" + c.name,
                 {x, dy},
                 {Poison(w_shape)},
                 [win](Kernels& k, Inputs in, Outputs out) {
                   Tensor none;
                   return k.Conv2dBackwardWeight(win, in[0], in[1], false,
                                                 out[0], none);
                 }});
}

}  // namespace

void AddConv2dCases(std::vector<OpCase>& all) {
  const Window2d five{5, 5}, three_same{3, 3, 1, 1, 1, 1};
  AddConv2d({"lenet1", {4, 28, 28, 1}, 6, five}, all);
  AddConv2d({"lenet2", {4, 12, 12, 6}, 16, five}, all);
  AddConv2d({"colour", {2, 16, 16, 3}, 6, five}, all);
  AddConv2d({"same_3x3", {2, 9, 7, 16}, 32, three_same}, all);
  AddConv2d({"strided", {3, 10, 11, 5}, 7, {3, 2, 2, 3, 1, 1}}, all);
  AddConv2d({"pointwise", {2, 5, 6, 24}, 13, {1, 1}}, all);
  AddConv2d({"whole_image", {3, 4, 4, 2}, 3, {4, 4}}, all);
  AddConv2d({"leftover", {1, 8, 8, 3}, 4, {3, 3, 4, 4, 0, 0}}, all);
  AddConv2d({"one_pixel", {1, 1, 1, 1}, 1, three_same}, all);
  AddConv2d({"empty_batch", {0, 14, 14, 6}, 16, five}, all);
  AddConv2d({"empty_batch_grey", {0, 9, 9, 1}, 32, three_same}, all);
  AddConv2d({"empty_batch_channels", {0, 4, 4, 16}, 16, three_same}, all);
  AddConv2d({"empty_batch_pointwise", {0, 5, 6, 24}, 13, {1, 1}}, all);
}

}  // namespace troupe::nn
