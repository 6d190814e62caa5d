#include "tools/trainer/deepspeed/deepspeed_config.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "pipeline/plan_choices.h"
#include "tests/base/fresh_path.h"
#include "tests/tools/config/config_fixture.h"

namespace troupe::tools {
namespace {

using Map = std::map<std::string, std::string>;
using testing::ElementsAre;
using testing::IsEmpty;

Map SettingsOf(const std::string& json) {
  const auto config = ParseDeepSpeedConfig(json);
  EXPECT_TRUE(config.ok()) << config.status();
  Map settings;
  if (!config.ok()) return settings;
  for (const DeepSpeedSetting& s : config->settings) settings[s.key] = s.value;
  return settings;
}

std::string ErrorOfJson(const std::string& json) {
  const absl::Status status = ParseDeepSpeedConfig(json).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

constexpr char kWhole[] = R"({
  "train_batch_size": 64,
  "gradient_accumulation_steps": 4,
  "gradient_clipping": 1.5,
  "steps_per_print": 10,
  "zero_optimization": {"stage": 1, "overlap_comm": true,
                        "reduce_bucket_size": 5e8},
  "bf16": {"enabled": true},
  "fp16": {"enabled": false, "loss_scale_window": 1000},
  "optimizer": {"type": "AdamW", "params": {"lr": 0.003, "betas": [0.8, 0.95],
                "eps": 1e-7, "weight_decay": 0.125, "torch_adam": true}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_type": "linear",
                "warmup_min_lr": 0.001, "warmup_max_lr": 0.004,
                "warmup_num_steps": 20, "total_num_steps": 100}},
  "wall_clock_breakdown": false
})";

TEST(DeepSpeedConfig, WhatBothHaveIsTaken) {
  EXPECT_EQ(SettingsOf(kWhole),
            (Map{{"log.every", "10"},
                 {"optimizer.betas", "0.80000000000000004,0.94999999999999996"},
                 {"optimizer.clip_grad_norm", "1.5"},
                 {"optimizer.eps", "9.9999999999999995e-08"},
                 {"optimizer.kind", "adamw"},
                 {"optimizer.lr", "0.0040000000000000001"},
                 {"optimizer.min_factor", "0.25"},
                 {"optimizer.schedule", "linear"},
                 {"optimizer.schedule_steps", "80"},
                 {"optimizer.warmup_start", "0.25"},
                 {"optimizer.warmup_steps", "20"},
                 {"optimizer.weight_decay", "0.125"},
                 {"train.precision", "bf16"},
                 {"zero.stage", "1"}}));
  const auto config = ParseDeepSpeedConfig(kWhole);
  EXPECT_EQ(config->batches.train, 64);
  EXPECT_EQ(config->batches.accumulation, 4);
  EXPECT_THAT(
      config->ignored,
      ElementsAre("zero_optimization.overlap_comm",
                  "zero_optimization.reduce_bucket_size",
                  "optimizer.params.torch_adam", "wall_clock_breakdown"));
}

// Hugging Face's programs fill in what is "auto".
TEST(DeepSpeedConfig, AutoIsNotGiven) {
  constexpr char kAuto[] = R"({
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
    "gradient_clipping": "auto", "bf16": {"enabled": "auto"},
    "fp16": {"enabled": "auto", "loss_scale": 0},
    "zero_optimization": {"stage": "auto", "reduce_bucket_size": "auto"},
    "optimizer": {"type": "SGD", "params": {"lr": "auto", "betas": "auto"}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto",
                  "warmup_max_lr": "auto", "warmup_num_steps": "auto"}}})";
  EXPECT_EQ(SettingsOf(kAuto), (Map{{"optimizer.kind", "sgd"}}));
  const auto config = ParseDeepSpeedConfig(kAuto);
  EXPECT_FALSE(config->batches.any());
  EXPECT_THAT(config->ignored, IsEmpty());
  EXPECT_THAT(SettingsOf("{}"), IsEmpty());
}

// It counts parameters, the trainer's key their bytes.
TEST(DeepSpeedConfig, GathersAhead) {
  const auto ahead = [](const std::string& more) {
    return SettingsOf(absl::StrCat(
        R"({"zero_optimization": {"stage": 3,
            "stage3_prefetch_bucket_size": 5e7})",
        more, "}"))["zero.ahead_bytes"];
  };
  EXPECT_EQ(ahead(""), "200000000");
  EXPECT_EQ(ahead(R"(, "bf16": {"enabled": true})"), "100000000");
  EXPECT_EQ(ahead(R"(, "fp16": {"enabled": true})"), "100000000");
  EXPECT_EQ(SettingsOf(R"({"zero_optimization":
                           {"stage3_prefetch_bucket_size": 0}})"),
            (Map{{"zero.ahead_bytes", "0"}}));
  const auto rest = ParseDeepSpeedConfig(
      R"({"zero_optimization": {"stage3_prefetch_bucket_size": "auto",
          "stage3_max_live_parameters": 1e9}})");
  EXPECT_THAT(rest->settings, IsEmpty());
  EXPECT_THAT(rest->ignored,
              ElementsAre("zero_optimization.stage3_max_live_parameters"));
}

TEST(DeepSpeedConfig, KindsOfAdam) {
  const auto kind = [](const std::string& params) {
    return SettingsOf(
        absl::StrCat(R"({"optimizer": {"type": "Adam", "params": {)", params,
                     "}}}"))["optimizer.kind"];
  };
  EXPECT_EQ(kind(""), "adamw");
  EXPECT_EQ(kind(R"("adam_w_mode": true)"), "adamw");
  EXPECT_EQ(kind(R"("adam_w_mode": false)"), "adam");
}

TEST(DeepSpeedConfig, LossScales) {
  EXPECT_EQ(SettingsOf(R"({"fp16": {"enabled": true, "loss_scale": 0,
                "initial_scale_power": 4, "loss_scale_window": 500,
                "min_loss_scale": 2}})"),
            (Map{{"train.precision", "f16"},
                 {"train.loss_scale_init", "16"},
                 {"train.loss_scale_growth_interval", "500"},
                 {"train.loss_scale_min", "2"}}));
  EXPECT_EQ(SettingsOf(R"({"fp16": {"enabled": true, "loss_scale": 128,
                "initial_scale_power": 4}})"),
            (Map{{"train.precision", "f16"}, {"train.loss_scale", "128"}}));
}

TEST(DeepSpeedConfig, CosineBehindAWarmUp) {
  EXPECT_EQ(SettingsOf(R"({"scheduler": {"type": "WarmupCosineLR", "params": {
                "warmup_type": "linear", "warmup_num_steps": 5,
                "cos_min_ratio": 0.5, "total_num_steps": 9}}})"),
            (Map{{"optimizer.schedule", "cosine"},
                 {"optimizer.schedule_steps", "4"},
                 {"optimizer.min_factor", "0.5"},
                 {"optimizer.warmup_start", "0"},
                 {"optimizer.warmup_steps", "5"}}));
}

TEST(DeepSpeedConfig, ErrorsNameTheKey) {
  EXPECT_EQ(ErrorOfJson("{"),
            "the file is not valid JSON; write JSON as DeepSpeed takes it");
  EXPECT_EQ(ErrorOfJson("[1]"), "the file is no object; write it in { and }");
  EXPECT_EQ(ErrorOfJson(std::string(kDeepSpeedBytesMax + 1, ' ')),
            "the file has more than 1048576 bytes; shorten it");
  EXPECT_EQ(ErrorOfJson(R"({"train_batch_size": 1.5})"),
            "train_batch_size = 1.5 is no integer from 0 to 1e+15");
  EXPECT_EQ(ErrorOfJson(R"({"gradient_clipping": "much"})"),
            "gradient_clipping is no number; write one, or \"auto\"");
  EXPECT_EQ(ErrorOfJson(R"({"zero_optimization": 2})"),
            "zero_optimization must be an object, in { and }");
  EXPECT_EQ(ErrorOfJson(R"({"bf16": {"enabled": 1}})"),
            "bf16.enabled must be true, false or \"auto\"");
  EXPECT_EQ(
      ErrorOfJson(R"({"bf16": {"enabled": true}, "fp16": {"enabled": true}})"),
      "bf16.enabled and fp16.enabled are both true; set one");
  EXPECT_EQ(ErrorOfJson(R"({"optimizer": {"type": "OneBitAdam"}})"),
            "optimizer.type = \"OneBitAdam\" is not there; take \"Adam\", "
            "\"AdamW\", \"SGD\" or \"Lamb\"");
  EXPECT_EQ(ErrorOfJson(R"({"optimizer": {"params": {"betas": [1, 2, 3]}}})"),
            "optimizer.params.betas must be two numbers, in [ and ]");
  EXPECT_EQ(ErrorOfJson(R"({"scheduler": {"type": "WarmupLR"}})"),
            "scheduler.params.warmup_type is \"log\", by default too, which is "
            "not there; write \"linear\"");
  EXPECT_EQ(ErrorOfJson(R"({"scheduler": {"type": "WarmupDecayLR", "params": {
                "warmup_type": "linear", "warmup_num_steps": 9,
                "total_num_steps": 9}}})"),
            "scheduler.params.total_num_steps = 9 must be above the 9 steps of "
            "the warm-up");
  EXPECT_TRUE(absl::StartsWith(
      ErrorOfJson(R"({"scheduler": {"type": "OneCycle"}})"),
      "scheduler.type = \"OneCycle\" is not there; take \"WarmupLR\""));
}

TEST(DeepSpeedConfig, BatchSizesMultiply) {
  const auto complete = [](DeepSpeedBatches batches, int dp) {
    const auto all = CompleteBatches(batches, dp);
    if (!all.ok()) return std::string(all.status().message());
    return absl::StrCat(all->train, " ", all->micro, " ", all->accumulation);
  };
  EXPECT_EQ(complete({0, 4, 3}, 2), "24 4 3");
  EXPECT_EQ(complete({24, 0, 3}, 2), "24 4 3");
  EXPECT_EQ(complete({24, 4, 0}, 2), "24 4 3");
  EXPECT_EQ(complete({0, 4, 0}, 2), "8 4 1");
  EXPECT_EQ(complete({0, 0, 0}, 2), "0 0 0");
  // One size alone is cut into shares as that of a TOML file.
  EXPECT_EQ(complete({25, 0, 0}, 2), "25 0 0");
  EXPECT_EQ(complete({25, 4, 3}, 2),
            "train_batch_size = 25 is not train_micro_batch_size_per_gpu 4 x "
            "gradient_accumulation_steps 3 x mesh.dp 2; change one of them");
  EXPECT_EQ(complete({0, 0, 3}, 2),
            "gradient_accumulation_steps alone says no size of batches; give "
            "train_batch_size or train_micro_batch_size_per_gpu too");
}

// Random changes of a file give a configuration or an error, and nothing else.
TEST(DeepSpeedConfig, AnyTextIsReadOrRefused) {
  nn::RandomStream random(nn::RandomKey(/*seed=*/1, nn::Purpose::kTest), {});
  constexpr char kLetters[] = "{}[]\",:0e-9.atrufln\\\xff ";
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = kWhole;
    for (std::uint64_t i = random.Below(4); i > 0; --i) {
      const std::size_t at = random.Below(text.size());
      const char letter = kLetters[random.Below(sizeof(kLetters) - 1)];
      if (random.Below(2) == 0) {
        text[at] = letter;
      } else {
        text.erase(at, random.Below(8));
      }
    }
    const auto config = ParseDeepSpeedConfig(text);
    if (config.ok()) {
      ++read;
      EXPECT_TRUE(CompleteBatches(config->batches, 2).ok() ||
                  config->batches.any());
    } else {
      EXPECT_TRUE(absl::IsInvalidArgument(config.status()));
    }
  }
  EXPECT_GT(read, 100);
}

// The settings lie between those of the TOML file and of the command line.
class DeepSpeedSettings : public testing::Test {
 protected:
  void Write(const std::string& json) {
    ASSERT_TRUE(base::WriteWholeFile(files(), path_, json).ok());
  }
  absl::StatusOr<LoadedConfig> Load(const std::string& toml,
                                    Settings settings = {}) {
    settings.insert(settings.begin(),
                    {kDeepSpeedSetting, path_, "--deepspeed"});
    return ParseConfig(toml, "run.toml", settings, &files());
  }
  base::FileSystem& files() { return files_; }

  base::PosixFileSystem files_;
  const std::string path_ = base::FreshPath();
};

TEST_F(DeepSpeedSettings, LieBetweenFileAndCommandLine) {
  Write(R"({"train_micro_batch_size_per_gpu": 4,
            "gradient_accumulation_steps": 2, "gradient_clipping": 1,
            "optimizer": {"type": "AdamW", "params": {"lr": 0.5}},
            "amp": {}})");
  const auto loaded =
      Load("[train]\nsteps = 10\n[optimizer]\nlr = 0.25\neps = 0.125\n",
           {Set("optimizer.clip_grad_norm", "3"), Set("mesh.dp", "2")});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.optimizer.lr, 0.5);
  EXPECT_EQ(loaded->config.optimizer.eps, 0.125);
  EXPECT_EQ(loaded->config.optimizer.common.clip_grad_norm, 3);
  EXPECT_EQ(loaded->config.job.plan.global_batch_size, 16);
  EXPECT_EQ(loaded->config.job.plan.micro_batch_size, 4);
  EXPECT_EQ(loaded->Where("optimizer.lr"),
            absl::StrCat(path_, ": optimizer.params.lr"));
  EXPECT_THAT(loaded->notes,
              ElementsAre(absl::StrCat(path_, ": not taken: amp")));
  // A size of the command line takes the place of the file's.
  const auto other =
      Load(kShort, {Set("train.global_batch_size", "8"), Set("mesh.dp", "2")});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->config.job.plan.global_batch_size, 8);
  EXPECT_EQ(other->config.job.plan.micro_batch_size, 4);
}

TEST_F(DeepSpeedSettings, EachStageOfZeroIsTaken) {
  for (int stage = 0; stage <= pipeline::kZeroStageMax; ++stage) {
    Write(absl::StrCat(R"({"zero_optimization": {"stage": )", stage, "}}"));
    const auto loaded = Load(kShort);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->config.job.plan.zero_stage, stage);
  }
}

TEST_F(DeepSpeedSettings, ErrorsNameTheFile) {
  const auto error = [&] {
    return std::string(Load(kShort).status().message());
  };
  Write(R"({"zero_optimization": {"stage": 7}})");
  EXPECT_TRUE(absl::StartsWith(
      error(), absl::StrCat(path_, ": zero_optimization.stage: zero.stage")))
      << error();
  Write(R"({"gradient_clipping": []})");
  EXPECT_TRUE(absl::StartsWith(
      error(), absl::StrCat(path_, ": gradient_clipping is no number")))
      << error();
  Write(R"({"train_batch_size": 9, "train_micro_batch_size_per_gpu": 4})");
  EXPECT_TRUE(
      absl::StartsWith(error(), absl::StrCat(path_, ": train_batch_size = 9")))
      << error();
}

}  // namespace
}  // namespace troupe::tools
