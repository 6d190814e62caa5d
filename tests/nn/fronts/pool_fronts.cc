// Cases of pooling with its options, adaptive averages and borders.

#include <string>
#include <utility>
#include <vector>

#include "nn/ops/pad.h"
#include "nn/ops/pool2d.h"
#include "tests/nn/fronts/front_case.h"

namespace troupe::nn {
namespace {

FrontCase Max(const std::string& name, const Shape& x, const Window2d& win) {
  return {"max_pool2d_" + name, {x}, {}, [win](Context& ctx, const Tensors& v) {
            return ops::MaxPool2d(ctx, v[0], win, {/*ceil_mode=*/true});
          }};
}

FrontCase Avg(const std::string& name, const Shape& x, const Window2d& win,
              const AvgPoolOptions& options) {
  return {"avg_pool2d_" + name,
          {x},
          {},
          [win, options](Context& ctx, const Tensors& v) {
            return ops::AvgPool2d(ctx, v[0], win, options);
          }};
}

FrontCase Adaptive(const std::string& name, const Shape& x, std::int64_t rows,
                   std::int64_t columns) {
  return {"adaptive_avg_pool2d_" + name,
          {x},
          {},
          [rows, columns](Context& ctx, const Tensors& v) {
            return ops::AdaptiveAvgPool2d(ctx, v[0], rows, columns);
          }};
}

FrontCase Pad(const std::string& name, const Shape& x, const Padding2d& p) {
  return {"pad2d_" + name, {x}, {}, [p](Context& ctx, const Tensors& v) {
            return ops::Pad2d(ctx, v[0], p);
          }};
}

}  // namespace

void AddPoolFronts(std::vector<FrontCase>& all) {
  const std::vector<FrontCase> cases = {
      Max("ceil", {2, 5, 7, 3}, {2, 2, 2, 2}),
      Max("ceil_padded", {1, 6, 5, 2}, {3, 3, 2, 2, 1, 1}),
      Max("ceil_left_out", {1, 5, 4, 2}, {2, 2, 3, 3, 1, 1}),
      Avg("ceil", {2, 5, 7, 3}, {2, 2, 2, 2}, {true, true}),
      Avg("ceil_padded", {1, 6, 5, 2}, {3, 3, 2, 2, 1, 1}, {true, true}),
      Avg("ceil_of_image", {1, 6, 5, 2}, {3, 3, 2, 2, 1, 1}, {true, false}),
      Avg("of_image", {2, 5, 6, 2}, {3, 2, 1, 2, 1, 1}, {false, false}),
      Adaptive("one", {2, 5, 4, 3}, 1, 1),
      Adaptive("even", {2, 6, 4, 3}, 3, 2),
      Adaptive("uneven", {2, 7, 5, 3}, 3, 4),
      Adaptive("more", {1, 2, 3, 2}, 5, 3),
      Pad("zeros", {1, 3, 4, 2}, {1, 2, 0, 3, PadMode::kZeros}),
      Pad("reflect", {1, 4, 3, 2}, {3, 1, 2, 0, PadMode::kReflect}),
      Pad("replicate", {1, 3, 2, 2}, {1, 4, 3, 2, PadMode::kReplicate}),
      Pad("circular", {1, 3, 4, 2}, {3, 1, 2, 4, PadMode::kCircular}),
      {"pad1d_reflect",
       {{2, 5, 3}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Pad1d(ctx, v[0], {4, 1, PadMode::kReflect});
       }},
  };
  all.insert(all.end(), cases.begin(), cases.end());
}

}  // namespace troupe::nn
