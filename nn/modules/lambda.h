// A function as a module: a step between two layers of a Sequential for which
// an op but no module exists.
//
//   model->Append<Lambda>([](Context& ctx, const Tensor& x) {
//     return ops::Mean(ctx, x, {1});                  // [N, T, C] to [N, C]
//   });
//
// It has no parameters: a step with parameters needs a module of its own. Each
// rank's model has a copy of the function, which the rank calls in training, in
// evaluations and in shape-only forwards; so it must not change its state.

#ifndef NN_MODULES_LAMBDA_H_
#define NN_MODULES_LAMBDA_H_

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "nn/modules/module.h"

namespace troupe::nn {

class Lambda : public Module {
 public:
  using Function = std::function<Tensor(Context&, const Tensor&)>;

  explicit Lambda(Function function) : function_(std::move(function)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    if (function_) return function_(ctx, x);
    return ctx.Fail(
        absl::InvalidArgumentError("nn::Lambda has no function; give it one"));
  }

 private:
  const Function function_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_LAMBDA_H_
