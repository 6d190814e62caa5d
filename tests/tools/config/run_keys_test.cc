// Tests of the keys of what a run reports and stores.

#include "tools/trainer/config/run_keys.h"

#include "gtest/gtest.h"
#include "tests/tools/config/config_fixture.h"

namespace troupe::tools {
namespace {

TEST(RunKeys, TheBestCheckpointNeedsAFolderAndAMetric) {
  EXPECT_EQ(ErrorOf(kShort, {Set("checkpoint.keep_best", "true")}),
            "--set checkpoint.keep_best: checkpoint.keep_best is set but "
            "checkpoint.dir is not; write checkpoint.dir = \"checkpoints\", "
            "say");
  EXPECT_EQ(Parsed(kShort, {Set("checkpoint.best_metric", "eval_accuracy")})
                .job.checkpoint.best_metric,
            "eval_accuracy");
  EXPECT_NE(ErrorOf(kShort, {Set("checkpoint.best_metric", "loss")}), "");
}

TEST(RunKeys, AnEmptyFolderGoesOverWhatTheFileSaysOfCheckpoints) {
  const Setting none = Set("checkpoint.dir", "");
  const std::string file =
      std::string(kShort) + "[checkpoint]\ndir = \"kept\"\n";
  for (const char* line : {"replace = true\n", "resume = true\n", "every = 5\n",
                           "keep_best = true\nreplace = true\n"}) {
    const TrainerConfig config = Parsed(file + line, {none});
    EXPECT_EQ(config.job.checkpoint.dir, "");
    EXPECT_FALSE(config.replace_checkpoints || config.job.checkpoint.resume ||
                 config.job.checkpoint.keep_best);
    EXPECT_EQ(config.job.checkpoint.every, 0);
  }
  // Another folder leaves them as they are.
  const Setting other = Set("checkpoint.dir", "other");
  EXPECT_TRUE(
      Parsed(file + "replace = true\n", {none, other}).replace_checkpoints);
  // On the command line both were meant.
  EXPECT_EQ(ErrorOf(file, {Set("checkpoint.replace", "true"), none}),
            "--set checkpoint.replace: checkpoint.replace is set but "
            "checkpoint.dir is not; write checkpoint.dir = \"checkpoints\", "
            "say");
  EXPECT_EQ(
      ErrorOf(std::string(kShort) + "[checkpoint]\ndir = \"\"\nevery = 5\n"),
      "run.toml:5: checkpoint.every is set but checkpoint.dir is not; "
      "write checkpoint.dir = \"checkpoints\", say");
}

TEST(RunKeys, AnEarlyStopHasSensibleNumbers) {
  EXPECT_EQ(Parsed(kShort, {Set("train.early_stop_patience", "5")})
                .job.early_stop_patience,
            5);
  EXPECT_NE(ErrorOf(kShort, {Set("train.early_stop_patience", "-1")}), "");
  EXPECT_EQ(ErrorOf(kShort, {Set("train.early_stop_min_delta", "-0.5")}),
            "--set train.early_stop_min_delta: train.early_stop_min_delta = "
            "-0.5: must be a finite number of at least 0");
}

TEST(RunKeys, NumbersAreExposedOnlyWhereSomebodySaysSo) {
  EXPECT_EQ(Parsed(kShort, {Set("metrics.prometheus", "127.0.0.1:9400")})
                .metrics.prometheus,
            "127.0.0.1:9400");
  EXPECT_EQ(ErrorOf(kShort, {Set("metrics.prometheus", "0.0.0.0:9400")}),
            "--set metrics.prometheus: metrics.prometheus = \"0.0.0.0:9400\" "
            "can be reached from other machines, unencrypted and without a "
            "password; write \"127.0.0.1:9400\", or set "
            "metrics.prometheus_expose = true");
  EXPECT_EQ(Parsed(kShort, {Set("metrics.prometheus", "0.0.0.0:9400"),
                            Set("metrics.prometheus_expose", "true")})
                .metrics.prometheus,
            "0.0.0.0:9400");
  EXPECT_EQ(
      ErrorOf("[train]\nsteps = 1\n[metrics]\nprometheus = \"9400\"\n"),
      "run.toml:4: metrics.prometheus: \"9400\" is no address; write "
      "host:port, such as n1:29400 or [fd00::7]:29400, with a port from 1 to "
      "65535");
}

}  // namespace
}  // namespace troupe::tools
