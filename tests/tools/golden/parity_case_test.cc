// A case in the form that tools/golden/parity.py writes, with the reference
// kernels in place of PyTorch. Each planted error is found, and nothing else.

#include "tools/golden/parity_case.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/nn/testing/tensor_values.h"
#include "tools/golden/model_spec.h"

namespace troupe::golden {
namespace {

using nlohmann::json;
using nn::DType;
using nn::NamedTensor;
using nn::Tensor;

constexpr int kSteps = 3;

class ParityCaseTest : public ::testing::Test {
 protected:
  // Sets weights_, tensors_ and spec_, as PyTorch would.
  void SetUp() override {
    spec_ = {{"name", "tiny"},
             {"torch", "none"},
             {"model",
              {{"kind", "gpt2"},
               {"layers", 1},
               {"heads", 2},
               {"width", 8},
               {"context", 8},
               {"vocab_size", 11}}},
             {"optimizer", {{"kind", "adamw"}, {"lr", 0.01}}}};
    const std::unique_ptr<nn::Kernels> kernels = nn::CreateReferenceKernels();
    const std::unique_ptr<ModelRun> run = MakeRun(*kernels);
    for (const nn::Parameter* p : run->parameters()) Keep(p->name, p->value);
    weights_ = std::exchange(tensors_, {});
    const Tensor x =
        nn::MakeTensor({1, 4}, DType::kI64, {1, 5, 2, 10}, memory_);
    const Tensor labels =
        nn::MakeTensor({1, 4}, DType::kI64, {5, 2, 10, 0}, memory_);
    Keep("x", x);
    Keep("labels", labels);
    std::vector<double> losses;
    while (losses.size() <= kSteps) {
      const ModelRun::Batch batch = run->Train(x, labels).value();
      losses.push_back(batch.loss());
      if (losses.size() == 1) KeepFirst(*run, batch);
      ASSERT_TRUE(run->Update(batch).ok());
    }
    tensors_["losses"] =
        nn::MakeTensor({kSteps + 1}, DType::kF64, losses, memory_);
    spec_["f32"]["losses"] = losses;
  }

  std::string Folder() const {
    return absl::StrCat(
        ::testing::TempDir(), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  absl::StatusOr<ParityCase> Open() {
    EXPECT_TRUE(files_.CreateFolder(Folder()).ok());
    Write("weights", weights_, {});
    Write("case", tensors_, {{"spec", spec_.dump()}});
    return ParityCase::Open(files_, Folder());
  }

  absl::StatusOr<ParityErrors> Train() {
    TROUPE_ASSIGN_OR_RETURN(const ParityCase parity, Open());
    return parity.Train(DType::kF64, *nn::CreateReferenceKernels());
  }

  std::map<std::string, Tensor> weights_, tensors_;
  json spec_;

 private:
  std::unique_ptr<ModelRun> MakeRun(nn::Kernels& kernels) const {
    auto run = ModelRun::Create(MakeSpecModel(spec_["model"]).value(),
                                DType::kF64, kernels)
                   .value();
    for (const nn::Parameter* p : run->parameters()) {
      const Tensor draws = nn::MakeTensor(
          p->shape, DType::kF64, nn::NormalDraws(p->name, p->shape.numel()),
          kernels.allocator());
      std::memcpy(p->value.raw(), draws.raw(), draws.bytes());
    }
    EXPECT_TRUE(
        run->SetOptimizer(MakeSpecOptimizer(spec_["optimizer"]).value()).ok());
    return run;
  }

  // Keeps a copy, divided by `divisor` for means.
  void Keep(const std::string& name, const Tensor& tensor, double divisor = 1) {
    std::vector<double> values = nn::ValuesOf(tensor);
    for (double& value : values) value /= divisor;
    tensors_[name] =
        nn::MakeTensor(tensor.shape(), tensor.dtype(), values, memory_);
  }
  void KeepFirst(const ModelRun& run, const ModelRun::Batch& batch) {
    Keep("output", batch.output);
    spec_["f32"]["output"] = 1e-7;
    for (const nn::Parameter* p : run.parameters()) {
      Keep("gradients/" + p->name, p->grad, batch.loss_count);
      spec_["f32"]["gradients"][p->name] = 2e-7;
    }
  }
  void Write(const std::string& name,
             const std::map<std::string, Tensor>& tensors,
             const nn::SafetensorsMetadata& metadata) {
    std::vector<NamedTensor> named;
    for (const auto& [key, tensor] : tensors) named.push_back({key, tensor});
    EXPECT_TRUE(nn::WriteSafetensors(
                    files_, absl::StrCat(Folder(), "/", name, ".safetensors"),
                    named, metadata)
                    .ok());
  }

  base::PosixFileSystem files_;
  nn::CachingAllocator memory_;
};

TEST_F(ParityCaseTest, FindsNoErrorWhereThereIsNone) {
  const auto parity = Open();
  ASSERT_TRUE(parity.ok()) << parity.status();
  EXPECT_EQ(parity->name(), "tiny");
  EXPECT_EQ(parity->torch_version(), "none");
  EXPECT_EQ(parity->torch_f32().output, 1e-7);
  EXPECT_EQ(parity->torch_f32().losses, 0);
  const auto errors = parity->Train(DType::kF64, *nn::CreateReferenceKernels());
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_EQ(errors->output, 0);
  EXPECT_EQ(errors->loss, 0);
  EXPECT_EQ(errors->losses, 0);
  ASSERT_EQ(errors->gradients.size(), weights_.size());
  for (const NamedError& gradient : errors->gradients) {
    EXPECT_EQ(gradient.error, 0) << gradient.name;
  }
}

TEST_F(ParityCaseTest, FindsTheRoundingsOfF32) {
  const auto parity = Open();
  ASSERT_TRUE(parity.ok()) << parity.status();
  const auto errors = parity->Train(DType::kF32, *nn::CreateCpuKernels({}));
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_GT(errors->output, 1e-9);
  EXPECT_LT(errors->output, 1e-5);
  EXPECT_LT(errors->loss, 1e-5);
  EXPECT_LT(errors->losses, 1e-4);
  for (const NamedError& gradient : errors->gradients) {
    EXPECT_GT(gradient.error, 1e-9) << gradient.name;
    EXPECT_LT(gradient.error, 1e-5) << gradient.name;
  }
}

TEST_F(ParityCaseTest, FindsWhatIsPlanted) {
  tensors_["output"].data<double>()[3] += 1e-3;
  tensors_["losses"].data<double>()[0] *= 1 + 1e-5;
  tensors_["losses"].data<double>()[kSteps] += 1e-2;
  tensors_["gradients/ln_f.bias"].data<double>()[7] *= -1;
  const auto errors = Train();
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_GT(errors->output, 1e-5);
  EXPECT_NEAR(errors->loss, 1e-5, 1e-9);
  EXPECT_NEAR(errors->losses, 1e-2, 1e-9);
  for (const NamedError& gradient : errors->gradients) {
    EXPECT_EQ(gradient.error > 1e-3, gradient.name == "ln_f.bias")
        << gradient.name << ": " << gradient.error;
  }
}

TEST_F(ParityCaseTest, WhatIsNotFiniteIsInfinitelyFar) {
  tensors_["output"].data<double>()[0] = std::nan("");
  const auto errors = Train();
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_TRUE(std::isinf(errors->output));
}

TEST_F(ParityCaseTest, ImportsStrictly) {
  weights_["ln_f.bia"] = weights_["ln_f.bias"];
  weights_.erase("ln_f.bias");
  const std::string error(Train().status().message());
  EXPECT_NE(error.find("missing: ln_f.bias; unexpected: ln_f.bia"),
            std::string::npos)
      << error;
}

TEST_F(ParityCaseTest, NamesWhatTheFileLacks) {
  spec_["f32"].erase("output");
  const std::string no_output(Open().status().message());
  EXPECT_NE(no_output.find("/case.safetensors: its spec: "), std::string::npos)
      << no_output;
  EXPECT_NE(no_output.find("output"), std::string::npos) << no_output;
  spec_["f32"]["output"] = 1e-7;

  spec_["f32"]["losses"] = {1.0, 2.0};
  const std::string losses(Open().status().message());
  EXPECT_NE(losses.find("has 4 losses in f64 and 2 in f32"), std::string::npos)
      << losses;
  spec_["f32"]["losses"] = {1.0, 2.0, 3.0, 4.0};

  tensors_.erase("gradients/wpe.weight");
  const std::string gradient(Train().status().message());
  EXPECT_NE(gradient.find("gradients/wpe.weight"), std::string::npos)
      << gradient;
}

}  // namespace
}  // namespace troupe::golden
