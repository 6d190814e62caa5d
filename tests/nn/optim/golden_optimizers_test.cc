// Comparison of each optimizer with PyTorch's over some steps: the cases of
// tools/golden/make_optimizers.py. A weight and a bias are in one bucket or in
// two; gradients are sums of 4 samples under a loss scale of 2.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "tests/golden/golden_file.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

using Json = nlohmann::json;

OptimizerOptions CommonOf(const Json& c) {
  OptimizerOptions common;
  if (c.value("no_decay_1d", false)) common.groups = {NoDecayGroup()};
  common.clip_grad_norm = c.value("clip_grad_norm", 0.0);
  common.clip_grad_value = c.value("clip_grad_value", 0.0);
  common.ema_decay = c.value("ema_decay", 0.0);
  return common;
}

template <typename Options>
void ReadAdaptive(const Json& c, Options& options) {
  options.lr = c["lr"];
  if (c.contains("betas")) {
    options.beta1 = c["betas"][0];
    options.beta2 = c["betas"][1];
  }
  options.eps = c.value("eps", options.eps);
  options.weight_decay = c.value("weight_decay", options.weight_decay);
  options.common = CommonOf(c);
  EXPECT_TRUE(options.Validate().ok()) << options.Validate();
}

std::unique_ptr<Optimizer> MakeOptimizer(const Json& c) {
  const std::string kind = c["kind"];
  if (kind == "lamb") {
    LambOptions options;
    ReadAdaptive(c, options);
    return std::make_unique<Lamb>(options);
  }
  if (kind == "lars") {
    LarsOptions options;
    options.lr = c["lr"];
    options.momentum = c["momentum"];
    options.weight_decay = c["weight_decay"];
    options.trust_coefficient = c["trust_coefficient"];
    options.eps = c.value("eps", 0.0);
    return std::make_unique<Lars>(options);
  }
  if (kind == "sgd") {
    SgdOptions options;
    options.lr = c["lr"];
    options.common = CommonOf(c);
    return std::make_unique<Sgd>(options);
  }
  AdamOptions options = kind == "adamw" ? AdamWDefaults() : AdamOptions();
  ReadAdaptive(c, options);
  options.amsgrad = c.value("amsgrad", false);
  return std::make_unique<Adam>(options);
}

struct Trained {
  std::vector<std::vector<double>> trajectories;  // one for each parameter
  std::vector<std::vector<double>> averages;      // likewise, with ema_decay
};

class GoldenOptimizersTest : public testing::Test {
 protected:
  static constexpr double kCount = 4, kScale = 2;

  GoldenOptimizersTest() {
    parameters_[0].name = "weight";
    parameters_[0].shape = {4, 5};
    parameters_[1].name = "bias";
    parameters_[1].shape = {5};
  }

  Trained Train(const Json& c, int steps, DType dtype, bool two_buckets,
                Kernels& kernels) {
    for (Parameter& parameter : parameters_) parameter.dtype = dtype;
    Parameter* const weight = &parameters_[0];
    Parameter* const bias = &parameters_[1];
    const auto arena = *ParameterArena::Create(
        two_buckets ? std::vector<std::vector<Parameter*>>{{bias}, {weight}}
                    : std::vector<std::vector<Parameter*>>{{weight, bias}},
        {}, kernels.allocator());
    for (Parameter& p : parameters_) Fill(c, "", p.value, 1);
    const std::unique_ptr<Optimizer> optimizer = MakeOptimizer(c);
    EXPECT_TRUE(optimizer->Attach(*arena).ok());
    EXPECT_TRUE(optimizer->Begin(kernels, *arena).ok());
    Trained trained;
    trained.trajectories.resize(2);
    for (int step = 0; step < steps; ++step) {
      for (Parameter& p : parameters_) {
        Fill(c, absl::StrCat("/g", step), p.grad, kCount * kScale);
      }
      Step(step, *optimizer, *arena, kernels);
      for (int i = 0; i < 2; ++i) {
        for (double value : ValuesOf(parameters_[i].value)) {
          trained.trajectories[i].push_back(value);
        }
      }
    }
    for (const auto& [name, state] : arena->states()) {
      if (name != "ema_value") continue;
      for (const Parameter* p : {weight, bias}) {
        for (const ArenaSlot& slot : arena->slots()) {
          if (slot.parameter != p) continue;
          trained.averages.push_back(ValuesOf(arena->View(state, slot)));
        }
      }
    }
    return trained;
  }

 private:
  static void Fill(const Json& c, const std::string& what, Tensor& to,
                   double factor) {
    const std::string parameter = to.shape().rank() > 1 ? "weight" : "bias";
    std::vector<double> values = GoldenInput(
        absl::StrCat(c["name"].get<std::string>(), "/", parameter, what),
        to.numel(), 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] *= factor;
      if (to.dtype() == DType::kF64) {
        to.data<double>()[i] = values[i];
      } else {
        to.data<float>()[i] = static_cast<float>(values[i]);
      }
    }
  }

  static void Step(int step, Optimizer& optimizer, ParameterArena& arena,
                   Kernels& kernels) {
    StepScalars values;
    optimizer.FillScalars(step, values);
    values.loss_count = kCount;
    values.loss_scale = kScale;
    Tensor scalars = HostScalars(values, kernels.allocator());
    if (optimizer.NeedsAllBuckets()) {
      EXPECT_TRUE(optimizer.Inspect(kernels, scalars, arena).ok());
      EXPECT_TRUE(optimizer.Conclude(kernels, scalars).ok());
    }
    for (int bucket = 0; bucket < arena.num_buckets(); ++bucket) {
      EXPECT_TRUE(optimizer.Update(kernels, scalars, arena, bucket).ok());
    }
  }

  Parameter parameters_[2];
};

void ExpectNear(const std::vector<double>& got, const std::vector<double>& want,
                DType dtype, const std::string& what) {
  const Difference difference = Compare(got, want);
  const double tolerance = dtype == DType::kF64 ? 1e-13 : 4e-6;
  EXPECT_LT(difference.norm, tolerance) << what;
  EXPECT_LT(difference.max, tolerance) << what;
}

TEST_F(GoldenOptimizersTest, TrainAsPyTorch) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const auto golden =
        GoldenFile::Open(absl::StrCat("optimizers_", DTypeName(dtype)));
    ASSERT_TRUE(golden.ok()) << golden.status();
    std::vector<std::unique_ptr<Kernels>> sets;
    sets.push_back(CreateReferenceKernels());
    if (dtype == DType::kF32) sets.push_back(CreateCpuKernels({}));
    for (const auto& kernels : sets) {
      for (const Json& c : golden->spec()["cases"]) {
        const std::string name = c["name"];
        SCOPED_TRACE(absl::StrCat(name, " on ", kernels->Describe()));
        const int steps = golden->spec()["steps"];
        const Trained one = Train(c, steps, dtype, false, *kernels);
        const Trained two = Train(c, steps, dtype, true, *kernels);
        if (!c.contains("clip_grad_norm")) {  // its sum has another order
          EXPECT_EQ(one.trajectories, two.trajectories)
              << "bits depend on buckets";
        }
        EXPECT_EQ(one.averages.size(), c.contains("ema_decay") ? 2u : 0u);
        const char* names[] = {"/weight", "/bias"};
        for (int i = 0; i < 2; ++i) {
          const std::string of = name + names[i];
          ExpectNear(one.trajectories[i], golden->Values(of), dtype, of);
          ExpectNear(two.trajectories[i], golden->Values(of), dtype, of);
          if (one.averages.empty()) continue;
          ExpectNear(one.averages[i], golden->Values(of + "/ema"), dtype, of);
        }
      }
    }
  }
}

TEST(AdamOptions, RefuseWhatPyTorchRefuses) {
  const auto message = [](auto change) {
    AdamOptions options;
    change(options);
    return std::string(options.Validate().message());
  };
  EXPECT_EQ(message([](AdamOptions&) {}), "");
  EXPECT_EQ(message([](AdamOptions& o) { o.beta1 = 1; }),
            "AdamOptions.beta1 = 1: must be at least 0 and below 1");
  EXPECT_EQ(message([](AdamOptions& o) { o.eps = -1; }),
            "AdamOptions.eps = -1: must be at least 0");
  EXPECT_EQ(message([](AdamOptions& o) { o.common.clip_grad_norm = -1; }),
            "OptimizerOptions.clip_grad_norm = -1: must be at least 0");
  EXPECT_EQ(message([](AdamOptions& o) {
              o.common.clip_grad_norm = o.common.clip_grad_value = 1;
            }),
            "OptimizerOptions.clip_grad_norm and "
            "OptimizerOptions.clip_grad_value are both set, and gradients are "
            "clipped by one; remove the other");
  EXPECT_EQ(message([](AdamOptions& o) { o.common.ema_decay = 1; }),
            "OptimizerOptions.ema_decay = 1: must be at least 0 and below 1");
}

}  // namespace
}  // namespace troupe::nn
