// Optimizers whose states are shared by several owners: each updates its slice
// of every bucket, and all slices together are the whole.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "tests/nn/testing/host_scalars.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

using Make = std::function<std::unique_ptr<Optimizer>()>;

void SetValues(const std::vector<double>& values, Kernels& kernels,
               Tensor& to) {
  ASSERT_TRUE(
      kernels
          .Copy(MakeTensor(to.shape(), to.dtype(), values, kernels.allocator()),
                to)
          .ok());
}

struct Case {
  std::string name;
  DType dtype;
  Make make;
};

std::vector<Case> Cases() {
  OptimizerOptions averaged;
  averaged.ema_decay = 0.9;
  averaged.f32_master = true;
  std::vector<Case> cases;
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    const std::string suffix(DTypeName(dtype));
    cases.push_back({"sgd_" + suffix, dtype, [] {
                       SgdOptions options;
                       options.lr = 0.1;
                       options.weight_decay = 0.01;
                       return std::make_unique<Sgd>(options);
                     }});
    cases.push_back({"momentum_" + suffix, dtype, [=] {
                       SgdOptions options;
                       options.lr = 0.1;
                       options.momentum = 0.9;
                       options.nesterov = true;
                       options.common = averaged;
                       return std::make_unique<Sgd>(options);
                     }});
    cases.push_back({"adamw_" + suffix, dtype, [=] {
                       AdamOptions options = AdamWDefaults();
                       options.common = averaged;
                       ParameterGroup group;
                       group.pattern = "b.*";
                       group.weight_decay = 0;
                       group.lr_factor = 0.5;
                       options.common.groups = {group};
                       return std::make_unique<Adam>(options);
                     }});
    cases.push_back({"rounded_" + suffix, dtype, [=] {
                       AdamOptions options = AdamWDefaults();
                       options.common.ema_decay = 0.9;
                       options.common.stochastic_rounding = true;
                       options.common.rounding_seed = 3;
                       return std::make_unique<Adam>(options);
                     }});
    cases.push_back({"amsgrad_" + suffix, dtype, [] {
                       AdamOptions options;
                       options.amsgrad = true;
                       options.common.clip_grad_value = 0.5;
                       return std::make_unique<Adam>(options);
                     }});
  }
  return cases;
}

std::vector<Case> CasesWithNorms() {
  OptimizerOptions common;
  common.ema_decay = 0.9;
  common.f32_master = true;
  common.clip_grad_value = 0.5;
  common.groups = {NoDecayGroup()};
  std::vector<Case> cases;
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    const std::string suffix(DTypeName(dtype));
    cases.push_back({"lamb_" + suffix, dtype, [=] {
                       LambOptions options;
                       options.lr = 0.1;
                       options.weight_decay = 0.1;
                       options.common = common;
                       return std::make_unique<Lamb>(options);
                     }});
    cases.push_back({"lars_" + suffix, dtype, [=] {
                       LarsOptions options;
                       options.lr = 0.5;
                       options.weight_decay = 0.1;
                       options.trust_coefficient = 0.5;
                       options.common = common;
                       return std::make_unique<Lars>(options);
                     }});
  }
  return cases;
}

// The parameters of one owner; 37 and 29 elements cross slices at odd places.
class Owner {
 public:
  Owner(const Case& of, int owner, int owners, Kernels& kernels)
      : kernels_(kernels) {
    const std::vector<std::string> names = {"a.weight", "b.bias", "c.weight",
                                            "frozen"};
    const std::vector<std::int64_t> sizes = {37, 29, 200, 5};
    for (std::size_t i = 0; i < names.size(); ++i) {
      parameters_[i].name = names[i];
      parameters_[i].shape = {sizes[i]};
      parameters_[i].dtype = of.dtype;
      parameters_[i].init = Initializer::Uniform(1);
    }
    parameters_[3].requires_grad = false;
    ParameterArena::Options options;
    options.pad_elems = 64;
    options.owner = owner;
    options.owners = owners;
    options.frozen = {&parameters_[3]};
    options.grad_dtype = SizeOf(of.dtype) < 4 ? DType::kF32 : of.dtype;
    arena_ = *ParameterArena::Create(
        {{&parameters_[0], &parameters_[1]}, {&parameters_[2]}}, options,
        kernels.allocator());
    EXPECT_TRUE(arena_->Initialize(7).ok());
    optimizer_ = of.make();
    EXPECT_TRUE(optimizer_->Attach(*arena_).ok());
    EXPECT_TRUE(optimizer_->Begin(kernels, *arena_).ok());
  }

  void Step(int step) {
    Begin(step);
    Update();
  }

  // Writes the gradients and scalars of a step.
  void Begin(int step) {
    for (int i = 0; i < 3; ++i) {
      std::vector<double> values;
      for (std::int64_t e = 0; e < parameters_[i].shape.numel(); ++e) {
        values.push_back(((e * 31 + step * 17 + i * 5) % 41 - 20) * 0x1p-4);
      }
      SetValues(values, kernels_, parameters_[i].grad);
    }
    scalars_ =
        ScalarsFor(*optimizer_, step, /*loss_count=*/2, kernels_.allocator());
  }
  void Update() {
    for (int bucket = 0; bucket < arena_->num_buckets(); ++bucket) {
      ASSERT_TRUE(optimizer_->Update(kernels_, scalars_, *arena_, bucket).ok());
    }
  }

  // Returns this owner's sums over the parameters of a bucket.
  Tensor Sums(int bucket) {
    const Tensor sums = *optimizer_->BeginSums(kernels_, *arena_, bucket);
    EXPECT_TRUE(optimizer_
                    ->SumRange(kernels_, scalars_, *arena_,
                               arena_->Owned(bucket),
                               arena_->OwnedGrads(bucket))
                    .ok());
    return sums;
  }

  // Takes the slices of another owner, as an all-gather does.
  void TakeSlices(const Owner& other) {
    for (int bucket = 0; bucket < arena_->num_buckets(); ++bucket) {
      const ArenaRange slice =
          arena_->owned().Slice(bucket, other.arena_->owned().owner());
      Tensor own = arena_->View(arena_->values(), slice);
      ASSERT_TRUE(
          kernels_.Copy(other.arena_->View(other.arena_->values(), slice), own)
              .ok());
    }
  }

  const ParameterArena& arena() const { return *arena_; }

 private:
  Kernels& kernels_;
  Parameter parameters_[4];
  Tensor scalars_;
  std::unique_ptr<ParameterArena> arena_;
  std::unique_ptr<Optimizer> optimizer_;
};

TEST(OwnedSlicesTest, PieceByPieceTheyAreTheWhole) {
  for (const bool cpu : {true, false}) {
    const std::unique_ptr<Kernels> kernels =
        cpu ? CreateCpuKernels({}) : CreateReferenceKernels();
    for (const Case& of : Cases()) {
      if (cpu && of.dtype == DType::kF64) continue;  // has no such kernels
      SCOPED_TRACE(absl::StrCat(of.name, " ", kernels->Describe()));
      Owner whole(of, 0, 1, *kernels);
      std::vector<std::unique_ptr<Owner>> owners;
      for (int i = 0; i < 4; ++i) {
        owners.push_back(std::make_unique<Owner>(of, i, 4, *kernels));
      }
      for (int step = 0; step < 3; ++step) {
        whole.Step(step);
        for (const auto& owner : owners) owner->Step(step);
        for (const auto& to : owners) {
          for (const auto& from : owners) to->TakeSlices(*from);
        }
      }
      const ParameterArena& all = whole.arena();
      for (const auto& owner : owners) {
        const ParameterArena& arena = owner->arena();
        EXPECT_EQ(ValuesOf(arena.values()), ValuesOf(all.values()));
        ASSERT_EQ(arena.states().size(), all.states().size());
        for (std::size_t i = 0; i < all.states().size(); ++i) {
          const Tensor& state = arena.states()[i].second;
          EXPECT_EQ(state.numel(), (128 + 256) / 4 + 5);
          for (const ArenaRange& range : arena.owned().All()) {
            EXPECT_EQ(ValuesOf(arena.ViewState(state, range)),
                      ValuesOf(all.View(all.states()[i].second, range)))
                << all.states()[i].first << " from " << range.begin;
          }
        }
      }
    }
  }
}

// Adds up the sums of all owners for each, as an all-reduce does.
void AddSums(Kernels& kernels,
             const std::vector<std::unique_ptr<Owner>>& owners) {
  for (int bucket = 0; bucket < 2; ++bucket) {
    std::vector<Tensor> sums;
    for (const auto& owner : owners) sums.push_back(owner->Sums(bucket));
    std::vector<double> total(sums[0].numel());
    for (const Tensor& part : sums) {
      const std::vector<double> values = ValuesOf(part);
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += values[i];
    }
    for (Tensor& part : sums) SetValues(total, kernels, part);
  }
}

// Norms of parameters are those of all owners, to rounding.
TEST(OwnedSlicesTest, NormsAreThoseOfTheWhole) {
  for (const bool cpu : {true, false}) {
    const std::unique_ptr<Kernels> kernels =
        cpu ? CreateCpuKernels({}) : CreateReferenceKernels();
    for (const Case& of : CasesWithNorms()) {
      if (cpu && of.dtype == DType::kF64) continue;
      SCOPED_TRACE(absl::StrCat(of.name, " ", kernels->Describe()));
      Owner whole(of, 0, 1, *kernels);
      std::vector<std::unique_ptr<Owner>> owners;
      for (int i = 0; i < 4; ++i) {
        owners.push_back(std::make_unique<Owner>(of, i, 4, *kernels));
      }
      for (int step = 0; step < 3; ++step) {
        whole.Step(step);
        for (const auto& owner : owners) owner->Begin(step);
        AddSums(*kernels, owners);
        for (const auto& owner : owners) owner->Update();
        for (const auto& from : owners) owners[0]->TakeSlices(*from);
      }
      const std::vector<double> values = ValuesOf(owners[0]->arena().values());
      const std::vector<double> want = ValuesOf(whole.arena().values());
      const double tolerance = of.dtype == DType::kF64   ? 1e-12
                               : of.dtype == DType::kF32 ? 1e-6
                                                         : 0x1p-8;
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(values[i], want[i], tolerance) << "element " << i;
      }
    }
  }
}

// Each owner inspects its own slice: the sums of all are those of the whole.
TEST(OwnedSlicesTest, FindingsAddUp) {
  const std::unique_ptr<Kernels> kernels = CreateCpuKernels({});
  SgdOptions options;
  options.common.skip_nonfinite = true;
  options.common.clip_grad_norm = 1;
  double count = 0, squares = 0;
  for (int i = 0; i < 4; ++i) {
    Parameter parameter;
    parameter.name = "w";
    parameter.shape = {64};
    ParameterArena::Options of_arena;
    of_arena.pad_elems = 64;
    of_arena.owner = i;
    of_arena.owners = 4;
    const auto arena =
        *ParameterArena::Create({{&parameter}}, of_arena, kernels->allocator());
    std::vector<double> grads(64, 2);
    grads[5] = grads[40] = std::numeric_limits<double>::infinity();
    SetValues(grads, *kernels, parameter.grad);
    Sgd sgd(options);
    ASSERT_TRUE(sgd.Attach(*arena).ok());
    const Tensor scalars = ScalarsFor(sgd, 0, 1, kernels->allocator());
    ASSERT_TRUE(sgd.Inspect(*kernels, scalars, *arena).ok());
    count += ValuesOf(scalars)[kNonFiniteScalar];
    if (i == 1) squares = ValuesOf(scalars)[kSquareSumScalar];
  }
  EXPECT_EQ(count, 2);
  EXPECT_EQ(squares, 16 * 4) << "the second quarter is finite";
}

// Two buckets take turns in one block. A micro-batch may be complete before the
// slice of the one before is kept.
TEST(OwnedSlicesTest, GradientsAreKeptAsSlices) {
  const std::unique_ptr<Kernels> kernels = CreateCpuKernels({});
  Parameter parameters[2];
  for (Parameter& parameter : parameters) {
    parameter.name = "w";
    parameter.shape = {64};
  }
  ParameterArena::Options options;
  options.pad_elems = 64;
  options.owner = 1;
  options.owners = 4;
  options.slice_grads = true;
  options.kernels = kernels.get();
  const auto arena = *ParameterArena::Create(
      {{&parameters[0]}, {&parameters[1]}}, options, kernels->allocator());
  EXPECT_EQ(arena->lasting_grad_bytes(), 2 * 16 * 4u);
  const auto write = [&](int bucket, double first) {
    Parameter& parameter = parameters[bucket];
    EXPECT_FALSE(parameter.grad_written);
    ASSERT_TRUE(arena->HoldGrads(bucket).ok());
    std::vector<double> values;
    for (int i = 0; i < 64; ++i) values.push_back(first + i);
    SetValues(values, *kernels, parameter.grad);
    parameter.grad_written = true;
    arena->DetachGrads(bucket);
    EXPECT_FALSE(parameter.grad.defined());
  };
  const auto kept = [&](int bucket) {
    const std::vector<double> values = ValuesOf(arena->OwnedGrads(bucket));
    EXPECT_EQ(values.size(), 16u);
    return std::pair(values.front(), values.back());
  };
  write(0, 0);
  const void* const block = arena->DetachedGrads(0).raw();
  write(0, 1000);
  EXPECT_EQ(ValuesOf(arena->DetachedGrads(0))[63], 63);
  ASSERT_TRUE(arena->KeepSlice(0, /*adds=*/false, Queue::kCompute).ok());
  EXPECT_EQ(kept(0), std::pair(16., 31.));
  ASSERT_TRUE(arena->KeepSlice(0, /*adds=*/true, Queue::kCompute).ok());
  EXPECT_EQ(kept(0), std::pair(1032., 1062.));
  EXPECT_FALSE(arena->DetachedGrads(0).defined());
  for (int i = 0; i < 3; ++i) {
    write(1, 5);
    ASSERT_TRUE(arena->KeepSlice(1, i > 0, Queue::kCompute).ok());
  }
  EXPECT_EQ(kept(1), std::pair(3 * 21., 3 * 36.));
  EXPECT_EQ(kept(0), std::pair(1032., 1062.));
  // The next step frees what an aborted one has left.
  write(0, 0);
  arena->BeginStep();
  EXPECT_FALSE(arena->DetachedGrads(0).defined());
  write(0, 0);
  write(0, 0);
  bool reused = false;
  for (int i = 0; i < 2; ++i) {
    reused |= arena->DetachedGrads(0).raw() == block;
    ASSERT_TRUE(arena->KeepSlice(0, false, Queue::kCompute).ok());
  }
  EXPECT_TRUE(reused);
}

TEST(OwnedSlicesTest, OwnersThatDoNotDivideABucketAreRefused) {
  const std::unique_ptr<Kernels> kernels = CreateCpuKernels({});
  ParameterArena::Options options;
  options.owners = 3;
  const absl::Status status =
      ParameterArena::Create({}, options, kernels->allocator()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("owner 0 of 3"), std::string::npos) << status;
}

}  // namespace
}  // namespace troupe::nn
