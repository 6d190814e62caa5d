#include "actors/inference/export_model.h"

#include <cstring>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "actors/checkpoint/load_model.h"
#include "actors/inference/predict.h"
#include "actors/job.h"
#include "base/files/file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/open_kernels.h"
#include "nn/models/models.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/weight_file.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

// A model that a test has trained in two stages, and the test's folder.
struct Trained {
  Trained() : folder(FreshFolder("run")) {
    spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
    spec.plan.cuts = {6};
    spec.checkpoint.dir = folder;
    EXPECT_TRUE(RunJob(spec).ok());
  }
  std::string File(const std::string& name) const {
    return base::JoinPath(folder, name);
  }

  const std::string folder;
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/2);
};

TEST(ExportModelTest, WritesTheStagesIntoOneFile) {
  const Trained trained;
  const std::string path = trained.File("model.safetensors");
  ASSERT_EQ(ExportModel(trained.spec, path), absl::OkStatus());
  base::PosixFileSystem files;
  const auto weights = nn::WeightFile::Open(files, path);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const std::unique_ptr<nn::Module> model = trained.spec.model();
  EXPECT_EQ(weights->CheckStrict(*model), absl::OkStatus());
  const auto file = nn::SafetensorsFile::Open(files, path);
  EXPECT_EQ(file->metadata().at("format"), "pt");
}

TEST(ExportModelTest, WritesWhatTheModelAnswers) {
  const Trained trained;
  const std::string path = trained.File("answers.safetensors");
  ASSERT_EQ(ExportAnswers(trained.spec, /*samples=*/3, path), absl::OkStatus());
  base::PosixFileSystem files;
  const auto kernels = *nn::OpenKernels(nn::Device(), /*options=*/{});
  const auto file = nn::SafetensorsFile::Open(files, path);
  ASSERT_TRUE(file.ok()) << file.status();
  const nn::Tensor input = *file->Read("input", kernels->allocator());
  const nn::Tensor output = *file->Read("output", kernels->allocator());
  EXPECT_EQ(input.shape(), nn::Shape({3, 28, 28, 1}));
  ASSERT_EQ(output.shape(), nn::Shape({3, 10}));

  // Computes the output again, for the second sample alone.
  const std::unique_ptr<nn::Module> model = trained.spec.model();
  ASSERT_EQ(LoadModel(*OpenCheckpoint(files, trained.folder), *model, *kernels),
            absl::OkStatus());
  const auto seen =
      Predict(*model, *kernels, *trained.spec.test, {1}, nn::DType::kF32);
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(std::memcmp(seen->input.raw(), input.Slice(1, 2).raw(),
                        seen->input.bytes()),
            0);
  for (int i = 0; i < 10; ++i) {
    EXPECT_NEAR(seen->output.data<float>()[i], output.data<float>()[10 + i],
                1e-5);
  }
}

TEST(ExportModelTest, SaysWhatIsWrong) {
  const Trained trained;
  const std::string path = trained.File("answers.safetensors");
  EXPECT_EQ(ExportAnswers(trained.spec, /*samples=*/71, path).code(),
            absl::StatusCode::kOutOfRange);  // the dataset has 70 samples

  JobSpec other = trained.spec;
  other.model = [] { return *nn::MakeLeNet({28, 28, 1}, 9, {}); };
  const absl::Status unlike = ExportAnswers(other, /*samples=*/1, path);
  EXPECT_EQ(unlike.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unlike.message()), HasSubstr("\"11.weight\""));

  other.checkpoint.dir = trained.File("nowhere");
  const absl::Status missing = ExportModel(other, path);
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("nowhere"));
  EXPECT_THAT(
      std::string(ExportModel(trained.spec, trained.File("no/such")).message()),
      HasSubstr("no/such"));
}

TEST(PredictTest, NamesTheModuleThatDoesNotTakeTheSamples) {
  const Trained trained;
  base::PosixFileSystem files;
  const auto kernels = *nn::OpenKernels(nn::Device(), /*options=*/{});
  const std::unique_ptr<nn::Module> model = trained.spec.model();
  ASSERT_EQ(LoadModel(*OpenCheckpoint(files, trained.folder), *model, *kernels),
            absl::OkStatus());
  // A model in f32 gets inputs in bf16.
  const absl::Status status =
      Predict(*model, *kernels, *trained.spec.test, {0}, nn::DType::kBF16)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "in module 0: conv2d takes x[N, H, W, C] and w[O, C, R, S] of one "
            "dtype, got bf16[1, 28, 28, 1] and f32[6, 1, 5, 5]");
}

}  // namespace
}  // namespace troupe::actors
