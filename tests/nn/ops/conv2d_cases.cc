#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddConv2d(const ImageCase& c, std::vector<OpCase>& all) {
  const Window2d win = c.window;
  const Shape w_shape = {c.O, c.x[3] / c.groups, win.kernel_h, win.kernel_w};
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
  AddConv2d({"grouped", {2, 6, 7, 6}, 9, three_same, 3}, all);
  AddConv2d({"grouped_strided", {2, 7, 9, 8}, 4, {3, 2, 2, 1, 1, 0}, 2}, all);
  AddConv2d({"grouped_pointwise", {2, 5, 4, 12}, 8, {1, 1}, 4}, all);
  AddConv2d({"grouped_wide", {2, 5, 6, 64}, 32, three_same, 2}, all);
  AddConv2d({"depthwise", {2, 7, 6, 21}, 21, three_same, 21}, all);
  AddConv2d({"depthwise_wide", {1, 5, 4, 83}, 83, {3, 5, 1, 1, 1, 2}, 83}, all);
  AddConv2d({"depthwise_strided", {2, 9, 8, 5}, 5, {3, 3, 2, 3, 1, 1}, 5}, all);
  AddConv2d({"depthwise_twice", {2, 6, 5, 4}, 8, three_same, 4}, all);
  const Window2d dilated{3, 3, 1, 1, 2, 3, 2, 3};
  AddConv2d({"dilated", {2, 9, 10, 3}, 5, dilated}, all);
  AddConv2d({"dilated_rows", {1, 9, 8, 2}, 3, {3, 2, 1, 1, 0, 1, 3, 1}}, all);
  AddConv2d({"dilated_channels", {2, 8, 11, 16}, 24, dilated}, all);
  AddConv2d({"dilated_strided", {2, 11, 9, 18}, 7, {3, 2, 2, 2, 1, 1, 2, 3}},
            all);
  AddConv2d({"dilated_grouped", {2, 9, 8, 6}, 4, dilated, 2}, all);
  AddConv2d({"dilated_depthwise", {2, 9, 8, 6}, 6, dilated, 6}, all);
  AddConv2d({"dilated_depthwise_strided",
             {1, 9, 11, 17},
             17,
             {3, 3, 2, 2, 2, 1, 2, 2},
             17},
            all);
  AddConv2d({"few_pixels", {2, 2, 3, 172}, 172, three_same}, all);
  AddConv2d({"empty_batch_depthwise", {0, 4, 4, 16}, 16, three_same, 16}, all);
  AddConv2d({"empty_batch_grouped", {0, 4, 4, 16}, 16, three_same, 2}, all);
  AddConv2d({"empty_batch", {0, 14, 14, 6}, 16, five}, all);
  AddConv2d({"empty_batch_grey", {0, 9, 9, 1}, 32, three_same}, all);
  AddConv2d({"empty_batch_channels", {0, 4, 4, 16}, 16, three_same}, all);
  AddConv2d({"empty_batch_pointwise", {0, 5, 6, 24}, 13, {1, 1}}, all);
}

}  // namespace troupe::nn
