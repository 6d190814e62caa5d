#include "nn/optim/parameter_groups.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/models/models.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "tests/nn/testing/host_scalars.h"
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

// --- Parameters that begin later than the run ---

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Optimizer>()> make;
};

std::vector<Kind> KindsThatCount() {
  AdamOptions adamw = AdamWDefaults();
  adamw.amsgrad = true;
  adamw.common.groups = {{"b", /*lr_factor=*/0.5}};
  SgdOptions sgd;
  sgd.momentum = 0.9;
  sgd.dampening = 0.5;
  LambOptions lamb;
  lamb.weight_decay = 0.01;
  return {{"adam", [] { return std::make_unique<Adam>(AdamOptions()); }},
          {"adamw", [=] { return std::make_unique<Adam>(adamw); }},
          {"lamb", [=] { return std::make_unique<Lamb>(lamb); }},
          {"sgd", [=] { return std::make_unique<Sgd>(sgd); }}};
}

// Three parameters in one bucket, trained by the run's updates from `step` on.
class LateParametersTest : public testing::Test {
 protected:
  // Makes an arena of new parameters and an optimizer for it.
  void Begin(const Kind& kind, Kernels& kernels) {
    kernels_ = &kernels;
    std::vector<Parameter*> bucket;
    for (int i = 0; i < 3; ++i) {
      parameters_[i] = Parameter();
      parameters_[i].name = std::string(1, static_cast<char>('a' + i));
      parameters_[i].shape = {20 + i};
      parameters_[i].init = Initializer::Uniform(1);
      bucket.push_back(&parameters_[i]);
    }
    arena_ = *ParameterArena::Create({bucket}, {}, kernels.allocator());
    EXPECT_TRUE(arena_->Initialize(1).ok());
    optimizer_ = kind.make();
    EXPECT_TRUE(optimizer_->Attach(*arena_).ok());
    EXPECT_TRUE(optimizer_->CountsUpdates());
  }

  // Returns all parameters after updates `first` to `end` of the run, whose
  // gradients depend on the parameter and on the update since `first` alone.
  std::string Train(std::int64_t first, std::int64_t end) {
    for (std::int64_t step = first; step < end; ++step) {
      for (Parameter& p : parameters_) {
        const std::vector<double> draws =
            NormalDraws(absl::StrCat(p.name, step - first), p.shape.numel());
        for (std::size_t i = 0; i < draws.size(); ++i) {
          p.grad.data<float>()[i] = static_cast<float>(draws[i]);
        }
      }
      const Tensor scalars = ScalarsFor(*optimizer_, step, /*loss_count=*/2,
                                        kernels_->allocator());
      EXPECT_TRUE(optimizer_->Update(*kernels_, scalars, *arena_, 0).ok());
    }
    return ValuesText();
  }

  std::string ValuesText() const {
    std::string text;
    for (const Parameter& p : parameters_) {
      for (double value : ValuesOf(p.value)) {
        absl::StrAppendFormat(&text, "%a ", value);
      }
      text += "\n";
    }
    return text;
  }

  // Returns the line of a parameter.
  static std::string LineOf(const std::string& text, int parameter) {
    return std::vector<std::string>(absl::StrSplit(text, '\n'))[parameter];
  }

  Kernels* kernels_ = nullptr;
  Parameter parameters_[3];
  std::unique_ptr<ParameterArena> arena_;
  std::unique_ptr<Optimizer> optimizer_;
};

// Returns the kernel sets of the host.
std::vector<std::unique_ptr<Kernels>> HostSets() {
  std::vector<std::unique_ptr<Kernels>> sets;
  sets.push_back(CreateReferenceKernels());
  sets.push_back(CreateCpuKernels({}));
  return sets;
}

// The first update of a parameter has the bits of a new optimizer's first
// update, whatever the run has done before.
TEST_F(LateParametersTest, BeginAsWithANewOptimizer) {
  for (const auto& kernels : HostSets()) {
    for (const Kind& kind : KindsThatCount()) {
      SCOPED_TRACE(absl::StrCat(kind.name, " on ", kernels->Describe()));
      Begin(kind, *kernels);
      const std::string want = Train(0, 4);
      Begin(kind, *kernels);
      optimizer_->SetFirstUpdates(*arena_, {7, 7, 7});
      EXPECT_EQ(Train(7, 11), want);
      Begin(kind, *kernels);
      EXPECT_NE(Train(7, 11), want) << "the age must make a difference";
    }
  }
}

TEST_F(LateParametersTest, HaveNeighboursOfOtherAgesInTheirBucket) {
  for (const auto& kernels : HostSets()) {
    for (const Kind& kind : KindsThatCount()) {
      SCOPED_TRACE(absl::StrCat(kind.name, " on ", kernels->Describe()));
      Begin(kind, *kernels);
      const std::string young = Train(0, 4);
      Begin(kind, *kernels);
      const std::string old = Train(7, 11);
      Begin(kind, *kernels);
      optimizer_->SetFirstUpdates(*arena_, {0, 7, 0});
      const std::string mixed = Train(7, 11);
      EXPECT_EQ(LineOf(mixed, 0), LineOf(old, 0));
      EXPECT_EQ(LineOf(mixed, 1), LineOf(young, 1));
      EXPECT_EQ(LineOf(mixed, 2), LineOf(old, 2));
    }
  }
}

TEST(GroupRangesTest, CutsWhereTheFirstUpdateChanges) {
  const auto kernels = CreateReferenceKernels();
  Parameter all[4];
  std::vector<Parameter*> bucket;
  for (Parameter& p : all) {
    p.shape = {16};
    bucket.push_back(&p);
  }
  const auto arena =
      *ParameterArena::Create({bucket}, {}, kernels->allocator());
  const auto text_of = [&](absl::Span<const double> first,
                           const ArenaRange& range) {
    std::string text;
    const GroupRanges ranges(*arena, {}, GroupRanges::Parts::kNeighbours,
                             first);
    EXPECT_TRUE(ranges
                    .ForEach(range,
                             [&](const GroupRanges::Part& part) {
                               absl::StrAppend(&text, "[", part.range.begin,
                                               ",", part.range.end, ") from ",
                                               part.first_update, " ");
                               return absl::OkStatus();
                             })
                    .ok());
    return text;
  };
  EXPECT_EQ(text_of({}, {0, 64}), "[0,64) from 0 ");
  EXPECT_EQ(text_of({5, 5, 0, 3}, {0, 64}),
            "[0,32) from 5 [32,48) from 0 [48,64) from 3 ");
  EXPECT_EQ(text_of({5, 5, 0, 3}, {20, 50}),
            "[20,32) from 5 [32,48) from 0 [48,50) from 3 ");
}

TEST(ParameterGroupErrorsTest, RefusesWhatHasNoMeaning) {
  SgdOptions options;
  options.common.groups = {{"*.bias", /*lr_factor=*/-1}};
  EXPECT_EQ(options.Validate(),
            absl::InvalidArgumentError(
                "parameter group \"*.bias\": lr_factor and weight_decay are "
                "at least 0, got -1"));
  options.common.groups = {ParameterGroup()};
  EXPECT_EQ(
      options.Validate(),
      absl::InvalidArgumentError(
          "ParameterGroup::pattern is empty; set one, such as \"*.bias\""));
  options.common.groups.clear();
  options.common.schedule = LrSchedule::Step(0);
  EXPECT_FALSE(options.Validate().ok());
}

}  // namespace
}  // namespace troupe::nn
