#include "tests/actors/test_job.h"

#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files/file_system.h"
#include "data/registry.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/dropout.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/parameter_dtype.h"
#include "nn/modules/sequential.h"
#include "nn/optim/sgd.h"

namespace troupe::actors {

namespace {

// Returns the data of TinyCnnJob(), which are drawn once for all jobs.
const data::DataSplits& TinyImages() {
  static const auto* const splits = [] {
    data::DatasetOptions data;
    data.kind = "synthetic";
    data.input_shape = {28, 28, 1};
    data.train_count = 256;
    data.test_count = 70;
    return new data::DataSplits(*data::OpenDataset(data));
  }();
  return *splits;
}

}  // namespace

JobSpec TinyCnnJob(int dp, std::int64_t steps) {
  JobSpec spec;
  spec.train = TinyImages().train;
  spec.test = TinyImages().test;
  spec.model = [] { return *nn::MakeLeNet({28, 28, 1}, 10, {}); };
  spec.loss = [](nn::Context& ctx, const nn::Tensor& y, const nn::Tensor& t) {
    return nn::ops::SoftmaxCrossEntropy(ctx, y, t);
  };
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.02;
    sgd.momentum = 0.9;
    return std::make_unique<nn::Sgd>(sgd);
  };
  spec.seed = 1;
  spec.steps = steps;
  spec.timeout = absl::Seconds(60);
  spec.plan.mesh = pipeline::Mesh(dp);
  spec.plan.global_batch_size = 32;
  return spec;
}

JobSpec TinyCnnPipeline(int dp, int pp, std::int64_t steps) {
  JobSpec spec = TinyCnnJob(dp, steps);
  spec.plan.global_batch_size = 4;
  spec.plan.buckets.bucket_bytes = 20'000;
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  if (pp > 1) {
    spec.plan.cuts = {6};
    spec.plan.micro_batch_size = 2 / dp;
  }
  return spec;
}

std::unique_ptr<nn::Module> MakeDropoutMlp() {
  auto model = std::make_unique<nn::Sequential>();
  model->Append<nn::Flatten>();
  model->Append<nn::Linear>(784, 12);
  model->Append<nn::Dropout>(0.5);
  model->Append<nn::Linear>(12, 10);
  return model;
}

void UseDType(nn::DType dtype, JobSpec& spec) {
  spec.dtype = dtype;
  spec.model = [dtype, model = std::move(spec.model)] {
    std::unique_ptr<nn::Module> made = model();
    nn::SetParameterDType(*made, dtype);
    return made;
  };
}

std::vector<double> Reports::losses() const {
  std::vector<double> losses;
  for (const StepReport& report : steps) losses.push_back(report.loss);
  return losses;
}

Reports ReportsOf(const JobSpec& spec) {
  Reports reports;
  const absl::StatusOr<JobResult> result = RunJob(spec, &reports);
  EXPECT_TRUE(result.ok()) << result.status();
  return reports;
}

std::string FreshFolder(const std::string& name) {
  const std::string path = absl::StrCat(
      testing::TempDir(), "/",
      absl::StrReplaceAll(
          testing::UnitTest::GetInstance()->current_test_info()->name(),
          {{"/", "_"}}),
      "_", name);
  base::PosixFileSystem files;
  files.RemoveAll(path).IgnoreError();  // an earlier run's
  EXPECT_TRUE(files.CreateFolder(path).ok()) << path;
  return path;
}

std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace troupe::actors
