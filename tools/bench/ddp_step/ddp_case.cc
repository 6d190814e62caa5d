#include "tools/bench/ddp_step/ddp_case.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "data/in_memory_dataset.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"

namespace troupe::bench {
namespace {

constexpr double kLearningRate = 0.01;
constexpr std::int64_t kStepsWithoutEnd = std::int64_t{1} << 40;

struct Case {
  const char* name;
  nn::Shape input;       // of a sample
  std::int64_t outputs;  // classes, or values of a regression
  bool regression;
  std::int64_t batch;    // of a rank
  std::int64_t samples;  // of the data set
  nn::ModelFactory model;
};

std::vector<Case> AllCases() {
  const auto mlp = [](std::vector<std::int64_t> widths, bool bias) {
    return [widths, bias]() -> std::unique_ptr<nn::Sequential> {
      nn::ModelOptions options;
      options.bias = bias;
      return nn::MakeMlp(widths, options);
    };
  };
  const auto lenet = []() -> std::unique_ptr<nn::Sequential> {
    auto model = nn::MakeLeNet({32, 32, 3}, 10, {});
    TROUPE_CHECK(model.ok(), "the image is large enough");
    return *std::move(model);
  };
  const std::int64_t w = 2236;
  return {
      {"toy_mlp", {10}, 5, true, 20, 16384, mlp({10, 10, 5}, true)},
      {"toy_cnn", {32, 32, 3}, 10, false, 16, 4096, lenet},
      {"mnist_mlp", {784}, 10, false, 64, 8192, mlp({784, 512, 512, 10}, true)},
      {"mlp_25m", {w}, w, false, 64, 256, mlp({w, w, w, w, w, w}, false)}};
}

// Numbers that only have to differ: a linear congruence.
class Numbers {
 public:
  std::uint32_t Next() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 8;
  }
  float Uniform() {  // [-1, 1)
    return static_cast<float>(Next()) * 0x1p-23f - 1.0f;
  }

 private:
  std::uint32_t state_ = 1;
};

absl::StatusOr<data::DatasetPtr> MakeData(const Case& c) {
  nn::CachingAllocator allocator;
  std::vector<std::int64_t> dims = {c.samples};
  dims.insert(dims.end(), c.input.dims().begin(), c.input.dims().end());
  nn::Tensor inputs =
      nn::Tensor::Empty(nn::Shape(dims), nn::DType::kF32, allocator);
  Numbers numbers;
  for (float& value : inputs.span<float>()) value = numbers.Uniform();
  if (c.regression) {
    nn::Tensor targets =
        nn::Tensor::Empty({c.samples, c.outputs}, nn::DType::kF32, allocator);
    for (float& value : targets.span<float>()) value = numbers.Uniform();
    return data::MakeInMemoryDataset(inputs, targets, /*num_classes=*/0);
  }
  nn::Tensor targets =
      nn::Tensor::Empty({c.samples}, nn::DType::kI64, allocator);
  for (std::int64_t& value : targets.span<std::int64_t>()) {
    value = numbers.Next() % c.outputs;
  }
  return data::MakeInMemoryDataset(inputs, targets, c.outputs);
}

absl::StatusOr<actors::JobSpec> MakeJob(const Case& c, int ranks) {
  actors::JobSpec spec;
  spec.model = c.model;
  if (c.regression) {
    spec.loss = nn::ops::MeanSquaredError;
  } else {
    spec.loss = [](nn::Context& ctx, const nn::Tensor& y, const nn::Tensor& t) {
      return nn::ops::SoftmaxCrossEntropy(ctx, y, t);
    };
  }
  spec.optimizer = [] {
    nn::SgdOptions options;
    options.lr = kLearningRate;
    return std::make_unique<nn::Sgd>(options);
  };
  TROUPE_ASSIGN_OR_RETURN(spec.train, MakeData(c));
  spec.plan.mesh = pipeline::Mesh(ranks);
  spec.plan.global_batch_size = c.batch * ranks;
  spec.plan.inline_bytes = -1;  // by measurement
  spec.steps = kStepsWithoutEnd;
  return spec;
}

}  // namespace

std::vector<std::string> DdpCaseNames() {
  std::vector<std::string> names;
  for (const Case& c : AllCases()) names.push_back(c.name);
  return names;
}

absl::StatusOr<actors::JobSpec> MakeDdpJob(const std::string& name, int ranks) {
  for (const Case& c : AllCases()) {
    if (c.name == name) return MakeJob(c, ranks);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no case ", name, "; there are ",
                   absl::StrJoin(DdpCaseNames(), ", ")));
}

}  // namespace troupe::bench
