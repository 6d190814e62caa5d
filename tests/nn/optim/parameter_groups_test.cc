#include "nn/optim/parameter_groups.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/models/models.h"
#include "nn/optim/sgd.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

class GroupedSgdTest : public testing::Test {
 protected:
  // Runs one update of an MLP whose values and gradients are all 1; returns the
  // new values by name.
  std::string Update(const SgdOptions& options, bool by_halves = false,
                     double loss_scale = 1) {
    EXPECT_TRUE(options.Validate().ok()) << options.Validate();
    auto model = MakeMlp({3, 2, 2}, {});
    std::vector<Parameter*> all = model->Parameters();
    auto arena = *ParameterArena::Create({{all[3], all[2]}, {all[1], all[0]}},
                                         {}, kernels_->allocator());
    Sgd sgd(options);
    EXPECT_TRUE(sgd.Attach(*arena).ok());
    for (Parameter* parameter : all) {
      EXPECT_TRUE(kernels_->Fill(1, parameter->value).ok());
      EXPECT_TRUE(kernels_->Fill(loss_scale, parameter->grad).ok());
    }
    StepScalars values;
    values.lr = sgd.LearningRate(/*step=*/1);
    values.step = 1;
    values.loss_scale = loss_scale;
    values.loss_count = 1;
    const Tensor scalars = HostScalars(values, kernels_->allocator());
    for (int k = 0; k < arena->num_buckets(); ++k) {
      const ArenaRange whole = arena->range(k);
      const std::int64_t middle = by_halves ? whole.begin + 17 : whole.end;
      for (const ArenaRange& range :
           {ArenaRange{whole.begin, middle}, ArenaRange{middle, whole.end}}) {
        const Tensor grads = arena->BucketGrads(k).FlatView(
            range.begin - whole.begin, {range.size()});
        EXPECT_TRUE(
            sgd.UpdateRange(*kernels_, scalars, *arena, range, grads).ok());
      }
    }
    std::string text;
    for (const Parameter* parameter : all) {
      absl::StrAppend(&text, parameter->name, "=");
      for (double value : ValuesOf(parameter->value)) {
        EXPECT_EQ(value, ValuesOf(parameter->value)[0]) << parameter->name;
      }
      absl::StrAppend(&text, ValuesOf(parameter->value)[0], " ");
    }
    return text;
  }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
};

TEST_F(GroupedSgdTest, TheFirstGroupThatMatchesCounts) {
  SgdOptions options;
  options.lr = 0.5;
  options.weight_decay = 0.5;
  EXPECT_EQ(Update(options),
            "1.weight=0.25 1.bias=0.25 3.weight=0.25 3.bias=0.25 ");
  options.common.groups = {{"*.bias", /*lr_factor=*/1, /*weight_decay=*/0},
                           {"3.*", /*lr_factor=*/0.5},
                           {"*", /*lr_factor=*/0}};
  const std::string want = "1.weight=1 1.bias=0.5 3.weight=0.625 3.bias=0.5 ";
  EXPECT_EQ(Update(options), want);
  EXPECT_EQ(Update(options, /*by_halves=*/true), want);
}

TEST_F(GroupedSgdTest, APredicateChoosesToo) {
  SgdOptions options;
  options.lr = 0.5;
  ParameterGroup frozen;
  frozen.lr_factor = 0;
  frozen.matches = [](const Parameter& p) { return p.shape.rank() == 2; };
  options.common.groups = {frozen};
  EXPECT_EQ(Update(options), "1.weight=1 1.bias=0.5 3.weight=1 3.bias=0.5 ");
}

TEST_F(GroupedSgdTest, ScheduleAndLossScale) {
  SgdOptions options;
  options.lr = 0.5;
  options.common.schedule = LrSchedule::Step(1, 0.5);  // step 1: half
  const std::string want =
      "1.weight=0.75 1.bias=0.75 3.weight=0.75 3.bias=0.75 ";
  EXPECT_EQ(Update(options), want);
  EXPECT_EQ(Update(options, /*by_halves=*/false, /*loss_scale=*/1024), want);
}

TEST(ParameterGroupErrorsTest, RefusesWhatHasNoMeaning) {
  SgdOptions options;
  options.common.groups = {{"*.bias", /*lr_factor=*/-1}};
  EXPECT_EQ(options.Validate(),
            absl::InvalidArgumentError(
                "parameter group \"*.bias\": lr_factor and weight_decay are "
                "at least 0, got -1"));
  options.common.groups = {ParameterGroup()};
  EXPECT_EQ(options.Validate(),
            absl::InvalidArgumentError(
                "a parameter group needs a pattern, such as \"*.bias\""));
  options.common.groups.clear();
  options.common.schedule = LrSchedule::Step(0);
  EXPECT_FALSE(options.Validate().ok());
}

}  // namespace
}  // namespace troupe::nn
