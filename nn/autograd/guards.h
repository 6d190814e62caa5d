// Modes of a context that hold until the end of a block.
//
//   {
//     NoGrad no_grad(ctx);                   // torch.no_grad()
//     Evaluating evaluating(ctx);            // model.eval()
//     Tensor y = model(ctx, x);
//   }                                        // training again
//
// Guards nest. They cannot be copied or moved: a copy would end the mode while
// the other still holds it.

#ifndef NN_AUTOGRAD_GUARDS_H_
#define NN_AUTOGRAD_GUARDS_H_

#include "nn/autograd/context.h"

namespace troupe::nn {

// Nothing is recorded for backward: results are constants.
class NoGrad {
 public:
  explicit NoGrad(Context& ctx) : ctx_(ctx), tape_(ctx.tape()) {
    ctx.set_tape(nullptr);
  }
  ~NoGrad() { ctx_.set_tape(tape_); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Context& ctx_;
  Tape* const tape_;
};

// Layers behave as in an evaluation: no dropout, running statistics.
class Evaluating {
 public:
  explicit Evaluating(Context& ctx) : ctx_(ctx), training_(ctx.training()) {
    ctx.set_training(false);
  }
  ~Evaluating() { ctx_.set_training(training_); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  Context& ctx_;
  const bool training_;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_GUARDS_H_
