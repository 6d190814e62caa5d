#include "nn/optim/clip_grad_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/optim/sgd.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/golden/golden_file.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

class ClipGradNormTest : public testing::Test {
 protected:
  ClipGradNormTest() {
    parameters_[0].name = "weight";
    parameters_[0].shape = {4, 5};
    parameters_[1].name = "bias";
    parameters_[1].shape = {5};
    parameters_[2].name = "gain";
    parameters_[2].shape = {3};
  }

  // Puts the first two parameters into a bucket each.
  std::unique_ptr<ParameterArena> MakeArena(
      Kernels& kernels, DType dtype,
      ParameterArena::Options options = ParameterArena::Options()) {
    for (Parameter& p : parameters_) p.dtype = dtype;
    options.kernels = &kernels;
    auto arena = *ParameterArena::Create({{&parameters_[1]}, {&parameters_[0]}},
                                         options, kernels.allocator());
    EXPECT_TRUE(arena->Initialize(1).ok());
    arena->BeginStep();
    return arena;
  }

  // Sets the gradient and returns its values.
  std::vector<double> SetGrad(Parameter& p, Kernels& kernels, double scale) {
    const std::vector<double> values =
        GoldenInput("grad/" + p.name, p.shape.numel(), scale);
    const Tensor host = MakeTensor(p.shape, p.grad.dtype(), values, memory_);
    CopyBytes(kernels, Queue::kCompute, host, p.grad);
    p.grad_written = true;
    return ValuesOf(host);
  }
  std::vector<double> GradOf(const Parameter& p, Kernels& kernels) {
    const Tensor host = *CopyToHost(kernels, Queue::kCompute, p.grad);
    EXPECT_TRUE(Synchronize(kernels, Record(kernels, Queue::kCompute)).ok());
    return ValuesOf(host);
  }
  static double NormOf(const std::vector<std::vector<double>>& all) {
    double squares = 0;
    for (const auto& values : all) {
      for (double v : values) squares += v * v;
    }
    return std::sqrt(squares);
  }

  CachingAllocator memory_;
  Parameter parameters_[3];
};

// Against the formula in f64, on each kind of device and dtype.
TEST_F(ClipGradNormTest, ScalesAllGradientsByOneFactor) {
  const auto memory = std::make_shared<GuardedMemory>(1 << 20);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    std::vector<std::unique_ptr<Kernels>> sets;
    sets.push_back(CreateReferenceKernels());
    if (dtype != DType::kF64) sets.push_back(CreateCpuKernels({}));
    sets.push_back(CreateQueuedKernels(CreateReferenceKernels(), memory, 5));
    for (const auto& kernels : sets) {
      SCOPED_TRACE(absl::StrCat(DTypeName(dtype), " ", kernels->Describe()));
      const auto arena = MakeArena(*kernels, dtype);
      const std::vector<double> weight = SetGrad(parameters_[0], *kernels, 2);
      const std::vector<double> bias = SetGrad(parameters_[1], *kernels, 1);
      const double norm = NormOf({weight, bias});
      const auto measured = GradNorm(*kernels, {arena.get()});
      ASSERT_TRUE(measured.ok()) << measured.status();
      EXPECT_NEAR(*measured, norm, 1e-12 * norm);
      // A limit above the norm changes no bit.
      EXPECT_EQ(*ClipGradNorm(*kernels, {arena.get()}, 2 * norm), *measured);
      EXPECT_EQ(GradOf(parameters_[0], *kernels), weight);
      EXPECT_EQ(*ClipGradNorm(*kernels, {arena.get()}, norm / 3), *measured);
      const double factor = norm / 3 / (norm + 1e-6);
      for (const auto& [p, before] : {std::make_pair(&parameters_[0], weight),
                                      std::make_pair(&parameters_[1], bias)}) {
        std::vector<double> wanted = before;
        for (double& v : wanted) v *= factor;
        EXPECT_TRUE(Near(GradOf(*p, *kernels), wanted, OpTolerance(dtype)));
      }
    }
  }
}

// The trajectory of PyTorch's clip_grad_norm_ and SGD.
TEST_F(ClipGradNormTest, TrainsAsPyTorch) {
  const GoldenFile golden = *GoldenFile::Open("optimizers_f64");
  const auto kernels = CreateReferenceKernels();
  for (const auto& c : golden.spec()["cases"]) {
    const std::string name = c["name"];
    if (c["kind"] != "sgd" || !c.contains("clip_grad_norm")) continue;
    SCOPED_TRACE(name);
    const auto arena = MakeArena(*kernels, DType::kF64);
    Sgd sgd({c["lr"]});
    ASSERT_TRUE(sgd.Attach(*arena).ok());
    const auto fill = [&](const Parameter& p, const std::string& what,
                          const Tensor& to) {
      const std::vector<double> values = GoldenInput(
          absl::StrCat(name, "/", p.name, what), p.shape.numel(), 1);
      std::copy(values.begin(), values.end(), to.data<double>());
    };
    std::vector<double> trajectories[2];
    for (int i : {0, 1}) fill(parameters_[i], "", parameters_[i].value);
    const int steps = golden.spec()["steps"];
    for (int step = 0; step < steps; ++step) {
      arena->BeginStep();
      for (int i : {0, 1}) {
        fill(parameters_[i], absl::StrCat("/g", step), parameters_[i].grad);
        parameters_[i].grad_written = true;
      }
      ASSERT_TRUE(
          ClipGradNorm(*kernels, {arena.get()}, c["clip_grad_norm"]).ok());
      StepScalars values;
      sgd.FillScalars(step, values);
      values.summed = 1;
      const Tensor scalars = HostScalars(values, memory_);
      for (int bucket : {0, 1}) {
        ASSERT_TRUE(sgd.Update(*kernels, scalars, *arena, bucket).ok());
      }
      for (int i : {0, 1}) {
        for (double v : ValuesOf(parameters_[i].value)) {
          trajectories[i].push_back(v);
        }
      }
    }
    for (int i : {0, 1}) {
      EXPECT_TRUE(Near(trajectories[i],
                       golden.Values(name + "/" + parameters_[i].name), 1e-13));
    }
  }
}

TEST_F(ClipGradNormTest, CountsUnusedParametersAsZeroAndCopiesOnce) {
  const auto kernels = CreateReferenceKernels();
  const auto arena = MakeArena(*kernels, DType::kF32);
  // Left over from the step before.
  for (float& v : parameters_[1].grad.span<float>()) v = 9;
  const std::vector<double> weight = SetGrad(parameters_[0], *kernels, 2);
  EXPECT_NEAR(*GradNorm(*kernels, {arena.get()}), NormOf({weight}), 1e-12);
  EXPECT_EQ(ValuesOf(parameters_[1].grad), std::vector<double>(5, 0.0));

  // A copied bucket is clipped, but another rank counts it.
  ParameterArena::Options options;
  options.copied_buckets = {0};
  const auto shared = MakeArena(*kernels, DType::kF32, options);
  SetGrad(parameters_[0], *kernels, 2);
  SetGrad(parameters_[1], *kernels, 1);
  const double norm = NormOf({weight});
  EXPECT_NEAR(*ClipGradNorm(*kernels, {shared.get()}, 0), norm, 1e-12);
  EXPECT_EQ(ValuesOf(parameters_[0].grad), std::vector<double>(20, 0.0));
  EXPECT_EQ(ValuesOf(parameters_[1].grad), std::vector<double>(5, 0.0));
}

TEST_F(ClipGradNormTest, SeveralArenasAreOneModel) {
  const auto kernels = CreateReferenceKernels();
  const auto first = MakeArena(*kernels, DType::kF32);
  parameters_[2].dtype = DType::kF64;
  const auto second = *ParameterArena::Create(
      {{&parameters_[2]}}, ParameterArena::Options(), kernels->allocator());
  const double norm = NormOf({SetGrad(parameters_[0], *kernels, 1),
                              SetGrad(parameters_[1], *kernels, 1),
                              SetGrad(parameters_[2], *kernels, 4)});
  ParameterArena* const both[] = {first.get(), second.get()};
  EXPECT_NEAR(*ClipGradNorm(*kernels, both, 1), norm, 1e-12);
  EXPECT_NEAR(*GradNorm(*kernels, both), 1, 1e-6);
}

TEST_F(ClipGradNormTest, WhatIsNoNumberStaysNone) {
  const auto kernels = CreateReferenceKernels();
  const auto arena = MakeArena(*kernels, DType::kF32);
  SetGrad(parameters_[0], *kernels, 1);
  SetGrad(parameters_[1], *kernels, 1);
  parameters_[1].grad.span<float>()[2] = std::nanf("");
  EXPECT_TRUE(std::isnan(*ClipGradNorm(*kernels, {arena.get()}, 1)));
  EXPECT_TRUE(std::isnan(parameters_[0].grad.span<float>()[0]));
  for (double wrong : {-1.0, std::nan("")}) {
    EXPECT_EQ(ClipGradNorm(*kernels, {arena.get()}, wrong).status(),
              absl::InvalidArgumentError(absl::StrCat(
                  "max_norm (", wrong, ") must be a number of at least 0")));
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(ClipGradNorm(*kernels, {arena.get()}, kInfinity).ok());
}

}  // namespace
}  // namespace troupe::nn
