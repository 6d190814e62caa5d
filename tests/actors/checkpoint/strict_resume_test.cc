// Tests that a job is resumed from a checkpoint of the same model and optimizer
// alone: otherwise the error lists the differences by name, unless options
// allow them.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/inference/inference_session.h"
#include "actors/job.h"
#include "base/field_error.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/modules/activation.h"
#include "nn/modules/dropout.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/cast.h"
#include "nn/ops/flatten.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using Names = std::vector<std::string>;

struct Variant {
  bool bias = true;
  double momentum = 0.9;
  std::int64_t width = 8;
  int layers = 1;  // number of hidden layers
};

class StrictResumeTest : public testing::TestWithParam<int> {
 protected:
  // Returns a job on GetParam() stages.
  JobSpec Job(const Variant& variant, std::int64_t steps) {
    JobSpec spec = TinyCnnJob(/*dp=*/1, steps);
    spec.test = nullptr;
    spec.model = [variant] {
      const nn::Linear::Options options = {variant.bias};
      auto model = std::make_unique<nn::Sequential>();
      model->Append<nn::Flatten>();
      std::int64_t width = 784;
      for (int i = 0; i < variant.layers; ++i) {
        model->Append<nn::Linear>(width, variant.width, options);
        width = variant.width;
      }
      model->Append<nn::Linear>(width, 10, options);
      return model;
    };
    spec.optimizer = [variant] {
      nn::SgdOptions sgd;
      sgd.lr = 0.05;
      sgd.momentum = variant.momentum;
      return std::make_unique<nn::Sgd>(sgd);
    };
    if (GetParam() > 1) {
      spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
      spec.plan.cuts = {2};
    }
    spec.checkpoint.dir = dir_;
    spec.checkpoint.keep = 1;
    spec.checkpoint.resume = true;
    return spec;
  }
  void Save(const Variant& variant) {
    dir_ = FreshFolder("saved");
    ASSERT_TRUE(RunJob(Job(variant, /*steps=*/2)).ok());
  }
  // Returns the error of resuming `spec`, without the path before it. Expects
  // that the checkpoints are unchanged.
  std::string Refused(const JobSpec& spec, const Names& fields) {
    const absl::Status status = RunJob(spec).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(base::FieldsOf(status), fields);
    EXPECT_EQ(FindLatestCheckpoint(files_, dir_).value(), SavedPath());
    const std::string message(status.message());
    const std::string begin =
        SavedPath() + " is of another model or optimizer; ";
    EXPECT_EQ(message.substr(0, begin.size()), begin);
    return message.substr(std::min(begin.size(), message.size()));
  }
  std::string SavedPath() const { return dir_ + "/step-00000002"; }
  Checkpoint Newest() {
    return *Checkpoint::Open(files_, *FindLatestCheckpoint(files_, dir_));
  }

  base::PosixFileSystem files_;
  std::string dir_;
};
INSTANTIATE_TEST_SUITE_P(Stages, StrictResumeTest, testing::Values(1, 2));

TEST_P(StrictResumeTest, WhatTheJobLacksIsUnexpected) {
  Save(Variant());
  Variant less;
  less.bias = false;
  JobSpec spec = Job(less, /*steps=*/4);
  EXPECT_EQ(Refused(spec, {"CheckpointOptions.allow_unexpected"}),
            "unexpected in the checkpoint: 1.bias, 2.bias, "
            "1.bias.momentum_buffer, 2.bias.momentum_buffer; go on with those "
            "that it was saved from, or set CheckpointOptions.allow_unexpected "
            "= true to go on without what is unexpected");
  spec.checkpoint.allow_missing = true;
  Refused(spec, {"CheckpointOptions.allow_unexpected"});
  spec.checkpoint.allow_unexpected = true;
  Reports reports;
  ASSERT_TRUE(RunJob(spec, &reports).ok());
  EXPECT_EQ(reports.info.unexpected,
            (Names{"1.bias", "2.bias", "1.bias.momentum_buffer",
                   "2.bias.momentum_buffer"}));
  EXPECT_EQ(reports.info.missing, Names{});
  EXPECT_EQ(Newest().ModelNames(), (Names{"1.weight", "2.weight"}));
}

TEST_P(StrictResumeTest, AnOptimizerWithoutMomentumLacksIt) {
  Save(Variant());
  Variant less;
  less.momentum = 0;
  const JobSpec spec = Job(less, /*steps=*/4);
  EXPECT_EQ(Refused(spec, {"CheckpointOptions.allow_unexpected"}).substr(0, 55),
            "unexpected in the checkpoint: 1.bias.momentum_buffer, 1");
}

TEST_P(StrictResumeTest, WhatTheCheckpointLacksIsMissing) {
  Variant less;
  less.momentum = 0;
  less.bias = false;
  Save(less);
  JobSpec spec = Job(Variant(), /*steps=*/4);
  EXPECT_EQ(Refused(spec, {"CheckpointOptions.allow_missing"}),
            "missing from the checkpoint: 1.bias, 2.bias, "
            "1.bias.momentum_buffer, 1.weight.momentum_buffer, "
            "2.bias.momentum_buffer, 2.weight.momentum_buffer; go on with "
            "those that it was saved from, or set "
            "CheckpointOptions.allow_missing = true to begin what is missing "
            "with initial values");
  spec.checkpoint.allow_missing = true;
  Reports reports;
  ASSERT_TRUE(RunJob(spec, &reports).ok());
  EXPECT_EQ(reports.info.missing.size(), 6u);
  EXPECT_EQ(reports.info.unexpected, Names{});
  EXPECT_EQ(Newest().OptimizerNames().size(), 4u);
}

// Hugging Face publishes small models in one file without an index.
TEST_P(StrictResumeTest, WithoutItsIndexAModelIsOneFile) {
  Save({});
  const std::string index = SavedPath() + "/model.safetensors.index.json";
  ASSERT_TRUE(files_.RemoveAll(index).ok());
  const absl::StatusOr<JobResult> result = RunJob(Job({}, /*steps=*/3));
  if (GetParam() == 1) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Newest().state().step, 3);
  } else {
    EXPECT_EQ(result.status(),
              absl::NotFoundError(
                  SavedPath() +
                  " has no model.safetensors.index.json, without which shards "
                  "of a model cannot be read; restore it from a copy or use an "
                  "earlier checkpoint"));
  }
}

TEST_P(StrictResumeTest, AnotherShapeIsRefusedInAnyCase) {
  Save(Variant());
  Variant other;
  other.width = 4;
  other.momentum = 0;
  JobSpec spec = Job(other, /*steps=*/4);
  spec.checkpoint.allow_missing = spec.checkpoint.allow_unexpected = true;
  EXPECT_EQ(Refused(spec, {}),
            "mismatched: 1.bias is f32[8], not f32[4], 1.weight is f32[8, "
            "784], not f32[4, 784], 2.weight is f32[10, 8], not f32[10, 4]; go "
            "on with those that it was saved from");
}

TEST_P(StrictResumeTest, FewerLayersAreAllOfThese) {
  Variant more;
  more.layers = 2;
  Save(more);
  const std::string error = Refused(Job(Variant(), /*steps=*/4),
                                    {"CheckpointOptions.allow_unexpected"});
  EXPECT_NE(error.find("unexpected in the checkpoint: 3.bias, 3.weight, "
                       "3.bias.momentum_buffer, 3.weight.momentum_buffer; "
                       "mismatched: 2.bias is f32[8], not f32[10], 2.weight "),
            std::string::npos)
      << error;
}

// A module that converts its input to another dtype.
class Cast : public nn::Module {
 public:
  explicit Cast(nn::DType to) : to_(to) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    return nn::ops::Cast(ctx, x, to_);
  }

 private:
  const nn::DType to_;
};

// An update copies the master values over the parameters, so missing ones are
// taken from the parameters.
TEST(StrictResumeMasterTest, MissingMasterValuesAreTheRestoredParameters) {
  const auto job = [dir = FreshFolder("saved")](std::int64_t steps,
                                                bool master) {
    JobSpec spec = TinyCnnJob(/*dp=*/1, steps);
    spec.test = nullptr;
    spec.model = [] {
      auto model = std::make_unique<nn::Sequential>();
      model->Append<nn::Flatten>();
      model->Append<Cast>(nn::DType::kBF16);
      model->Append<nn::Linear>(784, 10,
                                nn::Linear::Options{true, nn::DType::kBF16});
      model->Append<Cast>(nn::DType::kF32);
      return model;
    };
    spec.optimizer = [master] {
      nn::SgdOptions sgd;
      sgd.lr = master ? 0 : 0.5;
      sgd.common.f32_master = master;
      return std::make_unique<nn::Sgd>(sgd);
    };
    spec.checkpoint.dir = dir;
    spec.checkpoint.resume = true;
    spec.checkpoint.allow_missing = true;
    return spec;
  };
  const absl::StatusOr<JobResult> first = RunJob(job(2, /*master=*/false));
  ASSERT_TRUE(first.ok()) << first.status();
  Reports reports;
  const absl::StatusOr<JobResult> second =
      RunJob(job(3, /*master=*/true), &reports);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(reports.info.missing,
            (Names{"2.bias.master_value", "2.weight.master_value"}));
  EXPECT_EQ(FileBytes(second->checkpoint + "/model.safetensors"),
            FileBytes(first->checkpoint + "/model.safetensors"))
      << "the learning rate is 0";
}

// Two layers that share a weight, which has the name of the one that is
// declared first. The forward runs "x" before "y" in either case.
class TiedLayers : public nn::Module {
 public:
  explicit TiedLayers(bool y_first) {
    nn::Linear& first = Add<nn::Linear>(y_first ? "y" : "x", 784, 784);
    nn::Linear& second = Add<nn::Linear>(y_first ? "x" : "y", 784, 784);
    second.TieParameter("weight", first, "weight");
    x_ = y_first ? &second : &first;
    y_ = y_first ? &first : &second;
    head_ = &Add<nn::Linear>("head", 784, 10);
  }
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& images) override {
    return (*head_)(ctx, (*y_)(ctx, (*x_)(ctx, nn::ops::Flatten(ctx, images))));
  }

 private:
  nn::Linear *x_, *y_, *head_;
};

TEST(StrictResumeTiedTest, ASharedParameterMayHaveItsOtherName) {
  const auto job = [](const std::string& dir, std::int64_t steps,
                      bool y_first) {
    JobSpec spec = TinyCnnJob(/*dp=*/2, steps);  // its optimizer has momentum
    spec.test = nullptr;
    spec.model = [y_first] { return std::make_unique<TiedLayers>(y_first); };
    spec.checkpoint.dir = dir;
    spec.checkpoint.resume = true;
    return spec;
  };
  const Reports whole =
      ReportsOf(job(FreshFolder("whole"), /*steps=*/4, /*y_first=*/false));
  const std::string dir = FreshFolder("parts");
  ReportsOf(job(dir, /*steps=*/2, /*y_first=*/false));
  const Reports rest = ReportsOf(job(dir, /*steps=*/4, /*y_first=*/true));
  EXPECT_EQ(rest.info.missing, Names{});
  EXPECT_EQ(rest.info.unexpected, Names{});
  const std::vector<double> losses = whole.losses();
  ASSERT_EQ(losses.size(), 4u);
  EXPECT_EQ(rest.losses(),
            std::vector<double>(losses.begin() + 2, losses.end()));
  base::PosixFileSystem files;
  const Checkpoint newest = *Checkpoint::Open(files, rest.checkpoints.back());
  EXPECT_NE(newest.FindModel("y.weight"), nullptr) << "its own name from now";
  EXPECT_EQ(newest.FindModel("x.weight"), nullptr);
}

// --- The same tensors in another model ---

template <typename Activation>
std::unique_ptr<nn::Module> Activated() {
  auto model = std::make_unique<nn::Sequential>();
  model->Append<nn::Flatten>();
  model->Append<nn::Linear>(784, 8);
  model->Append<Activation>();
  model->Append<nn::Linear>(8, 10);
  return model;
}

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() : dir_(FreshFolder("settings")) {}

  JobSpec Job(std::int64_t steps) {
    JobSpec spec = TinyCnnJob(/*dp=*/1, steps);
    spec.test = nullptr;
    spec.model = Activated<nn::ReLU>;
    spec.settings = {{"loss.kind", "cross_entropy"}, {"optimizer.lr", "0.1"}};
    spec.fixed_settings = {"loss.kind"};
    spec.checkpoint.dir = dir_;
    spec.checkpoint.resume = true;
    return spec;
  }
  void SetUp() override { ASSERT_TRUE(RunJob(Job(2)).ok()); }
  std::string Refused(const JobSpec& spec) {
    const absl::Status status = RunJob(spec).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(base::FieldsOf(status),
              (Names{"CheckpointOptions.allow_changed"}));
    return std::string(status.message());
  }

  const std::string dir_;
};

constexpr char kAllow[] =
    "; go on with the same one, or set CheckpointOptions.allow_changed = true "
    "to train these tensors as another model";

TEST_F(SettingsTest, AnotherActivationIsRefused) {
  JobSpec spec = Job(4);
  spec.model = Activated<nn::Tanh>;
  EXPECT_EQ(Refused(spec),
            dir_ +
                "/step-00000002 was written by a run whose module 2 was "
                "nn::ReLU; this job's is nn::Tanh" +
                kAllow);
  spec.model = [] {
    auto model = Activated<nn::ReLU>();
    static_cast<nn::Sequential&>(*model).Append<nn::Tanh>();
    return model;
  };
  EXPECT_EQ(Refused(spec),
            dir_ +
                "/step-00000002 was written by a run whose module 4 was "
                "none; this job's is nn::Tanh" +
                kAllow);
  spec.checkpoint.allow_changed = true;
  const Reports reports = ReportsOf(spec);
  EXPECT_EQ(reports.info.setting_changes, (Names{"module 4: none, nn::Tanh"}));
}

TEST_F(SettingsTest, AFixedSettingIsRefused) {
  JobSpec spec = Job(4);
  spec.settings["loss.kind"] = "mse";
  EXPECT_EQ(Refused(spec),
            dir_ +
                "/step-00000002 was written by a run whose loss.kind was "
                "cross_entropy; this job's is mse" +
                kAllow);
}

TEST_F(SettingsTest, OthersAreReportedAndTrainOn) {
  JobSpec spec = Job(4);
  spec.settings["optimizer.lr"] = "0.02";
  spec.settings["optimizer.of_a_later_version"] = "1";
  EXPECT_EQ(ReportsOf(spec).info.setting_changes,
            (Names{"optimizer.lr: 0.1, 0.02"}));
  EXPECT_EQ(ReportsOf(Job(4)).info.setting_changes,
            (Names{"optimizer.lr: 0.02, 0.1"}));
}

// A dropout has no tensors, and comes and goes between runs.
TEST_F(SettingsTest, DropoutsAreNotCompared) {
  JobSpec spec = Job(4);
  spec.model = [] {
    auto model = Activated<nn::ReLU>();
    static_cast<nn::Sequential&>(*model).Append<nn::Dropout>(0.5);
    return model;
  };
  EXPECT_EQ(ReportsOf(spec).info.setting_changes, Names{});
}

TEST_F(SettingsTest, ACheckpointOfAnEarlierVersionHasNone) {
  base::PosixFileSystem files;
  const std::string path = dir_ + "/step-00000002/trainer_state.json";
  TrainerState state =
      Checkpoint::Open(files, dir_ + "/step-00000002").value().state();
  EXPECT_EQ(state.settings.at("module 2"), "nn::ReLU");
  state.settings.clear();
  ASSERT_TRUE(
      base::WriteWholeFile(files, path, FormatTrainerState(state)).ok());
  JobSpec spec = Job(4);
  spec.model = Activated<nn::Tanh>;
  EXPECT_EQ(ReportsOf(spec).info.setting_changes, Names{});
}

TEST_F(SettingsTest, ATrainedModelIsComparedToo) {
  base::PosixFileSystem files;
  const std::string path = dir_ + "/step-00000002";
  JobSpec spec = Job(2);
  spec.settings["loss.kind"] = "mse";
  EXPECT_TRUE(InferenceSession::Open(spec, *Checkpoint::Open(files, path)).ok())
      << "it has no loss";
  spec.model = Activated<nn::Tanh>;
  EXPECT_EQ(InferenceSession::Open(spec, *Checkpoint::Open(files, path))
                .status()
                .message(),
            path +
                " was written by a run whose module 2 was nn::ReLU; this job's "
                "is nn::Tanh; take the model that it was saved of");
}

}  // namespace
}  // namespace troupe::actors
