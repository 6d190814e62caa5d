// Skip connections between modules of a Sequential, so that a U-Net is a
// Sequential and can be cut into stages anywhere.
//
//   auto model = std::make_unique<Sequential>();
//   model->Append<Conv2d>(3, 16, Window2d{3, 3, 1, 1, 1, 1});
//   model->Append<Stash>("skip1");
//   model->Append<MaxPool2d>(2);
//   model->Append<Conv2d>(16, 16, Window2d{3, 3, 1, 1, 1, 1});
//   model->Append<ConvTranspose2d>(16, 16, Window2d{2, 2, 2, 2});
//   model->Append<PopConcat>("skip1");             // 32 channels
//
// A name is used once in a model: by one Stash and, behind it, by one PopAdd or
// PopConcat. A custom module calls Context::Stash() and Context::Pop().
//
// On one rank a skip connection is an edge of the tape. If stages begin between
// its ends, its tensor is sent with the activation, through all stages between,
// and its gradient returns the same way (docs/schedules.md): the plan lists it
// with the stages that it reaches. Gradients have the same bits under all cuts.
//
// Errors (sticky in ctx): kInvalidArgument with the name, if it is stashed or
// popped twice, was never stashed, or is never popped; shape errors of ops::Add
// and ops::Concat. A module that runs again in backward
// (nn/modules/recompute.h) must contain both ends of a connection, or none.

#ifndef NN_MODULES_SKIP_H_
#define NN_MODULES_SKIP_H_

#include <string>
#include <utility>

#include "nn/modules/module.h"
#include "nn/ops/add.h"
#include "nn/ops/concat.h"

namespace troupe::nn {

// y = x, stashed for a later module.
class Stash : public Module {
 public:
  explicit Stash(std::string name) : skip_(std::move(name)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    ctx.Stash(skip_, x);
    return x;
  }

 private:
  const std::string skip_;
};

// y = x + the stashed tensor, element by element (He et al. 2016,
// arXiv:1512.03385).
class PopAdd : public Module {
 public:
  explicit PopAdd(std::string name) : skip_(std::move(name)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Add(ctx, x, ctx.Pop(skip_));
  }

 private:
  const std::string skip_;
};

// y = the stashed tensor, and x behind it along `axis`; the last axis is the
// channels (Ronneberger et al. 2015, arXiv:1505.04597).
class PopConcat : public Module {
 public:
  explicit PopConcat(std::string name, int axis = -1)
      : skip_(std::move(name)), axis_(axis) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return ops::Concat(ctx, {ctx.Pop(skip_), x}, axis_);
  }

 private:
  const std::string skip_;
  const int axis_;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_SKIP_H_
