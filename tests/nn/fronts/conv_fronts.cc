// Cases of convolutions: groups, dilation, borders, signals, transposed ones.

#include <string>
#include <utility>
#include <vector>

#include "nn/ops/conv1d.h"
#include "nn/ops/conv2d.h"
#include "nn/ops/conv_transpose2d.h"
#include "tests/nn/fronts/front_case.h"

namespace troupe::nn {
namespace {

FrontCase Conv2dCase(const std::string& name, const Shape& x, std::int64_t O,
                     const Window2d& win, const ConvOptions& options) {
  return {"conv2d_" + name,
          {x},
          {{O, x[3] / options.groups, win.kernel_h, win.kernel_w}, {O}},
          [win, options](Context& ctx, const Tensors& v) {
            return ops::Conv2d(ctx, v[0], v[1], v[2], win, options);
          }};
}

ConvOptions Groups(std::int64_t groups) {
  ConvOptions options;
  options.groups = groups;
  return options;
}
ConvOptions Border(PadMode mode, bool same = false) {
  ConvOptions options;
  options.padding_mode = mode;
  options.same = same;
  return options;
}

std::vector<FrontCase> Conv2dCases() {
  return {
      Conv2dCase("grouped", {2, 5, 4, 6}, 4, {3, 3, 1, 1, 1, 1}, Groups(2)),
      Conv2dCase("grouped_pixels", {2, 3, 4, 6}, 9, {1, 1}, Groups(3)),
      Conv2dCase("depthwise", {2, 6, 5, 3}, 3, {3, 2, 2, 1, 1, 0}, Groups(3)),
      Conv2dCase("depthwise_twice", {1, 4, 5, 2}, 4, {3, 3, 1, 1, 1, 1},
                 Groups(2)),
      Conv2dCase("dilated", {2, 7, 6, 2}, 3, {3, 2, 1, 2, 1, 2, 2, 3}, {}),
      Conv2dCase("dilated_depthwise", {1, 7, 8, 3}, 3, {3, 3, 1, 1, 2, 2, 2, 2},
                 Groups(3)),
      Conv2dCase("reflect", {1, 4, 5, 2}, 3, {3, 3, 1, 1, 1, 2},
                 Border(PadMode::kReflect)),
      Conv2dCase("replicate", {1, 4, 5, 2}, 3, {3, 3, 2, 1, 1, 2},
                 Border(PadMode::kReplicate)),
      Conv2dCase("circular", {1, 4, 5, 2}, 3, {3, 3, 1, 1, 1, 2},
                 Border(PadMode::kCircular)),
      Conv2dCase("same_even", {1, 4, 5, 2}, 3, {2, 4, 1, 1, 0, 0, 3, 1},
                 Border(PadMode::kZeros, /*same=*/true)),
      Conv2dCase("same_odd", {1, 4, 5, 2}, 3, {3, 5},
                 Border(PadMode::kZeros, /*same=*/true)),
      Conv2dCase("same_circular", {1, 4, 5, 2}, 3, {2, 3},
                 Border(PadMode::kCircular, /*same=*/true)),
  };
}

FrontCase Conv1dCase(const std::string& name, const Shape& x, std::int64_t O,
                     const Window1d& win, const ConvOptions& options) {
  return {"conv1d_" + name,
          {x},
          {{O, x[2] / options.groups, win.kernel}, {O}},
          [win, options](Context& ctx, const Tensors& v) {
            return ops::Conv1d(ctx, v[0], v[1], v[2], win, options);
          }};
}

FrontCase Transposed(const std::string& name, const Shape& x, const Shape& w,
                     const Window2d& win, const ConvTransposeOptions& options) {
  return {"conv_transpose2d_" + name,
          {x},
          {w, {w[1] * options.groups}},
          [win, options](Context& ctx, const Tensors& v) {
            return ops::ConvTranspose2d(ctx, v[0], v[1], v[2], win, options);
          }};
}

std::vector<FrontCase> SignalCases() {
  return {
      Conv1dCase("plain", {2, 9, 3}, 4, {3}, {}),
      Conv1dCase("strided", {2, 10, 2}, 3, {4, 3, 2, 2}, {}),
      Conv1dCase("grouped", {2, 6, 4}, 6, {3, 1, 1}, Groups(2)),
      Conv1dCase("circular", {1, 7, 2}, 2, {4, 1, 3},
                 Border(PadMode::kCircular)),
      {"conv_transpose1d",
       {{2, 4, 3}},
       {{3, 2, 4}, {2}},
       [](Context& ctx, const Tensors& v) {
         return ops::ConvTranspose1d(ctx, v[0], v[1], v[2], {4, 3, 1},
                                     {1, 0, 2});
       }},
  };
}

std::vector<FrontCase> TransposedCases() {
  return {
      Transposed("plain", {2, 3, 4, 3}, {3, 2, 3, 2}, {3, 2}, {}),
      Transposed("pixels", {2, 3, 2, 3}, {3, 4, 1, 1}, {1, 1}, {}),
      Transposed("doubled", {2, 3, 4, 3}, {3, 2, 2, 2}, {2, 2, 2, 2}, {}),
      Transposed("uneven", {1, 4, 3, 2}, {2, 3, 3, 4}, {3, 4, 2, 3, 1, 1},
                 {1, 1, 2}),
      Transposed("grouped", {1, 3, 4, 4}, {4, 3, 3, 3}, {3, 3, 2, 1, 1, 1},
                 {2, 0, 0}),
      Transposed("depthwise", {1, 3, 4, 3}, {3, 1, 3, 3}, {3, 3, 2, 2, 1, 1},
                 {3, 1, 1}),
      Transposed("dilated", {1, 3, 4, 2}, {2, 2, 2, 3},
                 {2, 3, 2, 1, 1, 2, 3, 2}, {1, 1, 0}),
      {"conv_transpose2d_no_bias",
       {{1, 3, 2, 2}},
       {{2, 3, 2, 3}},
       [](Context& ctx, const Tensors& v) {
         return ops::ConvTranspose2d(ctx, v[0], v[1], Tensor(), {2, 3});
       }},
  };
}

}  // namespace

void AddConvFronts(std::vector<FrontCase>& all) {
  for (const auto& cases : {Conv2dCases(), SignalCases(), TransposedCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
}

}  // namespace troupe::nn
