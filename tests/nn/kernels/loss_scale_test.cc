#include "nn/kernels/loss_scale.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

StepScalars Found(double non_finite) {
  StepScalars scalars;
  scalars.non_finite = non_finite;
  return scalars;
}

// Returns scale and finite steps in a row after each step of `outcomes`; "x" is
// a step whose gradients are not finite: "8 1, 8 2, 16 0".
std::string Behind(LossScaleState state, const LossScaleRule& rule,
                   const std::string& outcomes) {
  std::string text;
  for (const char outcome : outcomes) {
    state.Update(rule, Found(outcome == 'x' ? 7 : 0));
    absl::StrAppend(&text, text.empty() ? "" : ", ", state.scale, " ",
                    state.finite_steps);
  }
  return text;
}

// The values follow the definition of torch._amp_update_scale_(scale,
// growth_tracker, found_inf, 2, 0.5, 3).
TEST(LossScaleTest, FollowsPyTorch) {
  LossScaleState state;
  state.scale = 8;
  LossScaleRule rule;
  rule.growth_interval = 3;
  EXPECT_EQ(Behind(state, rule, "....x..x....xx..."),
            "8 1, 8 2, 16 0, 16 1, 8 0, 8 1, 8 2, 4 0, 4 1, 4 2, 8 0, 8 1, "
            "4 0, 2 0, 2 1, 2 2, 4 0");
}

TEST(LossScaleTest, BeginsAsPyTorch) {
  EXPECT_EQ(LossScaleState().scale, 65536);
  EXPECT_EQ(LossScaleRule().growth_interval, 2000);
}

TEST(LossScaleTest, StaysWithinF32) {
  LossScaleState state;
  state.scale = 0x1p126;
  LossScaleRule rule;
  rule.growth_interval = 1;
  EXPECT_EQ(Behind(state, rule, "..."),
            absl::StrCat(0x1p127, " 0, ", 0x1p127, " 0, ", 0x1p127, " 0"));
}

TEST(LossScaleTest, CountsWhatWasSkipped) {
  LossScaleState state;
  for (const double found : {0, 1, 0, 300, 0}) state.Update({}, Found(found));
  EXPECT_EQ(state.skipped_steps, 2);
  EXPECT_EQ(state.finite_steps, 1);
}

TEST(LossScaleTest, SkippedStepsAreNoneOfTheOptimizers) {
  StepScalars scalars;
  scalars.step = 9;
  scalars.beta1 = 0.9;
  scalars.beta2 = 0.99;
  scalars.bias_correction1 = 1 - std::pow(0.9, 10);
  scalars.bias_correction2 = 1 - std::pow(0.99, 10);
  LossScaleState state;
  state.scale = 4;
  StepScalars got = scalars;
  state.ApplyTo(got);
  EXPECT_EQ(got.loss_scale, 4);
  EXPECT_EQ(got.step, 9);
  EXPECT_EQ(got.bias_correction1, scalars.bias_correction1);
  state.skipped_steps = 3;
  state.ApplyTo(got);
  EXPECT_EQ(got.step, 6);
  EXPECT_EQ(got.bias_correction1, 1 - std::pow(0.9, 7));
  EXPECT_EQ(got.bias_correction2, 1 - std::pow(0.99, 7));
}

// The scalars of an optimizer without bias corrections.
TEST(LossScaleTest, WithoutBetasCorrectionsAreOne) {
  StepScalars scalars;
  scalars.step = 5;
  LossScaleState state;
  state.skipped_steps = 5;
  state.ApplyTo(scalars);
  EXPECT_EQ(scalars.step, 0);
  EXPECT_EQ(scalars.bias_correction1, 1);
  EXPECT_EQ(scalars.bias_correction2, 1);
}

}  // namespace
}  // namespace troupe::nn
