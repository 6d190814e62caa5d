// Cases of the fronts of activations and softmax.

#include <string>
#include <utility>
#include <vector>

#include "nn/ops/activation.h"
#include "nn/ops/softmax.h"
#include "tests/nn/fronts/front_case.h"

namespace troupe::nn {
namespace {

std::vector<FrontCase> ActivationCases() {
  return {
      {"leaky_relu",
       {{5, 7}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::LeakyRelu(ctx, v[0], 0.2);
       }},
      {"gelu",
       {{5, 7}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Gelu(ctx, v[0]); }},
      {"gelu_tanh",
       {{5, 7}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Gelu(ctx, v[0], ops::GeluForm::kTanh);
       }},
      {"silu",
       {{5, 7}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Silu(ctx, v[0]); }},
      {"sigmoid",
       {{5, 7}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Sigmoid(ctx, v[0]); }},
      {"tanh",
       {{5, 7}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Tanh(ctx, v[0]); }},
  };
}

std::vector<FrontCase> SoftmaxCases() {
  return {
      {"softmax",
       {{3, 7}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Softmax(ctx, v[0]); }},
      {"softmax_of_axis_1",
       {{2, 5, 3}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Softmax(ctx, v[0], 1);
       }},
      {"log_softmax",
       {{3, 7}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::LogSoftmax(ctx, v[0]);
       }},
      {"log_softmax_of_axis_0",
       {{4, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::LogSoftmax(ctx, v[0], 0);
       }},
  };
}

}  // namespace

void AddActivationFronts(std::vector<FrontCase>& all) {
  for (const auto& cases : {ActivationCases(), SoftmaxCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
}

}  // namespace troupe::nn
