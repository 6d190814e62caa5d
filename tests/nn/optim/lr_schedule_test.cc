// Golden numbers follow from the formulas in PyTorch's documentation of
// torch.optim.lr_scheduler, for a learning rate of 1.

#include "nn/optim/lr_schedule.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

void ExpectFactors(const LrSchedule& schedule,
                   const std::vector<double>& want) {
  ASSERT_TRUE(schedule.Validate().ok()) << schedule.Validate();
  for (std::size_t t = 0; t < want.size(); ++t) {
    EXPECT_NEAR(schedule.Factor(static_cast<std::int64_t>(t)), want[t], 1e-14)
        << "step " << t;
  }
}

TEST(LrScheduleTest, AConstantIsExactlyOne) {
  EXPECT_EQ(LrSchedule().Factor(0), 1.0);
  EXPECT_EQ(LrSchedule().Factor(1'000'000'000), 1.0);
}

TEST(LrScheduleTest, Steps) {
  ExpectFactors(LrSchedule::Step(2, 0.5), {1, 1, 0.5, 0.5, 0.25, 0.25, 0.125});
  ExpectFactors(LrSchedule::MultiStep({2, 3, 3}, 0.5),
                {1, 1, 0.5, 0.125, 0.125});
  ExpectFactors(LrSchedule::Exponential(0.9), {1, 0.9, 0.81, 0.729});
}

TEST(LrScheduleTest, CosineAndLinearHoldTheirEnd) {
  ExpectFactors(LrSchedule::Cosine(4, 0.1),
                {1, 0.8681980515339464, 0.55, 0.23180194846605365, 0.1, 0.1});
  ExpectFactors(LrSchedule::Linear(4, 0.2), {1, 0.8, 0.6, 0.4, 0.2, 0.2});
}

TEST(LrScheduleTest, OneCycle) {
  ExpectFactors(LrSchedule::OneCycle(10),
                {0.04, 0.52, 1, 0.9504846320134737, 0.8117456539497631,
                 0.6112620219362893, 0.38874197806371075, 0.18825834605023697,
                 0.049519367986526286, 4e-06, 4e-06});
}

TEST(LrScheduleTest, Polynomial) {
  ExpectFactors(LrSchedule::Polynomial(4, 2), {1, 0.5625, 0.25, 0.0625, 0, 0});
  ExpectFactors(LrSchedule::Polynomial(4, 1, 0.2), {1, 0.8, 0.6, 0.4, 0.2});
}

TEST(LrScheduleTest, InverseSqrtFallsFromTheEndOfTheWarmUp) {
  LrSchedule schedule = LrSchedule::InverseSqrt(4);
  schedule.warmup_start = 0;
  ExpectFactors(schedule, {0, 0.25, 0.5, 0.75, 1, 0.8944271909999159,
                           0.816496580927726, 0.7559289460184544});
  EXPECT_EQ(schedule.Factor(16), 0.5);
  ExpectFactors(LrSchedule::InverseSqrt(0), {1, 0.7071067811865476});
}

TEST(LrScheduleTest, WarmUpComesFirst) {
  LrSchedule schedule = LrSchedule::Step(1, 0.5);
  schedule.warmup_steps = 4;
  schedule.warmup_start = 0.2;
  ExpectFactors(schedule, {0.2, 0.4, 0.6, 0.8, 1, 0.5, 0.25});
}

TEST(LrScheduleTest, RefusesWhatHasNoMeaning) {
  const auto message = [](const LrSchedule& schedule) {
    return std::string(schedule.Validate().message());
  };
  EXPECT_EQ(message(LrSchedule::Step(0)),
            "LrSchedule.step_size = 0: must be at least 1");
  // PyTorch's T_max, total_iters and total_steps have no default either.
  for (const LrSchedule::Kind kind :
       {LrSchedule::Kind::kCosine, LrSchedule::Kind::kLinear,
        LrSchedule::Kind::kPolynomial, LrSchedule::Kind::kOneCycle}) {
    LrSchedule schedule;
    schedule.kind = kind;
    EXPECT_EQ(message(schedule), "LrSchedule.steps = 0: must be at least 1");
  }
  EXPECT_EQ(message(LrSchedule::Exponential(-1)),
            "LrSchedule.gamma = -1: must be at least 0");
  EXPECT_EQ(message(LrSchedule::MultiStep({3, 2})),
            "LrSchedule.milestones: must be steps in ascending order");
  EXPECT_EQ(message(LrSchedule::OneCycle(3)),
            "LrSchedule.steps = 3: must be more than 3.33333");
  LrSchedule warm;
  warm.warmup_steps = -1;
  EXPECT_EQ(message(warm), "LrSchedule.warmup_steps = -1: must be at least 0");
}

TEST(LrScheduleTest, KindsHaveNames) {
  ASSERT_EQ(LrScheduleNames().size(), 9u);
  for (const std::string& name : LrScheduleNames()) {
    EXPECT_EQ(LrScheduleName(*ParseLrSchedule(name)), name);
  }
  EXPECT_EQ(ParseLrSchedule("cosinus").status().message(),
            "\"cosinus\" is no schedule of the learning rate; choose one of "
            "constant, step, multi_step, exponential, cosine, linear, "
            "one_cycle, polynomial, inverse_sqrt");
}

}  // namespace
}  // namespace troupe::nn
