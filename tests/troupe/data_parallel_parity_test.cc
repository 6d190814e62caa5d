// DataParallel beside PyTorch's, on four devices: outputs, gradients,
// parameters and buffers, in threads and in the simulator
// (tools/golden/make_data_parallel.py has the same models and cases).

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/modules/activation.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/parameter_dtype.h"
#include "tests/golden/golden_file.h"
#include "tests/nn/testing/tensor_values.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using nlohmann::json;

// Values by the names of the golden file.
using Results = std::map<std::string, std::vector<double>>;

std::unique_ptr<nn::Module> MakeModel(const std::vector<int>& sizes,
                                      bool has_norm) {
  auto model = std::make_unique<nn::Sequential>();
  model->AppendNamed<nn::Linear>("first", sizes[0], sizes[1]);
  model->AppendNamed<nn::Tanh>("tanh");
  if (has_norm) model->AppendNamed<nn::BatchNorm1d>("norm", sizes[1]);
  model->AppendNamed<nn::Linear>("last", sizes[1], sizes[2]);
  nn::SetParameterDType(*model, DType::kF64);
  return model;
}

void FillDoubles(const Tensor& tensor, const std::string& name, double scale) {
  const std::vector<double> values =
      nn::GoldenInput(name, tensor.numel(), scale);
  std::copy(values.begin(), values.end(), tensor.data<double>());
}

Var Golden(Rank& rank, const Shape& shape, const std::string& name) {
  Var x = rank.Zeros(shape, DType::kF64);
  FillDoubles(x, name, 1);
  return x;
}

void Train(Rank& rank, const json& example, const std::string& rule,
           Results& results) {
  std::map<std::string, DataParallel<nn::Module>> models;
  const bool has_norm = example.contains("norm");
  models.emplace("model", DataParallel(rank, [has_norm] {
                   return MakeModel({6, 8, 4}, has_norm);
                 }));
  if (example.contains("head")) {
    models.emplace("head", DataParallel(rank, [] {
                     return MakeModel({4, 5, 4}, false);
                   }));
  }
  std::vector<std::string> trained;
  std::deque<Optimizer> optimizers;
  for (const auto& [name, model] : models) {
    for (nn::Parameter* parameter : model.Parameters()) {
      FillDoubles(parameter->value,
                  absl::StrCat("dp/", name, "/", parameter->name), 0.5);
      parameter->requires_grad = name == "model" || !example.contains("frozen");
    }
    if (!model.Parameters()[0]->requires_grad) continue;
    trained.push_back(name);
    if (rule == "sgd") {
      SgdOptions sgd{/*lr=*/0.05, /*momentum=*/0.9};
      sgd.weight_decay = 0.01;
      optimizers.emplace_back(Sgd(model, sgd));
    } else {
      AdamOptions adamw = nn::AdamWDefaults();
      adamw.lr = 0.01;
      optimizers.emplace_back(Adam(model, adamw));
    }
  }
  const DataParallel<nn::Module>& model = models.at("model");
  const int backwards = example.value("backwards", 1);
  int i = 0;
  for (const std::int64_t batch : example["batches"]) {
    if (i % backwards == 0 && !example.contains("keeps")) {
      for (Optimizer& optimizer : optimizers) optimizer.ZeroGrad();
    }
    const Var x = Golden(rank, {batch, 6}, absl::StrCat("dp/x", i));
    const Var y = Golden(rank, {batch, 4}, absl::StrCat("dp/y", i));
    Var output = model(x);
    if (example.contains("head")) output = models.at("head")(output);
    if (example.contains("twice")) output = output + model(x * 0.5);
    Var loss = nn::MeanSquaredError(output, y).Mean();
    if (example.contains("penalty")) {
      for (nn::Parameter* parameter : model.Parameters()) {
        const Var p = x.Use(*parameter);
        loss = loss + example["penalty"].get<double>() * nn::Sum(p * p);
      }
    }
    loss.Backward();
    results[absl::StrCat("output", i)] = nn::ValuesOf(output);
    if (++i % backwards != 0) continue;
    for (const std::string& name : trained) {
      for (const nn::Parameter* parameter : models.at(name).Parameters()) {
        results[absl::StrCat("gradient/", name, ".", parameter->name)] =
            nn::ValuesOf(parameter->grad);
      }
    }
    for (Optimizer& optimizer : optimizers) optimizer.Step();
  }
  for (const auto& [name, each] : models) {
    for (const nn::Parameter* parameter : each.Parameters()) {
      results[absl::StrCat(name, ".", parameter->name)] =
          nn::ValuesOf(parameter->value);
    }
    for (const nn::Buffer* buffer : each.module().Buffers()) {
      results[absl::StrCat(name, ".", buffer->name)] =
          nn::ValuesOf(buffer->value);
    }
  }
}

class DataParallelParityTest : public testing::TestWithParam<const char*> {
 protected:
  const nn::GoldenFile golden_ = *nn::GoldenFile::Open("data_parallel_f64");
};

TEST_P(DataParallelParityTest, HasThePyTorchValuesAndTheSameBitsInAllRuns) {
  SpawnOptions options;
  options.devices = golden_.spec()["devices"];
  options.device = *nn::Device::Parse("reference");  // has f64
  for (const json& example : golden_.spec()["cases"]) {
    if (example["name"] != GetParam()) continue;
    for (const std::string rule : {"sgd", "adamw"}) {
      Results results;
      const auto program = [&](Rank& rank) {
        results.clear();
        Train(rank, example, rule, results);
      };
      const absl::Status status = Spawn(program, options);
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_GT(results.size(), 5u);
      for (const auto& [name, values] : results) {
        const std::string key = absl::StrCat(GetParam(), "/", rule, "/", name);
        ASSERT_TRUE(golden_.Has(key)) << key;
        EXPECT_TRUE(nn::Near(values, golden_.Values(key), 1e-12)) << key;
      }
      const Results in_threads = results;
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const SimulatedRun run = Simulate(program, options, {seed});
        ASSERT_TRUE(run.status.ok()) << seed << ": " << run.status;
        EXPECT_EQ(results, in_threads) << seed;
      }
    }
    return;
  }
  FAIL() << "no case " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(
    Cases, DataParallelParityTest,
    testing::Values("plain", "batch_norm", "accumulated", "kept_gradients",
                    "penalty", "two_forwards", "two_models", "frozen_head"),
    [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace troupe
