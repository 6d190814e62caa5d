#include "nn/autograd/var.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/status_error.h"
#include "gtest/gtest.h"
#include "nn/autograd/create.h"
#include "nn/autograd/guards.h"
#include "nn/autograd/var_math.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

class VarTest : public testing::Test {
 protected:
  Var Make(const Shape& shape, const std::vector<double>& values) {
    return Var(ctx_,
               MakeTensor(shape, DType::kF64, values, kernels_->allocator()));
  }
  // Returns a parameter's value; its gradient is NaN before backward.
  Var Trained(const Shape& shape, const std::vector<double>& values) {
    parameter_.name = "p";
    parameter_.shape = shape;
    parameter_.value = Make(shape, values);
    parameter_.grad = Tensor::Empty(shape, DType::kF64, kernels_->allocator());
    parameter_.grad_written = false;
    return Var(ctx_, ctx_.Use(parameter_));
  }
  std::vector<double> Gradient() const { return ValuesOf(parameter_.grad); }
  // Returns the message with which `run` fails, after which the context works.
  template <typename Run>
  std::string ErrorOf(Run run) {
    const absl::Status status = base::Try(run);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(ctx_.ok());
    return std::string(status.message());
  }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
  Tape tape_;
  Context ctx_{*kernels_, &tape_};
  Parameter parameter_;
};

using Values = std::vector<double>;

TEST_F(VarTest, OperatorsComputeElementByElement) {
  const Var x = Make({2, 2}, {1, 2, 3, 4}), y = Make({2}, {10, 20});
  EXPECT_EQ(ValuesOf(x + y), (Values{11, 22, 13, 24}));
  EXPECT_EQ(ValuesOf(x - y), (Values{-9, -18, -7, -16}));
  EXPECT_EQ(ValuesOf(x * y), (Values{10, 40, 30, 80}));
  EXPECT_EQ(ValuesOf(y / x), (Values{10, 10, 10. / 3, 5}));
  EXPECT_EQ(ValuesOf(-x), (Values{-1, -2, -3, -4}));
  EXPECT_EQ(ValuesOf(x + 1), (Values{2, 3, 4, 5}));
  EXPECT_EQ(ValuesOf(1 - x), (Values{0, -1, -2, -3}));
  EXPECT_EQ(ValuesOf(2 * x), (Values{2, 4, 6, 8}));
  EXPECT_EQ(ValuesOf(x / 3), (Values{1. / 3, 2. / 3, 1, 4. / 3}));
  EXPECT_EQ(ValuesOf(12 / x), (Values{12, 6, 4, 3}));
}

TEST_F(VarTest, ComparisonsGiveMasks) {
  const Var x = Make({3}, {1, 2, 3}), y = Make({3}, {3, 2, 1});
  EXPECT_EQ(ValuesOf(x < y), (Values{1, 0, 0}));
  EXPECT_EQ(ValuesOf(x <= y), (Values{1, 1, 0}));
  EXPECT_EQ(ValuesOf(x > y), (Values{0, 0, 1}));
  EXPECT_EQ(ValuesOf(x >= y), (Values{0, 1, 1}));
  EXPECT_EQ(ValuesOf(x == y), (Values{0, 1, 0}));
  EXPECT_EQ(ValuesOf(x != y), (Values{1, 0, 1}));
  EXPECT_EQ(ValuesOf(x < 2), (Values{1, 0, 0}));
  EXPECT_EQ(ValuesOf(x <= 2), (Values{1, 1, 0}));
  EXPECT_EQ(ValuesOf(x > 2), (Values{0, 0, 1}));
  EXPECT_EQ(ValuesOf(x >= 2), (Values{0, 1, 1}));
  EXPECT_EQ(ValuesOf(x == 2), (Values{0, 1, 0}));
  EXPECT_EQ(ValuesOf(x != 2), (Values{1, 0, 1}));
  EXPECT_EQ(ValuesOf(2 < x), (Values{0, 0, 1}));
  EXPECT_EQ(ValuesOf(2 <= x), (Values{0, 1, 1}));
  EXPECT_EQ(ValuesOf(2 > x), (Values{1, 0, 0}));
  EXPECT_EQ(ValuesOf(2 >= x), (Values{1, 1, 0}));
  EXPECT_EQ(ValuesOf(2 == x), (Values{0, 1, 0}));
  EXPECT_EQ(ValuesOf(2 != x), (Values{1, 0, 1}));
}

TEST_F(VarTest, LabelsAreComparedAndMasked) {
  const Var scores = Make({2, 3}, {1, 5, 2, 9, 8, 7});
  const Var labels(ctx_,
                   MakeTensor({2}, DType::kI64, {1, 2}, kernels_->allocator()));
  const Var hits = Argmax(scores) == labels;
  EXPECT_EQ(hits.dtype(), DType::kF32);
  EXPECT_EQ(Mean(hits).item(), 0.5);
  EXPECT_EQ(ValuesOf(MaskedFill(labels, labels > 1, -100)), (Values{1, -100}));
  EXPECT_EQ(ErrorOf([&] { labels < 1.5; }),
            "less takes an integer beside i64[2], got 1.5");
  // A NaN differs from itself; a gradient stays finite beside an infinity.
  const Var odd = Make({2}, {std::nan(""), 1});
  EXPECT_EQ(ValuesOf(odd != odd), (Values{1, 0}));
  const Var x = Trained({2}, {0, 4});
  Sum(Where(x > 0, Log(x), 7)).Backward();
  EXPECT_EQ(Gradient()[1], 0.25);
}

TEST_F(VarTest, OrdersAndIndices) {
  const Var x = Make({4}, {3, 1, 4, 1});
  const auto [values, indices] = Sort(x);
  EXPECT_EQ(ValuesOf(values), (Values{1, 1, 3, 4}));
  EXPECT_EQ(ValuesOf(indices), (Values{1, 3, 0, 2}));
  EXPECT_EQ(ValuesOf(Argsort(x, 0, /*descending=*/true)), (Values{2, 0, 1, 3}));
  EXPECT_EQ(ValuesOf(TopK(x, 2).values), (Values{4, 3}));
  EXPECT_EQ(ValuesOf(TopK(x, 1, -1, /*largest=*/false).indices), (Values{1}));
  EXPECT_EQ(ValuesOf(IndexSelect(x, 0, indices)), ValuesOf(values));
  EXPECT_EQ(ValuesOf(Gather(x, 0, indices)), ValuesOf(values));
  const Var groups(
      ctx_, MakeTensor({4}, DType::kI64, {0, 1, 0, 1}, kernels_->allocator()));
  EXPECT_EQ(ValuesOf(IndexAdd(Make({2}, {10, 20}), 0, groups, x)),
            (Values{17, 22}));
  EXPECT_EQ(ValuesOf(ScatterAdd(Make({2}, {10, 20}), 0, groups, x)),
            (Values{17, 22}));
  EXPECT_EQ(ValuesOf(Cumsum(x, 0)), (Values{3, 4, 8, 9}));
}

TEST_F(VarTest, GridsAndNamedAxes) {
  const Var x = Make({2}, {1, 2}), y = Make({3}, {3, 4, 5});
  const std::vector<Var> grids = Meshgrid({x, y});
  EXPECT_EQ(ValuesOf(grids[0]), (Values{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(ValuesOf(grids[1]), (Values{3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(Meshgrid({x, y}, ops::GridIndexing::kXY)[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(ValuesOf(Einsum("i,j->ji", {x, y})), (Values{3, 6, 4, 8, 5, 10}));
  EXPECT_EQ(ErrorOf([&] {
              Einsum("i,i->i", {x, y});
            }),
            "einsum \"i,i->i\": subscript i is 2 and 3, got {f64[2], f64[3]}");
  EXPECT_EQ(
      ErrorOf([&] {
        Meshgrid({x, grids[0]});
      }),
      "meshgrid takes 1 to 6 vectors whose grid has less than 2^60 points, "
      "got {f64[2], f64[2, 3]}");
  EXPECT_EQ(ErrorOf([] { Einsum("i->i", {}); }),
            "Einsum() takes at least one tensor; give one");
}

TEST_F(VarTest, ShapesAreViewsOfTheSameElements) {
  const Var x = Make({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(x.View({3, -1}).shape(), (Shape{3, 2}));
  EXPECT_EQ(x.Unsqueeze(-1).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(x.Unsqueeze(0).Squeeze().shape(), (Shape{2, 3}));
  EXPECT_EQ(x.Unsqueeze(1).Squeeze(1).shape(), (Shape{2, 3}));
  EXPECT_EQ(x.Squeeze(0).shape(), (Shape{2, 3}));
  EXPECT_EQ(ValuesOf(x.Transpose(0, 1)), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(ValuesOf(x.Permute({1, 0})), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(ValuesOf(x[1]), (Values{4, 5, 6}));
  EXPECT_EQ(x[-1][0].item(), 4);
  EXPECT_EQ(ValuesOf(x.Slice(1)), (Values{4, 5, 6}));
  EXPECT_EQ(ValuesOf(x.Slice(0, -1, 1)), (Values{1, 2, 4, 5}));
  EXPECT_EQ(x.View({6}).tensor().raw(), x.tensor().raw());
}

TEST_F(VarTest, BackwardGivesTheGradientAndEndsTheTape) {
  Var w = Trained({2}, {3, -4});
  Var loss = Sum(Square(w) / 2);
  EXPECT_EQ(loss.item(), 12.5);
  loss.Backward();
  EXPECT_EQ(Gradient(), (Values{3, -4}));
  // The kept loss is a constant: it feeds the next step.
  Var next = Sum(Trained({2}, {1, 1}) * w * loss);
  next.Backward();
  EXPECT_EQ(Gradient(), (Values{37.5, -50}));
  EXPECT_EQ(tape_.num_nodes(), 0);
}

TEST_F(VarTest, GradientsOfALossAreThoseOfItsMean) {
  const Var target = Make({4}, {0, 0, 0, 0});
  Var loss = MeanSquaredError(Trained({4}, {1, 2, 3, 4}), target);
  EXPECT_EQ(loss.item(), 7.5);
  loss.Backward();
  EXPECT_EQ(Gradient(), (Values{0.5, 1, 1.5, 2}));
}

TEST_F(VarTest, ALossIsItsMeanInExpressions) {
  const Var w = Trained({4}, {1, 2, 3, 4});
  const Var loss = MeanSquaredError(w, ZerosLike(w));
  Var total = 2 * loss + Sum(w) - 1;
  EXPECT_EQ(total.shape(), Shape());
  EXPECT_EQ(total.item(), 24);
  total.Backward();
  EXPECT_EQ(Gradient(), (Values{2, 3, 4, 5}));
}

// Tells which gradients were computed, as an engine that reduces them does.
struct NamingSink : GradientSink {
  void GradientComplete(Parameter& parameter) override {
    names += parameter.name;
  }
  void LastReaderDone(Parameter&) override {}
  std::string names;
};

TEST_F(VarTest, BackwardTellsTheSinkOfTheContext) {
  NamingSink sink;
  ctx_.set_sink(&sink);
  Sum(Trained({2}, {1, 2})).Backward();
  EXPECT_EQ(sink.names, "p");
}

TEST_F(VarTest, ChangesInPlaceReachAllHandles) {
  Var x = Make({2, 2}, {1, 2, 3, 4});
  const Var same = x;
  x += 1;
  x *= Make({2}, {10, 100});
  x -= 5;
  x /= 5;
  EXPECT_EQ(ValuesOf(same), (Values{3, 59, 7, 99}));
}

TEST_F(VarTest, WhatBackwardNeedsDoesNotChangeInPlace) {
  Var w = Trained({2}, {1, 2});
  const std::string error = ErrorOf([&] { w += 1; });
  EXPECT_EQ(error,
            "backward needs f64[2]: it cannot change in place; write x = x + "
            "y, take Detached(), or hold a NoGrad guard");
  Var total = Zeros(ctx_, {}, DType::kF64);
  EXPECT_NE(ErrorOf([&] { total += Sum(w); }), "");
  total += Sum(w).Detached();
  EXPECT_EQ(total.item(), 3);
  const NoGrad no_grad(ctx_);
  w += 1;
  EXPECT_EQ(ValuesOf(parameter_.value), (Values{2, 3}));
}

TEST_F(VarTest, UnderNoGradNothingIsRecorded) {
  const Var w = Trained({2}, {1, 2});
  Var kept;
  {
    const NoGrad no_grad(ctx_);
    kept = Sum(w * w);
    EXPECT_EQ(ErrorOf([&] { kept.Backward(); }),
              "Backward() of f64[]: the context has no tape (a NoGrad guard "
              "takes it away)");
  }
  EXPECT_EQ(tape_.num_nodes(), 0);
  Sum(w * kept).Backward();
  EXPECT_EQ(Gradient(), (Values{5, 5}));
}

TEST_F(VarTest, GuardsNest) {
  const Evaluating outer(ctx_);
  {
    const Evaluating inner(ctx_);
    EXPECT_FALSE(ctx_.training());
  }
  EXPECT_FALSE(ctx_.training());
}

TEST_F(VarTest, AFailureIsThrownOnItsLine) {
  const Var x = Make({2, 3}, Values(6)), y = Make({2}, Values(2));
  bool reached = false;
  EXPECT_EQ(ErrorOf([&] {
              const Var z = x + y;
              reached = true;
            }),
            "add takes two tensors of one dtype that broadcast to one shape, "
            "got f64[2, 3] and f64[2]");
  EXPECT_FALSE(reached);
}

TEST_F(VarTest, Mistakes) {
  const Var x = Make({2, 3}, Values(6));
  EXPECT_EQ(ErrorOf([&] {
              x.View({4, -1});
            }),
            "view takes a shape of as many elements, got f64[2, 3] and {4, "
            "-1}");
  EXPECT_EQ(ErrorOf([&] {
              x.View({-1, -1});
            }),
            "view takes a shape of as many elements, got f64[2, 3] and {-1, "
            "-1}");
  EXPECT_EQ(ErrorOf([&] { x[2]; }), "index 2 is outside of f64[2, 3]");
  EXPECT_EQ(ErrorOf([&] { x.Unsqueeze(3); }),
            "unsqueeze: f64[2, 3] has no axis 3");
  EXPECT_EQ(ErrorOf([&] { x.item(); }),
            "item() takes one element, or a loss; got f64[2, 3]");
  EXPECT_EQ(ErrorOf([&] { Sum(x).Backward(); }),
            "Backward() of f64[]: nothing that it was computed from is "
            "trained, or its Backward() was called before");
  EXPECT_EQ(ErrorOf([&] {
              (Trained({2}, {1, 2}) * 2).Backward();
            }),
            "Backward() begins at a loss or at one element, not at f64[2]; "
            "take its Sum() or Mean()");
  EXPECT_EQ(ErrorOf([&] { Var() + 1; }),
            "an nn::Var is used that has no value; assign one first");
  EXPECT_EQ(ErrorOf([&] { Cat({}, 0); }),
            "Cat() and Stack() take at least one tensor; give one");
}

TEST_F(VarTest, IndicesAreInsideAndConstant) {
  const Var x = Make({2, 3}, {1, 5, 2, 7, 0, 7});
  const VarExtremes most = Max(x, -1);
  EXPECT_EQ(ValuesOf(most.values), (Values{5, 7}));
  EXPECT_EQ(ValuesOf(most.indices), (Values{1, 0}));
  EXPECT_EQ(ValuesOf(Argmax(x, 0)), (Values{1, 0, 1}));
  EXPECT_EQ(ValuesOf(Argmin(x, 1, /*keep_dims=*/true)), (Values{0, 1}));
  EXPECT_EQ(ValuesOf(OneHot(most.indices, 3, DType::kF64)),
            (Values{0, 1, 0, 1, 0, 0}));
}

TEST_F(VarTest, AnyOpIsCalledByApply) {
  const Var x = Make({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(ValuesOf(x.Apply(ops::L1Loss, ZerosLike(x).tensor()))[0], 10);
}

}  // namespace
}  // namespace troupe::nn
