// For tests of tapes: a model on the reference kernels with an arena of its
// own, and a sink that records its calls.

#ifndef TESTS_NN_AUTOGRAD_TAPE_FIXTURE_H_
#define TESTS_NN_AUTOGRAD_TAPE_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
#include "nn/autograd/tape.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/module.h"
#include "nn/ops/loss.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {

using Mode = BackwardPass::Mode;

// Records its calls, as text.
struct Diary : GradientSink {
  void GradientComplete(Parameter& p) override {
    absl::StrAppend(&text, "complete ", p.name, "\n");
  }
  void LastReaderDone(Parameter& p) override {
    absl::StrAppend(&text, "read ", p.name, "\n");
  }
  std::string text;
};

class TapeTest : public testing::Test {
 protected:
  void Own(std::unique_ptr<Module> model) {
    model_ = std::move(model);
    parameters_ = model_->Parameters();
    arena_ = *ParameterArena::Create({parameters_}, {}, kernels_->allocator());
    EXPECT_TRUE(arena_->Initialize(/*seed=*/1).ok());
  }

  Tensor Draws(const std::string& name, const Shape& shape) {
    return MakeTensor(shape, DType::kF32, NormalDraws(name, shape.numel()),
                      kernels_->allocator());
  }

  // Runs forward to a loss: mean squared distance from zero.
  Tensor Loss(Tape& tape, const Tensor& x) {
    Context ctx(*kernels_, &tape);
    Tensor y = (*model_)(ctx, x);
    Tensor zero = Tensor::Zeros(y.shape(), y.dtype(), kernels_->allocator());
    Tensor loss = ops::MeanSquaredError(ctx, y, zero);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return loss;
  }

  // Returns the number of pieces.
  int Run(BackwardPass& pass) {
    int pieces = 0;
    while (true) {
      auto more = pass.Next();
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return pieces;
      ++pieces;
    }
  }
  int Backward(Tape& tape, const Tensor& loss, GradientSink& sink, Mode mode) {
    BackwardPass pass(tape, *kernels_, sink, mode);
    if (loss.defined()) pass.Seed(loss);
    return Run(pass);
  }

  std::vector<double> AllGrads() { return ValuesOf(arena_->grads()); }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
  std::unique_ptr<Module> model_;
  std::vector<Parameter*> parameters_;
  std::unique_ptr<ParameterArena> arena_;
};

}  // namespace troupe::nn

#endif  // TESTS_NN_AUTOGRAD_TAPE_FIXTURE_H_
