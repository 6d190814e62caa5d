// Gradients of parameters in backward: shared, frozen and unused parameters,
// several micro-batches, and memory that is allocated when it is needed.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/linear.h"
#include "nn/ops/add.h"
#include "nn/ops/conv2d.h"
#include "nn/ops/linear.h"
#include "nn/ops/relu.h"
#include "tests/nn/autograd/tape_fixture.h"

namespace troupe::nn {
namespace {

class ParameterGradientTest : public TapeTest {};

// A layer that is used twice, one that is never used, and a frozen one.
class Unusual : public Module {
 public:
  Unusual()
      : shared_(Add<Linear>("shared", 4, 4)),
        frozen_(Add<Linear>("frozen", 4, 4)) {
    Add<Linear>("unused", 9, 9);
  }
  Tensor Forward(Context& ctx, const Tensor& x) override {
    Tensor y = ops::Relu(ctx, shared_(ctx, x));
    y = frozen_(ctx, y);
    return ops::Add(ctx, y, shared_(ctx, y));
  }

 private:
  Linear& shared_;
  Linear& frozen_;
};

TEST_F(ParameterGradientTest, SharedFrozenAndUnusedParameters) {
  Own(std::make_unique<Unusual>());
  for (Parameter* p : parameters_) {
    if (p->name.find("frozen") == 0) p->requires_grad = false;
  }
  Tape tape;
  Diary diary;
  Tensor loss = Loss(tape, Draws("x", {5, 4}));
  Backward(tape, loss, diary, Mode::kWhole);
  EXPECT_EQ(diary.text,
            "complete shared.weight\ncomplete shared.bias\n"
            "read shared.weight\nread shared.bias\n");
  for (Parameter* p : parameters_) {
    EXPECT_EQ(p->grad_written, p->name.find("shared") == 0) << p->name;
  }
}

// The gradient equals the sum over two layers that hold the same values.
TEST_F(ParameterGradientTest, AParameterUsedTwiceAddsUpBothUses) {
  Tensor x = Draws("x", {5, 4}), value = Draws("w", {4, 4});
  auto gradient = [&](Parameter& first, Parameter& second) {
    for (Parameter* p : {&first, &second}) {
      p->value = value;
      p->grad = Tensor::Zeros({4, 4}, DType::kF32, kernels_->allocator());
      p->grad_written = false;
    }
    Tape tape;
    Context ctx(*kernels_, &tape);
    Diary diary;
    Tensor y = ops::Linear(ctx, x, ctx.Use(first), Tensor());
    y = ops::Linear(ctx, ops::Relu(ctx, y), ctx.Use(second), Tensor());
    BackwardPass pass(tape, *kernels_, diary, Mode::kWhole);
    pass.Seed(y, Draws("dy", {5, 4}));
    Run(pass);
    return ValuesOf(first.grad);
  };
  Parameter shared, one, two;
  std::vector<double> want = gradient(one, two);
  const std::vector<double> second = ValuesOf(two.grad);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += second[i];
  EXPECT_TRUE(Near(gradient(shared, shared), want, 1e-6));
}

TEST_F(ParameterGradientTest, TrainsABiasWhoseWeightIsFrozen) {
  Own(MakeMlp({3, 2}, {}));
  auto bias_gradient = [&] {
    arena_->BeginStep();
    Tape tape;
    Diary diary;
    Backward(tape, Loss(tape, Draws("x", {6, 3})), diary, Mode::kWhole);
    return ValuesOf(parameters_[1]->grad);
  };
  const std::vector<double> before = bias_gradient();
  parameters_[0]->requires_grad = false;
  EXPECT_EQ(bias_gradient(), before);
  EXPECT_FALSE(parameters_[0]->grad_written);
}

TEST_F(ParameterGradientTest, AsksForMemoryWhereAGradientHasNone) {
  Own(MakeMlp({3, 4, 2}, {}));
  const Tensor x = Draws("x", {6, 3});
  Tape tape;
  Diary kept;
  Backward(tape, Loss(tape, x), kept, Mode::kWhole);
  const std::vector<double> want = AllGrads();

  ParameterArena::Options options;
  options.keep_grads = false;
  arena_ =
      *ParameterArena::Create({parameters_}, options, kernels_->allocator());
  EXPECT_TRUE(arena_->Initialize(/*seed=*/1).ok());
  struct Holder : Diary {
    explicit Holder(ParameterArena* arena) : arena(arena) {}
    absl::Status GradientNeeded(Parameter& p) override {
      absl::StrAppend(&text, "needed ", p.name, "\n");
      return arena->HoldGrads(0);
    }
    ParameterArena* arena;
  } holder(arena_.get());
  tape.Reset();
  Backward(tape, Loss(tape, x), holder, Mode::kWhole);
  EXPECT_EQ(ValuesOf(arena_->BucketGrads(0)), want);
  EXPECT_EQ(holder.text, "needed 3.weight\n" + kept.text) << "once";

  // A sink that provides no memory.
  arena_->ReleaseGrads(0);
  tape.Reset();
  const Tensor loss = Loss(tape, x);
  BackwardPass pass(tape, *kernels_, kept, Mode::kWhole);
  pass.Seed(loss);
  ASSERT_TRUE(pass.Next().ok());  // the loss
  const absl::Status status = pass.Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("the gradient of 3.weight has no memory"));
}

// The node allocates a gradient for the frozen weight, which is passed to no
// one.
TEST_F(ParameterGradientTest, TrainsAComputedBiasWhoseWeightIsFrozen) {
  for (const Shape& w_shape : {Shape{2, 3}, Shape{2, 1, 2, 2}}) {
    Parameter w, b;
    w.requires_grad = false;
    w.value = Draws("w", w_shape);
    b.value = MakeTensor({2}, DType::kF32, {1, 2}, kernels_->allocator());
    b.grad = Tensor::Zeros({2}, DType::kF32, kernels_->allocator());
    Tape tape;
    Context ctx(*kernels_, &tape);
    Tensor bias = ops::Relu(ctx, ctx.Use(b));
    Tensor y = w_shape.rank() == 2
                   ? ops::Linear(ctx, Draws("x", {4, 3}), ctx.Use(w), bias)
                   : ops::Conv2d(ctx, Draws("x", {4, 2, 2, 1}), ctx.Use(w),
                                 bias, {2, 2});
    ASSERT_TRUE(ctx.ok()) << ctx.status();
    Tensor dy = Tensor::Zeros(y.shape(), DType::kF32, kernels_->allocator());
    for (float& each : dy.span<float>()) each = 1;
    Diary diary;
    BackwardPass pass(tape, *kernels_, diary, Mode::kWhole);
    pass.Seed(y, dy);
    Run(pass);
    EXPECT_EQ(ValuesOf(b.grad), (std::vector<double>{4, 4}));
    EXPECT_FALSE(w.grad_written);
  }
}

TEST_F(ParameterGradientTest, TapesOfSeveralMicroBatchesLiveAtOnce) {
  Own(MakeMlp({3, 4, 2}, {}));
  const Tensor x = Draws("x", {6, 3});
  auto run = [&](const std::vector<std::string>& order) {
    arena_->BeginStep();
    std::vector<Tape> tapes(3);
    std::vector<Tensor> losses(3);
    Diary diary;
    for (const std::string& action : order) {
      const int i = action[1] - '0';
      if (action[0] == 'F') {
        losses[i] = Loss(tapes[i], x.Slice(2 * i, 2 * i + 2));
      } else {
        Backward(tapes[i], losses[i], diary, Mode::kWhole);
      }
    }
    return AllGrads();
  };
  const auto one_by_one = run({"F0", "B0", "F1", "B1", "F2", "B2"});
  EXPECT_EQ(run({"F0", "F1", "F2", "B0", "B1", "B2"}), one_by_one);
  EXPECT_EQ(run({"F0", "F1", "B0", "F2", "B1", "B2"}), one_by_one);
}

TEST_F(ParameterGradientTest, MicroBatchesAddUpToTheWholeBatch) {
  Own(MakeMlp({3, 4, 2}, {}));
  const Tensor x = Draws("x", {6, 3});
  auto run = [&](int micro_batch_size) {
    arena_->BeginStep();
    for (int begin = 0; begin < 6; begin += micro_batch_size) {
      Tape tape;
      Diary diary;
      Tensor loss = Loss(tape, x.Slice(begin, begin + micro_batch_size));
      Backward(tape, loss, diary, Mode::kWhole);
    }
    return AllGrads();
  };
  const std::vector<double> whole = run(6);
  EXPECT_TRUE(Near(run(1), whole, 1e-6));
  EXPECT_TRUE(Near(run(2), whole, 1e-6));
  EXPECT_TRUE(Near(run(3), whole, 1e-6));
}

}  // namespace
}  // namespace troupe::nn
