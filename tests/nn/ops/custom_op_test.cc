// Custom ops: values, shapes, gradients, and error messages.

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/autograd/tape.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/custom.h"

namespace troupe::nn::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// y = x^3, of x's shape.
CustomOp Cube() {
  CustomOp op;
  op.name = "cube";
  op.forward = [](Kernels&, const Tensor& x, Tensor& y) {
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const float v = x.data<float>()[i];
      y.data<float>()[i] = v * v * v;
    }
    return absl::OkStatus();
  };
  op.backward = [](Kernels&, const CustomGradient& g, Tensor& dx) {
    for (std::int64_t i = 0; i < dx.numel(); ++i) {
      const float v = g.x.data<float>()[i];
      dx.data<float>()[i] = 3 * v * v * g.dy.data<float>()[i];
    }
    return absl::OkStatus();
  };
  return op;
}

class NoSink : public GradientSink {
 public:
  void GradientComplete(Parameter&) override {}
  void LastReaderDone(Parameter&) override {}
};

class CustomOpTest : public testing::Test {
 protected:
  CustomOpTest() : kernels_(CreateCpuKernels({})) {}
  Tensor Of(const std::vector<float>& values) {
    return Tensor::Of<float>({static_cast<std::int64_t>(values.size())}, values,
                             kernels_->allocator());
  }

  std::unique_ptr<Kernels> kernels_;
};

TEST_F(CustomOpTest, BackwardIsTheUsersAndAddsUpWithThatOfOtherOps) {
  Tape tape;
  Context ctx(*kernels_, &tape);
  const Tensor x = tape.Watch(Of({1, -2, 3}));
  // x^3 + x: the gradient is 3 x^2 + 1.
  const Tensor y = Add(ctx, Custom(ctx, Cube(), x), x);
  ASSERT_TRUE(ctx.ok()) << ctx.status();
  EXPECT_THAT(y.span<float>(), ElementsAre(2, -10, 30));
  NoSink sink;
  BackwardPass pass(tape, *kernels_, sink, BackwardPass::Mode::kWhole);
  pass.Seed(y, Of({1, 1, 10}));
  while (pass.Next().value()) {
  }
  EXPECT_THAT(tape.InputGrad(x).span<float>(), ElementsAre(4, 13, 280));
}

TEST_F(CustomOpTest, ShapesAloneCallNoFunction) {
  CustomOp rows;
  rows.name = "rows";
  rows.forward = [](Kernels&, const Tensor&, Tensor&) {
    return absl::InternalError("called");
  };
  rows.shape = [](const Shape& x) -> absl::StatusOr<Shape> {
    if (x.rank() != 2) return absl::InvalidArgumentError("takes a matrix");
    return Shape{x[0]};
  };
  ShapeRecord record;
  Context ctx(Device(), record);
  const Tensor y = Custom(ctx, rows, Tensor::Meta({4, 3}, DType::kF32, {}));
  ASSERT_TRUE(ctx.ok()) << ctx.status();
  EXPECT_EQ(y.shape(), Shape({4}));
  ASSERT_EQ(record.ops.size(), 1u);
  EXPECT_EQ(record.ops[0].name, "rows");
  EXPECT_EQ(record.ops[0].flops, 4);
  Custom(ctx, rows, Tensor::Meta({4}, DType::kF32, {}));
  EXPECT_THAT(std::string(ctx.status().message()),
              HasSubstr("rows: takes a matrix"));
}

TEST_F(CustomOpTest, WithoutABackwardItIsForEvaluation) {
  CustomOp op = Cube();
  op.backward = nullptr;
  Context evaluation(*kernels_);
  EXPECT_THAT(Custom(evaluation, op, Of({2})).span<float>(), ElementsAre(8));
  Tape tape;
  Context training(*kernels_, &tape);
  Custom(training, op, tape.Watch(Of({2})));
  EXPECT_THAT(std::string(training.status().message()),
              HasSubstr("cube has no backward, but f32[1] needs a gradient"));
}

TEST_F(CustomOpTest, AnErrorOfItsFunctionsNamesTheOp) {
  CustomOp op = Cube();
  op.forward = [](Kernels&, const Tensor&, Tensor&) {
    return absl::DataLossError("torn");
  };
  Context ctx(*kernels_);
  Custom(ctx, op, Of({2}));
  EXPECT_THAT(std::string(ctx.status().message()), HasSubstr("cube: torn"));
}

}  // namespace
}  // namespace troupe::nn::ops
