// One forward and backward of a module on a rank of its own, as lists of
// numbers: for tests that compare modules, kernel sets or ranks.
//
//   OnePass rank(*kernels, std::make_unique<BatchNorm1d>(4));
//   const PassValues got = rank.Run({x}, dy);
//   EXPECT_EQ(got.buffers.at("running_mean"), want);

#ifndef TESTS_NN_MODULES_ONE_PASS_H_
#define TESTS_NN_MODULES_ONE_PASS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/autograd/tape.h"
#include "nn/modules/module.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {

struct PassValues {
  std::vector<double> y;
  std::vector<std::vector<double>> dx;  // one for each input
  std::map<std::string, std::vector<double>> gradients, buffers;
};

class OnePass {
 public:
  // Parameters are draws by their names; all numbers have dtype `dtype`, which
  // must be the module's. `kernels` outlives it.
  OnePass(Kernels& kernels, std::unique_ptr<Module> module,
          DType dtype = DType::kF32)
      : kernels_(kernels), module_(std::move(module)), dtype_(dtype) {
    for (Parameter* parameter : module_->Parameters()) {
      parameter->value = Draws(parameter->name, parameter->shape);
    }
    EXPECT_TRUE(BindBuffers(module_->Buffers(), kernels_).ok());
  }

  Module& module() { return *module_; }
  // `axes` outlives the passes.
  void set_collectives(absl::Span<const AxisCollectives> axes) { axes_ = axes; }

  Tensor Draws(const std::string& name, const Shape& shape) {
    return MakeTensor(shape, dtype_, NormalDraws(name, shape.numel()),
                      kernels_.allocator());
  }

  PassValues Run(const TensorList& xs, const Tensor& dy) {
    Tape tape;
    Context ctx(kernels_, &tape);
    ctx.set_collectives(axes_);
    TensorList watched;
    for (const Tensor& x : xs) watched.push_back(tape.Watch(x));
    for (Parameter* parameter : module_->Parameters()) {
      parameter->grad = Tensor::Empty(parameter->shape, parameter->dtype,
                                      kernels_.allocator());
      parameter->grad_written = false;
    }
    const TensorList ys = module_->CallMany(ctx, watched);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    if (!ctx.ok()) return {};
    Backward(tape, ys[0], dy);
    return Values(tape, ys[0], watched);
  }

  // Returns y of an evaluation.
  std::vector<double> Evaluate(const Tensor& x) {
    Context ctx(kernels_);
    ctx.set_training(false);
    ctx.set_collectives(axes_);
    const Tensor y = (*module_)(ctx, x);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return ValuesOf(y);
  }

 private:
  struct NoSink : GradientSink {
    void GradientComplete(Parameter&) override {}
    void LastReaderDone(Parameter&) override {}
  };

  void Backward(Tape& tape, const Tensor& y, const Tensor& dy) {
    NoSink sink;
    BackwardPass backward(tape, kernels_, sink, BackwardPass::Mode::kWhole);
    backward.Seed(y, dy);
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = backward.Next();
    EXPECT_TRUE(more.ok()) << more.status();
  }

  PassValues Values(const Tape& tape, const Tensor& y,
                    const TensorList& inputs) {
    PassValues values;
    values.y = ValuesOf(y);
    for (const Tensor& input : inputs) {
      values.dx.push_back(ValuesOf(tape.InputGrad(input)));
    }
    for (Parameter* parameter : module_->Parameters()) {
      values.gradients[parameter->name] = ValuesOf(parameter->grad);
    }
    for (Buffer* buffer : module_->Buffers()) {
      values.buffers[buffer->name] = ValuesOf(buffer->value);
    }
    return values;
  }

  Kernels& kernels_;
  const std::unique_ptr<Module> module_;
  const DType dtype_;
  absl::Span<const AxisCollectives> axes_;
};

}  // namespace troupe::nn

#endif  // TESTS_NN_MODULES_ONE_PASS_H_
