// Jobs with pieces of layers (mesh.tp) and slices of states (zero.stage) beside
// trainings of PyTorch that are divided between two processes
// (tools/golden/make_sharded.py): parallelize_module() and
// ZeroRedundancyOptimizer. All numbers are f64.

#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/models/gpt2.h"
#include "nn/modules/parameter_dtype.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "nn/serialize/safetensors.h"
#include "tests/actors/sim/divided_jobs.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/test_job.h"
#include "tests/golden/golden_file.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::actors {
namespace {

// PyTorch's own two divisions differ by 2e-11, in biases of keys, whose
// gradients are roundings alone.
constexpr double kTolerance = 1e-9;

class GoldenDividedTest : public testing::Test {
 protected:
  // Expects the losses and the parameters that PyTorch had in `example`.
  void Expect(const std::string& example, const Layout& layout) {
    for (const std::string rule : {"sgd", "adamw"}) {
      SCOPED_TRACE(absl::StrCat(example, ", ", rule, ", ", layout.ToString()));
      const std::string key = absl::StrCat(example, "/", rule, "/");
      JobSpec spec = LaidOut(Job(rule), layout);
      spec.checkpoint.dir = FreshFolder("trained");
      spec.checkpoint.every = spec.steps;
      const SimulatedRun run = Simulate(spec, std::uint64_t{3});
      ASSERT_EQ(run.check, absl::OkStatus());
      EXPECT_TRUE(nn::Near(run.reports.losses(), golden_.Values(key + "losses"),
                           kTolerance));
      ASSERT_EQ(run.reports.checkpoints.size(), 1u);
      ExpectParameters(
          key, absl::StrCat(run.reports.checkpoints[0], "/model.safetensors"));
    }
  }

 private:
  JobSpec Job(const std::string& rule) const {
    const auto& model = golden_.spec()["model"];
    nn::Gpt2Options gpt;
    gpt.layers = model["layers"];
    gpt.heads = model["heads"];
    gpt.width = model["width"];
    gpt.context = model["context"];
    gpt.vocab_size = model["vocab_size"];
    JobSpec spec;
    spec.dtype = nn::DType::kF64;
    spec.kernels = nn::CreateReferenceKernels;
    spec.model = [gpt] {
      auto made = *nn::MakeGpt2(gpt);
      nn::SetParameterDType(*made, nn::DType::kF64);
      return made;
    };
    spec.init.from = FirstWeights(*spec.model());
    spec.loss = nn::ops::CrossEntropyLoss();
    spec.optimizer = OptimizerOf(rule);
    spec.steps = golden_.spec()["steps"];
    spec.plan.global_batch_size = golden_.spec()["samples"];
    spec.plan.buckets.first_bucket_bytes = 8192;
    spec.plan.buckets.bucket_bytes = 8192;
    spec.shuffle = false;
    spec.train = Texts(spec.steps, spec.plan.global_batch_size, gpt);
    return spec;
  }

  MakeOptimizerFn OptimizerOf(const std::string& rule) const {
    const auto& options = golden_.spec()["optimizers"][rule];
    if (rule == "sgd")
      return nn::SgdOptions{options["lr"], options["momentum"]};
    nn::AdamOptions adam = nn::AdamWDefaults();
    adam.lr = options["lr"];
    return adam;
  }

  // Writes the weights that weight() of make_models.py has for these names.
  std::string FirstWeights(nn::Module& model) const {
    std::vector<nn::NamedTensor> tensors;
    for (const nn::Parameter* p : model.Parameters()) {
      const std::string name = absl::StrCat("sharded/", p->name);
      double scale = 0.25;
      if (p->shape.rank() > 1) {
        const auto fan_in = static_cast<double>(p->shape.numel() / p->shape[0]);
        for (scale = 1; scale * scale * fan_in > 4;) scale /= 2;
      }
      std::vector<double> values =
          nn::GoldenInput(name, p->shape.numel(), scale);
      if (p->shape.rank() == 1 && absl::EndsWith(name, ".weight")) {
        for (double& value : values) value += 1;
      }
      tensors.push_back({p->name, nn::MakeTensor(p->shape, nn::DType::kF64,
                                                 values, *memory_)});
    }
    const std::string path =
        absl::StrCat(FreshFolder("first"), "/weights.safetensors");
    EXPECT_EQ(nn::WriteSafetensors(files_, path, tensors, {}),
              absl::OkStatus());
    return path;
  }

  // Returns the samples of the steps, one batch after the other.
  data::DatasetPtr Texts(std::int64_t steps, std::int64_t samples,
                         const nn::Gpt2Options& gpt) const {
    const auto tensor = [&](const std::string& what) {
      std::vector<double> all;
      for (std::int64_t step = 0; step < steps; ++step) {
        const std::vector<double> values = nn::GoldenLabels(
            absl::StrCat("sharded/", what, step), samples * gpt.context,
            gpt.vocab_size, /*ignore_fifth=*/false);
        all.insert(all.end(), values.begin(), values.end());
      }
      return nn::MakeTensor({steps * samples, gpt.context}, nn::DType::kI64,
                            all, *memory_);
    };
    return *data::MakeInMemoryDataset(tensor("x"), tensor("y"), gpt.vocab_size);
  }

  void ExpectParameters(const std::string& key, const std::string& path) const {
    const auto file = nn::SafetensorsFile::Open(files_, path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ(file->entries().size(), 28u);
    for (const nn::SafetensorsEntry& entry : file->entries()) {
      const std::vector<double> got =
          nn::ValuesOf(*file->Read(entry.name, *memory_));
      const double sum = std::accumulate(got.begin(), got.end(), 0.0);
      const double norm = std::sqrt(
          std::inner_product(got.begin(), got.end(), got.begin(), 0.0));
      EXPECT_TRUE(
          nn::Near({sum, norm, got.front(), got[got.size() / 2], got.back()},
                   golden_.Values(key + entry.name), kTolerance))
          << entry.name;
    }
  }

  const nn::GoldenFile golden_ = *nn::GoldenFile::Open("sharded_f64");
  mutable base::PosixFileSystem files_;
  const std::unique_ptr<nn::CachingAllocator> memory_ =
      std::make_unique<nn::CachingAllocator>();
};

TEST_F(GoldenDividedTest, PiecesTrainAsParallelizedModules) {
  Expect("tensor", {/*tp=*/2, 1, 1});
  Expect("tensor", {/*tp=*/2, 1, 1, /*zero=*/0, /*shares_tokens=*/true});
}

TEST_F(GoldenDividedTest, SlicesTrainAsZeroRedundancyOptimizer) {
  for (const int stage : {1, 3}) Expect("zero", {1, /*dp=*/2, 1, stage});
  Expect("zero", {/*tp=*/2, /*dp=*/2, 1, /*zero=*/1});
}

}  // namespace
}  // namespace troupe::actors
