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
#include <optional>
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
  std::vector<std::vector<double>> dx;  // one for each floating input
  std::map<std::string, std::vector<double>> gradients, buffers;
};

class OnePass {
 public:
  // Parameters are draws by their names, times `scale`, and a piece of one has
  // those of the whole; all numbers have dtype `dtype`, which must be the
  // module's. `kernels` outlives it.
  OnePass(Kernels& kernels, std::unique_ptr<Module> module,
          DType dtype = DType::kF32, double scale = 1)
      : kernels_(kernels), module_(std::move(module)), dtype_(dtype) {
    for (Parameter* parameter : module_->Parameters()) {
      parameter->value = DrawsOf(*parameter, scale);
    }
    EXPECT_TRUE(BindBuffers(module_->Buffers(), kernels_).ok());
  }

  Module& module() { return *module_; }
  // Sets the position of random draws.
  void set_random(const StepPosition& position) { position_ = position; }
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
    if (position_) ctx.set_random(*position_);
    for (const Tensor& x : xs) {
      watched.push_back(IsFloating(x.dtype()) ? tape.Watch(x) : x);
    }
    for (Parameter* parameter : module_->Parameters()) {
      parameter->grad = Tensor::Empty(parameter->shape, parameter->dtype,
                                      kernels_.allocator());
      parameter->grad_written = false;
    }
    const TensorList ys = watched.size() == 1
                              ? TensorList{(*module_)(ctx, watched[0])}
                              : module_->CallMany(ctx, watched);
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

  Tensor DrawsOf(const Parameter& parameter, double scale) {
    const std::vector<double> whole =
        NormalDraws(parameter.name, parameter.global_shape.numel());
    std::vector<double> values(parameter.shape.numel());
    for (const ShardRange& range : RangesOf(parameter)) {
      for (std::int64_t i = 0; i < range.count; ++i) {
        values[range.local + i] = scale * whole[range.global + i];
      }
    }
    return MakeTensor(parameter.shape, dtype_, values, kernels_.allocator());
  }

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
      if (!IsFloating(input.dtype())) continue;
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
  std::optional<StepPosition> position_;
};

}  // namespace troupe::nn

#endif  // TESTS_NN_MODULES_ONE_PASS_H_
