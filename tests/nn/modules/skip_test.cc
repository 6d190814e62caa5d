#include "nn/modules/skip.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/lambda.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/modules/summary.h"
#include "tests/nn/autograd/tape_fixture.h"

namespace troupe::nn {
namespace {

using testing::HasSubstr;

// A Sequential in a module that may run again in backward.
class Part : public Module {
 public:
  Sequential& body = Add<Sequential>("body");
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return body(ctx, x);
  }
};

// Returns the first error of a shape-only forward of f32[2, 4].
std::string ErrorOf(Module& model) {
  ShapeRecord record;
  const absl::StatusOr<Tensor> output =
      ShapeOnlyForward(model, {2, 4}, DType::kF32, Device{}, record);
  return output.ok() ? "" : std::string(output.status().message());
}

class SkipTest : public TapeTest {
 protected:
  // Returns all gradients of a step on f32[5, 4].
  std::vector<double> Gradients(Mode mode = Mode::kWhole) {
    arena_->BeginStep();
    Tape tape;
    const Tensor loss = Loss(tape, Draws("x", {5, 4}));
    Diary diary;
    if (mode == Mode::kWhole) {
      Backward(tape, loss, diary, mode);
    } else {
      Backward(tape, loss, diary, Mode::kInputs);
      Backward(tape, Tensor(), diary, Mode::kWeights);
    }
    return AllGrads();
  }
};

// The layer behind x uses it, and later layers use it twice.
TEST_F(SkipTest, HasTheGradientsOfAModuleThatKeepsItsTensors) {
  class Residuals : public Module {
   public:
    Linear& a = Add<Linear>("0", 4, 4);
    Linear& b = Add<Linear>("3", 4, 4);
    Linear& c = Add<Linear>("5", 4, 4);
    Tensor Forward(Context& ctx, const Tensor& x) override {
      const Tensor y = a(ctx, x);
      const Tensor z = ops::Add(ctx, b(ctx, y), y);
      return ops::Add(ctx, c(ctx, z), y);
    }
  };
  Own(std::make_unique<Residuals>());
  const std::vector<double> want = Gradients();
  auto model = std::make_unique<Sequential>();
  model->Append<Linear>(4, 4);
  model->Append<Stash>("once");
  model->Append<Stash>("twice");
  model->Append<Linear>(4, 4);
  model->Append<PopAdd>("once");
  model->Append<Linear>(4, 4);
  model->Append<PopAdd>("twice");
  Own(std::move(model));
  const std::vector<double> got = Gradients();
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  }
  EXPECT_EQ(Gradients(Mode::kInputs), got);
}

TEST_F(SkipTest, WhatWasStashedStandsBeforeTheRest) {
  auto model = std::make_unique<Sequential>();
  model->Append<Stash>("all");
  model->Append<ReLU>();
  model->Append<PopConcat>("all");
  Context ctx(*kernels_);
  const Tensor x = Tensor::Of<float>({1, 2}, {-1, 2}, kernels_->allocator());
  EXPECT_EQ(ValuesOf((*model)(ctx, x)), (std::vector<double>{-1, 2, 0, 2}));
}

TEST_F(SkipTest, AxesMayBeOthers) {
  Sequential model;
  model.Append<Stash>("rows");
  model.Append<PopConcat>("rows", /*axis=*/0);
  Context ctx(*kernels_);
  EXPECT_EQ(model(ctx, Draws("x", {3, 4})).shape(), (Shape{6, 4}));
}

// Integers have no gradient, and a tensor that is not used contributes none.
TEST_F(SkipTest, CarriesAnyTensor) {
  auto model = std::make_unique<Sequential>();
  model->Append<Linear>(4, 3);
  model->Append<Stash>("unused");
  model->Append<Lambda>([](Context& ctx, const Tensor& x) {
    ctx.Stash("row",
              Tensor::Of<std::int64_t>({1}, {1}, ctx.kernels().allocator()));
    return x;
  });
  model->Append<Lambda>([](Context& ctx, const Tensor& x) {
    const Tensor row = ctx.Pop("row");
    ctx.Pop("unused");
    EXPECT_EQ(row.dtype(), DType::kI64);
    EXPECT_FALSE(ctx.tape()->Tracks(row));
    return x;
  });
  Own(std::move(model));
  const std::vector<double> with = Gradients();
  auto plain = std::make_unique<Sequential>();
  plain->Append<Linear>(4, 3);
  Own(std::move(plain));
  EXPECT_EQ(with, Gradients());
}

TEST_F(SkipTest, AParameterMayBeStashed) {
  class Gain : public Module {
   public:
    Parameter& gain = Declare("gain", {4}, Initializer::Constant(2));
    Tensor Forward(Context& ctx, const Tensor& x) override {
      ctx.Stash("gain", ctx.Use(gain));
      return x;
    }
  };
  auto model = std::make_unique<Sequential>();
  model->Append<Gain>();
  model->Append<PopAdd>("gain");
  Own(std::move(model));
  const std::vector<double> gradient = Gradients();
  // Gradient of the sum of (x + gain)^2; the optimizer divides for the mean.
  const std::vector<double> x = ValuesOf(Draws("x", {5, 4}));
  double first = 0;
  for (int row = 0; row < 5; ++row) first += 2 * (x[4 * row] + 2);
  EXPECT_NEAR(gradient[0], first, 1e-5);
}

TEST_F(SkipTest, MistakesNameBothModules) {
  Sequential missing;
  missing.Append<ReLU>();
  missing.Append<PopAdd>("skip");
  EXPECT_EQ(ErrorOf(missing),
            "in module 1: pops \"skip\", which no module before it has "
            "stashed; stash it there");
  Sequential twice;
  twice.Append<Stash>("skip");
  twice.AppendNamed<Stash>("again", "skip");
  EXPECT_EQ(ErrorOf(twice),
            "in module again: stashes \"skip\", which module 0 has stashed "
            "already; use a name once in a model");
  Sequential popped;
  popped.Append<Stash>("skip");
  popped.Append<PopAdd>("skip");
  popped.Append<PopAdd>("skip");
  EXPECT_EQ(ErrorOf(popped),
            "in module 2: pops \"skip\", which module 1 has popped already; "
            "stash it under a second name for a second use");
  Sequential reused;
  reused.Append<Stash>("skip");
  reused.Append<PopAdd>("skip");
  reused.Append<Stash>("skip");
  EXPECT_EQ(ErrorOf(reused),
            "in module 2: stashes \"skip\", a name under which module 1 has "
            "popped another tensor; use a name once in a model");
  Sequential left;
  left.Append<Sequential>().Append<Stash>("skip");
  EXPECT_EQ(ErrorOf(left),
            "module 0.0 stashes \"skip\", and no module pops it; pop it, or "
            "leave it out");
  Sequential nameless;
  nameless.Append<Stash>("");
  EXPECT_EQ(ErrorOf(nameless),
            "in module 0: stashes a tensor without a name; give it one");
}

TEST_F(SkipTest, ShapesThatDoNotFitAreTheModulesError) {
  Sequential model;
  model.Append<Stash>("skip");
  model.Append<Linear>(4, 3);
  model.AppendNamed<PopAdd>("up", "skip");
  EXPECT_THAT(ErrorOf(model), HasSubstr("in module up: add"));
}

// A module that runs again in backward may have a whole connection inside.
TEST_F(SkipTest, AConnectionInsideAPartThatRunsAgain) {
  const auto make = [](bool again) {
    auto model = std::make_unique<Sequential>();
    model->Append<Linear>(4, 4);
    Part& part = model->Append<Part>();
    part.body.Append<Linear>(4, 4);
    part.body.Append<Stash>("inside");
    part.body.Append<ReLU>();
    part.body.Append<Linear>(4, 4);
    part.body.Append<PopAdd>("inside");
    part.set_recomputes(again);
    return model;
  };
  Own(make(false));
  const std::vector<double> want = Gradients();
  Own(make(true));
  EXPECT_EQ(Gradients(), want);
  EXPECT_EQ(Gradients(Mode::kInputs), want);
}

TEST_F(SkipTest, APartThatRunsAgainHasBothEndsOrNone) {
  Sequential popping;
  popping.Append<Stash>("skip");
  Part& pops = popping.Append<Part>();
  pops.body.Append<PopAdd>("skip");
  EXPECT_EQ(ErrorOf(popping), "");
  pops.set_recomputes(true);
  EXPECT_EQ(ErrorOf(popping),
            "in module 1: the part of the model to recompute pops \"skip\", "
            "which was stashed outside of it; what runs again in backward must "
            "have both ends of a skip connection, or none");
  Sequential stashing;
  Part& stashes = stashing.Append<Part>();
  stashes.body.Append<Stash>("skip");
  stashing.Append<PopAdd>("skip");
  EXPECT_EQ(ErrorOf(stashing), "");
  stashes.set_recomputes(true);
  EXPECT_THAT(ErrorOf(stashing), HasSubstr("stashes \"skip\" and does not pop "
                                           "it"));
}

TEST_F(SkipTest, ASummaryHasThem) {
  Sequential model;
  model.Append<Stash>("skip");
  model.Append<Linear>(4, 4);
  model.Append<PopConcat>("skip");
  const auto summary = Summary(model, {{2, 4}, DType::kF32});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(summary->ToString(), HasSubstr("2 (PopConcat)  [2, 8]"));
}

}  // namespace
}  // namespace troupe::nn
