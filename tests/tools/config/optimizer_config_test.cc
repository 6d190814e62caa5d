// Tests of the keys of losses, optimizers and schedules.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/tools/config/config_fixture.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/config/optimizer_kinds.h"
#include "tools/trainer/config/precision.h"

namespace troupe::tools {
namespace {

TEST(Config, ALearningRateFollowsItsSchedule) {
  const absl::StatusOr<LoadedConfig> loaded =
      ParseConfig(absl::StrCat(kShort,
                               "[optimizer]\nschedule = \"cosine\"\n"
                               "schedule_steps = 4\nmin_factor = 0.1\n"
                               "warmup_steps = 2\nwarmup_start = 0.5\n"),
                  "run.toml", {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const nn::LrSchedule& schedule = loaded->config.optimizer.common.schedule;
  EXPECT_EQ(schedule.Factor(0), 0.5);
  EXPECT_EQ(schedule.Factor(2), 1.0);
  EXPECT_DOUBLE_EQ(schedule.Factor(4), 0.55);
  EXPECT_EQ(schedule.Factor(6), 0.1);
}

// Returns the schedule of a run of `run_steps` steps.
nn::LrSchedule ScheduleOf(const std::string& lines, std::int64_t run_steps) {
  TrainerConfig config = Parsed(absl::StrCat(kShort, "[optimizer]\n", lines));
  SpanSchedule(run_steps, config);
  return config.optimizer.common.schedule;
}

TEST(Config, AScheduleSpansTheRunUnlessItsStepsAreSet) {
  for (const char* kind : {"cosine", "linear", "polynomial", "one_cycle"}) {
    const std::string lines = absl::StrCat("schedule = \"", kind, "\"\n");
    EXPECT_EQ(ScheduleOf(lines, 40).steps, 40) << kind;
    EXPECT_EQ(ScheduleOf(lines, 7).steps, 7) << kind;
    EXPECT_EQ(ScheduleOf(lines + "warmup_steps = 3\n", 40).steps, 37) << kind;
    EXPECT_EQ(ScheduleOf(lines + "schedule_steps = 5\n", 40).steps, 5) << kind;
    EXPECT_EQ(ScheduleOf(lines + "schedule_steps = 0\n", 40).steps, 40)
        << "--print-config writes this default";
  }
  const nn::LrSchedule cosine = ScheduleOf("schedule = \"cosine\"\n", 40);
  EXPECT_DOUBLE_EQ(cosine.Factor(20), 0.5);
  EXPECT_GT(cosine.Factor(39), 0);
  EXPECT_EQ(cosine.Factor(40), 0);
  // The warm-up alone takes longer than the run.
  EXPECT_EQ(ScheduleOf("schedule = \"linear\"\nwarmup_steps = 50\n", 40).steps,
            1);
}

TEST(Config, AScheduleNeedsTheKeysThatHaveNoDefault) {
  const auto wrong = [](const std::string& lines) {
    return ErrorOf(absl::StrCat(kShort, "[optimizer]\n", lines));
  };
  EXPECT_EQ(wrong("schedule = \"step\"\n"),
            "run.toml:4: optimizer.schedule = \"step\" needs "
            "optimizer.step_size; set it, to 1000 for example");
  EXPECT_EQ(wrong("schedule = \"multi_step\"\n"),
            "run.toml:4: optimizer.schedule = \"multi_step\" needs "
            "optimizer.milestones; set it, to [1000, 2000] for example");
  EXPECT_EQ(wrong("schedule = \"exponential\"\n"),
            "run.toml:4: optimizer.schedule = \"exponential\" needs "
            "optimizer.gamma; set it, to 0.999 for example");
  EXPECT_EQ(wrong("schedule = \"step\"\nstep_size = 10\n"), "");
  EXPECT_EQ(wrong("schedule = \"multi_step\"\nmilestones = [3]\n"), "");
  EXPECT_EQ(wrong("schedule = \"exponential\"\ngamma = 0.9\n"), "");
  EXPECT_EQ(wrong("schedule = \"cosine\"\n"), "");
  EXPECT_EQ(wrong("schedule = \"inverse_sqrt\"\n"), "");
}

// Goyal et al. 2017: the rate is proportional to the global batch, whatever the
// number of replicas.
TEST(Config, TheLearningRateScalesWithTheGlobalBatch) {
  const auto rate = [](const std::string& lines, const std::string& batch,
                       const std::string& dp) {
    const auto loaded = ParseConfig(
        absl::StrCat(kShort, "[optimizer]\nlr = 0.1\n", lines), "run.toml",
        {Set("train.global_batch_size", batch), Set("mesh.dp", dp)});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return ScaledLr(loaded->config);
  };
  const std::string linear =
      "lr_scaling = \"linear\"\nlr_base_batch_size = 256\n";
  const std::string sqrt = "lr_scaling = \"sqrt\"\nlr_base_batch_size = 256\n";
  for (const char* dp : {"1", "2", "4"}) {
    EXPECT_DOUBLE_EQ(rate("", "1024", dp), 0.1);
    EXPECT_DOUBLE_EQ(rate(linear, "1024", dp), 0.4);
    EXPECT_DOUBLE_EQ(rate(linear, "64", dp), 0.025);
    EXPECT_DOUBLE_EQ(rate(sqrt, "1024", dp), 0.2);
  }
}

TEST(Config, ScalingTheLearningRateNeedsABase) {
  const auto wrong = [](const std::string& lines) {
    return ErrorOf(absl::StrCat(kShort, "[optimizer]\n", lines));
  };
  EXPECT_EQ(wrong("lr_scaling = \"linear\"\n"),
            "run.toml:4: optimizer.lr_scaling = \"linear\" needs "
            "optimizer.lr_base_batch_size, the global batch size that "
            "optimizer.lr is for; set it, to 256 for example");
  EXPECT_EQ(wrong("lr_base_batch_size = 256\n"),
            "run.toml:4: optimizer.lr_base_batch_size is for "
            "optimizer.lr_scaling = \"linear\" or \"sqrt\"; set that, or "
            "remove the key");
  EXPECT_EQ(wrong("lr_scaling = \"none\"\nlr_base_batch_size = 0\n"), "");
}

TEST(Config, StochasticRoundingIsForBf16) {
  const auto config = [](const std::string& precision) {
    return absl::StrCat(kShort, "precision = \"", precision,
                        "\"\n[optimizer]\nstochastic_rounding = true\n");
  };
  for (const char* refused : {"f32", "f16"}) {
    EXPECT_EQ(ErrorOf(config(refused)),
              "run.toml:5: optimizer.stochastic_rounding is for "
              "train.precision = \"bf16\" or \"auto\"; set that, or remove the "
              "key");
  }
  EXPECT_EQ(ErrorOf(config("bf16")), "");
}

TEST(Config, LossScale) {
  const auto job = [](const std::string& lines) {
    return Parsed(absl::StrCat(kShort, lines)).job;
  };
  EXPECT_EQ(job("").loss_scale, 1);
  EXPECT_FALSE(job("").dynamic_loss_scale.has_value());
  EXPECT_EQ(job("loss_scale = 128").loss_scale, 128);
  EXPECT_EQ(job("loss_scale = 0.5").loss_scale, 0.5);
  EXPECT_FALSE(job("precision = \"bf16\"").dynamic_loss_scale.has_value());
  const std::string f16 = "precision = \"f16\"\n";
  EXPECT_EQ(job(f16).loss_scale, 65536);
  EXPECT_EQ(job(f16).dynamic_loss_scale.value().growth_interval, 2000);
  EXPECT_EQ(job(f16 + "loss_scale = 1").loss_scale, 1);
  EXPECT_FALSE(job(f16 + "loss_scale = 1").dynamic_loss_scale.has_value());
  const actors::JobSpec dynamic =
      job("loss_scale = \"dynamic\"\nloss_scale_init = 256\n"
          "loss_scale_growth_interval = 50\nloss_scale_min = 1\n");
  EXPECT_EQ(dynamic.loss_scale, 256);
  EXPECT_EQ(dynamic.dynamic_loss_scale.value().growth_interval, 50);
  EXPECT_EQ(dynamic.dynamic_loss_scale.value().min, 1);
}

TEST(Config, Precision) {
  const auto parsed = [](const std::string& precision) {
    return Parsed(absl::StrCat(kShort, "precision = \"", precision, "\"\n"));
  };
  EXPECT_EQ(parsed("bf16").job.dtype, nn::DType::kBF16);
  EXPECT_FALSE(IsPrecisionOpen(parsed("bf16")));
  TrainerConfig open = parsed("auto");
  EXPECT_EQ(open.job.dtype, nn::DType::kF32);
  EXPECT_TRUE(IsPrecisionOpen(open));
  SetPrecision(nn::DType::kF16, open);
  EXPECT_EQ(open.job.dtype, nn::DType::kF16);
  EXPECT_TRUE(open.job.dynamic_loss_scale.has_value());
}

TEST(Config, ALossScaleIsANumberOrAWord) {
  EXPECT_EQ(ErrorOf(absl::StrCat(kShort, "loss_scale = \"high\"\n")),
            "run.toml:3: train.loss_scale = \"high\": must be \"auto\", "
            "\"dynamic\" or a number above 0, such as 1024");
  EXPECT_EQ(ErrorOf(absl::StrCat(kShort, "loss_scale = 0\n")),
            "run.toml:3: train.loss_scale = 0: must be \"auto\", \"dynamic\" "
            "or a number above 0, such as 1024");
  EXPECT_EQ(ErrorOf(absl::StrCat(kShort, "loss_scale = true\n")),
            "run.toml:3: train.loss_scale = true: must be a number or a text, "
            "such as 1024");
  EXPECT_EQ(ErrorOf(kShort, {Set("train.loss_scale", "dynamic"),
                             Set("train.loss_scale_init", "1"),
                             Set("train.loss_scale_min", "4")}),
            "--set train.loss_scale_min: train.loss_scale_min = 4: must be "
            "above 0 and at most train.loss_scale_init = 1");
}

TEST(Config, ReductionDType) {
  const auto dtype = [](const std::string& line) {
    return Parsed(absl::StrCat(kShort, "[comm]\n", line))
        .job.plan.reduction_dtype;
  };
  EXPECT_EQ(dtype(""), std::nullopt);
  EXPECT_EQ(dtype("reduction_dtype = \"auto\""), std::nullopt);
  EXPECT_EQ(dtype("reduction_dtype = \"bf16\""), nn::DType::kBF16);
}

TEST(Config, Hook) {
  const auto hook = [](const std::string& line) {
    return Parsed(absl::StrCat(kShort, "[comm]\n", line)).job.hook.name;
  };
  EXPECT_EQ(hook(""), "");
  EXPECT_EQ(hook("hook = \"none\""), "");
  EXPECT_EQ(hook("hook = \"gather_bf16\""), "gather_bf16");
  EXPECT_EQ(ErrorOf(kShort, {Set("comm.hook", "half")}),
            "--set comm.hook: comm.hook = \"half\": must be one of \"none\", "
            "\"gather_bf16\", \"gather_f16\"");
}

TEST(Config, Optimizer) {
  EXPECT_EQ(ErrorOf(kShort, {Set("optimizer.nesterov", "true")}),
            "--set optimizer.nesterov: optimizer.nesterov = true must have "
            "optimizer.momentum above 0 and optimizer.dampening = 0");
}

TEST(Config, AnOptimizerHasDefaultsOfItsOwn) {
  const auto optimizer = [](const std::string& lines) {
    return Parsed(absl::StrCat(kShort, "[optimizer]\n", lines)).optimizer;
  };
  EXPECT_EQ(optimizer("").lr, 0.01);
  EXPECT_EQ(optimizer("kind = \"adam\"").lr, 1e-3);
  EXPECT_EQ(optimizer("kind = \"adam\"").weight_decay, 0);
  EXPECT_EQ(optimizer("kind = \"adamw\"").weight_decay, 0.01);
  EXPECT_EQ(optimizer("kind = \"adamw\"\nweight_decay = 0").weight_decay, 0);
  EXPECT_EQ(optimizer("kind = \"lamb\"").eps, 1e-6);
  EXPECT_EQ(optimizer("kind = \"lars\"").momentum, 0.9);
  EXPECT_EQ(optimizer("kind = \"adam\"\nbetas = [0.8, 0.9]").betas,
            (std::vector<double>{0.8, 0.9}));
  EXPECT_EQ(optimizer("no_decay = [\"*.bias\"]").no_decay,
            std::vector<std::string>{"*.bias"});
}

TEST(Config, AnOptimizerTakesItsOwnKeys) {
  const auto wrong = [](const std::string& lines) {
    return ErrorOf(absl::StrCat(kShort, "[optimizer]\n", lines));
  };
  EXPECT_EQ(wrong("kind = \"adam\"\nmomentum = 0.9\n"),
            "run.toml:5: optimizer.momentum is for optimizer.kind = \"sgd\" "
            "or \"lars\", and the kind is \"adam\"; remove it, or set that "
            "kind");
  EXPECT_EQ(wrong("betas = [0.9, 0.95]\n"),
            "run.toml:4: optimizer.betas is for optimizer.kind = \"adam\" or "
            "\"adamw\" or \"lamb\", and the kind is \"sgd\"; remove it, "
            "or set that kind");
  EXPECT_EQ(wrong("kind = \"adam\"\nbetas = [0.9]\n"),
            "run.toml:5: optimizer.betas must be two numbers, such as [0.9, "
            "0.999]");
  EXPECT_EQ(wrong("kind = \"adam\"\nbetas = [0.9, 1]\n"),
            "run.toml:5: optimizer.betas = 1: must be at least 0 and below 1");
  EXPECT_EQ(
      wrong("clip_grad_norm = 1\nclip_grad_value = 1\n"),
      "run.toml:5: optimizer.clip_grad_norm and "
      "optimizer.clip_grad_value are both set, and gradients are clipped by "
      "one; remove the other");
  // --print-config writes this default.
  EXPECT_EQ(wrong("kind = \"adam\"\nmomentum = 0\n"), "");
  EXPECT_EQ(wrong("kind = \"adagrad\"\n"),
            "run.toml:4: optimizer.kind = \"adagrad\": must be one of "
            "\"sgd\", \"adam\", \"adamw\", \"lamb\", \"lars\"");
}

TEST(Config, ALossSuitsTheData) {
  const auto wrong = [](const std::string& lines) {
    return ErrorOf(absl::StrCat(kShort, "[loss]\n", lines));
  };
  EXPECT_EQ(wrong(""), "");
  EXPECT_EQ(wrong("kind = \"l1\"\n"),
            "run.toml:4: loss.kind = \"l1\" is for samples with targets of "
            "numbers, and the data has classes; set loss.kind = "
            "\"cross_entropy\"");
  EXPECT_EQ(wrong("label_smoothing = 0.1\n"), "");
  EXPECT_EQ(wrong("label_smoothing = 1.5\n"),
            "run.toml:4: loss.label_smoothing must be from 0 to 1");
  EXPECT_EQ(wrong("reduction = \"sum\"\n"), "");
  EXPECT_EQ(wrong("reduction = \"none\"\n"),
            "run.toml:4: loss.reduction = \"none\": must be one of \"mean\", "
            "\"sum\"");
  EXPECT_EQ(wrong("delta = 2\n"),
            "run.toml:4: loss.delta is for loss.kind = \"huber\", and the kind "
            "is \"cross_entropy\"; remove it, or set that kind");
  EXPECT_EQ(wrong("class_weights = [1, 2.5]\n"),
            "run.toml:4: loss.class_weights has 2 numbers, and the model 10 "
            "outputs; write one for each");
  // A model may have more outputs than the data have classes.
  const std::string wide =
      "[data]\nkind = \"synthetic\"\nnum_classes = 3\n"
      "[model]\nkind = \"mlp\"\nnum_classes = 5\n";
  EXPECT_EQ(wrong("class_weights = [1, 2, 1, 1, 1]\n" + wide), "");
  EXPECT_EQ(wrong("class_weights = [1, 2, 1]\n" + wide),
            "run.toml:4: loss.class_weights has 3 numbers, and the model 5 "
            "outputs; write one for each");
  const std::string text =
      "[data]\nkind = \"tokens\"\nvocab_size = 2\npath = \"a.bin\"\n"
      "[model]\nkind = \"gpt_nano\"\nvocab_size = 4\n";
  EXPECT_EQ(wrong("class_weights = [1, 2, 0, 0]\n" + text), "");
  EXPECT_EQ(wrong("class_weights = [1, 2]\n" + text),
            "run.toml:4: loss.class_weights has 2 numbers, and the model 4 "
            "outputs; write one for each");
  const std::string numbers =
      "[data]\nkind = \"synthetic\"\nnum_classes = 0\n"
      "[model]\nkind = \"mlp\"\n";
  EXPECT_EQ(wrong("kind = \"huber\"\ndelta = 0.5\n" + numbers), "");
  EXPECT_EQ(wrong("kind = \"cross_entropy\"\n" + numbers),
            "run.toml:4: loss.kind = \"cross_entropy\" is for samples with "
            "classes, and the data has targets of numbers; set loss.kind = "
            "\"mse\"");
}

}  // namespace
}  // namespace troupe::tools
