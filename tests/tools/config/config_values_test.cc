#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {
namespace {

std::string Formatted(const char* name, const std::string& text) {
  TrainerConfig config;
  const ConfigKey* key = FindKey(name);
  const absl::Status status = SetFromText(*key, text, config);
  return status.ok() ? FormatValue(*key, config)
                     : std::string(status.message());
}

TEST(ConfigKeys, NamesAreUniqueAndInTheirSections) {
  std::set<std::string> names;
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_EQ(FindKey(key.name), &key);
    bool known = false;
    for (const ConfigSection& s : ConfigSections()) {
      known |= key.section() == s.name;
    }
    EXPECT_TRUE(known) << key.name;
  }
  EXPECT_EQ(FindKey("train.nothing"), nullptr);
}

// Each default and each example is a valid value of its key.
TEST(ConfigKeys, DefaultsAndExamplesAreValid) {
  for (const ConfigKey& key : ConfigKeys()) {
    TrainerConfig config;
    const std::string fresh = FormatValue(key, TrainerConfig());
    const absl::Status as_default = SetFromText(key, fresh, config);
    EXPECT_TRUE(as_default.ok()) << key.name << ": " << as_default;
    EXPECT_EQ(FormatValue(key, config), fresh) << key.name;
    const absl::Status status = SetFromText(key, key.example, config);
    EXPECT_TRUE(status.ok()) << key.name << ": " << status;
    EXPECT_STRNE(key.help, "");
  }
}

TEST(ConfigKeys, ValuesAreThoseThatAreAccepted) {
  const auto values = [](const char* name) { return FindKey(name)->Values(); };
  EXPECT_EQ(values("loss.reduction"), "\"mean\", \"sum\"");
  EXPECT_EQ(values("comm.reduction_dtype"),
            "\"auto\", \"f32\", \"bf16\", \"f16\"");
  EXPECT_EQ(values("train.threads_per_rank"), "integer, 1 to 1024");
  EXPECT_EQ(values("train.seed"), "integer, at least 0");
  EXPECT_EQ(values("model.depth"), "integer, at most 1000");
  EXPECT_EQ(values("comm.bucket_bytes"), "size");
  EXPECT_EQ(values("comm.inline_bytes"), "size or \"auto\"");
  EXPECT_EQ(values("checkpoint.resume"), "true or false");
  EXPECT_EQ(values("train.loss_scale"), "number or text");
  EXPECT_EQ(values("checkpoint.dir"), "text");
}

// An error in the path to a field would set the field of another key.
TEST(ConfigKeys, EachSetsAFieldOfItsOwn) {
  for (const ConfigKey& key : ConfigKeys()) {
    TrainerConfig config;
    ASSERT_TRUE(SetFromText(key, key.example, config).ok()) << key.name;
    for (const ConfigKey& other : ConfigKeys()) {
      if (&other == &key) continue;
      EXPECT_EQ(FormatValue(other, config), FormatValue(other, TrainerConfig()))
          << key.name << " sets " << other.name;
    }
  }
}

TEST(ConfigKeys, FieldsHaveTheNamesThatErrorsUse) {
  EXPECT_EQ(FindKey("train.steps")->field.name(), "JobSpec.steps");
  EXPECT_EQ(FindKey("comm.bucket_bytes")->field.name(),
            "BucketOptions.bucket_bytes");
  EXPECT_EQ(FindKey("optimizer.lr")->field.name(), "OptimizerConfig.lr");
}

TEST(ConfigValues, ReadBackAsWritten) {
  EXPECT_EQ(Formatted("data.path", "a\"b\\c\td"), "\"a\\\"b\\\\c\\u0009d\"");
  EXPECT_EQ(Formatted("data.path", "\"quoted\""), "\"quoted\"");
  EXPECT_EQ(Formatted("optimizer.lr", "0.1"), "0.1");
  EXPECT_EQ(Formatted("optimizer.lr", "1e-7"), "1e-07");
  EXPECT_EQ(Formatted("optimizer.lr", "0.30000000000000004"),
            "0.30000000000000004");
  EXPECT_EQ(Formatted("model.bias", "false"), "false");
  EXPECT_EQ(Formatted("model.widths", "[120, 84]"), "[120, 84]");
  EXPECT_EQ(Formatted("model.widths", "7"), "[7]");
  EXPECT_EQ(Formatted("mesh.cuts", "[]"), "[]");
  EXPECT_EQ(Formatted("mesh.cuts", "3"), "[3]");
  EXPECT_EQ(Formatted("mesh.cuts", "3, features.4"), "[3, \"features.4\"]");
  EXPECT_EQ(Formatted("mesh.cuts", "[\"3\", 1.2]"), "[\"3\", \"1.2\"]");
  EXPECT_EQ(Formatted("mesh.cuts", "[fc1, 0]"),
            "mesh.cuts = [\"fc1\", 0]: must be at least 1, such as [3, \"7\"]");
  EXPECT_EQ(Formatted("mesh.cuts", "3,,5"),
            "mesh.cuts = \"3,,5\": must be a list of whole numbers and texts, "
            "such as [3, \"7\"]");
  EXPECT_EQ(Formatted("train.seed", "9007199254740993"),
            "train.seed = 9007199254740993: must be at most 1e+15, such as 42");
}

TEST(ConfigValues, Sizes) {
  EXPECT_EQ(Formatted("comm.bucket_bytes", "1048576"), "\"1MiB\"");
  EXPECT_EQ(Formatted("comm.bucket_bytes", "1536KiB"), "\"1536KiB\"");
  EXPECT_EQ(Formatted("comm.bucket_bytes", "2GiB"), "\"2GiB\"");
  EXPECT_EQ(Formatted("comm.bucket_bytes", "3MB"), "3000000");
  EXPECT_EQ(Formatted("comm.bucket_bytes", "5 kB"), "5000");
  EXPECT_EQ(Formatted("comm.bucket_bytes", "9B"), "9");
  EXPECT_EQ(Formatted("comm.inline_bytes", "auto"), "\"auto\"");
  EXPECT_EQ(Formatted("comm.inline_bytes", "0"), "0");
  EXPECT_EQ(Formatted("comm.bucket_bytes", "auto"),
            "comm.bucket_bytes = \"auto\": must be a size in bytes, such as "
            "\"4MiB\"");
  EXPECT_EQ(Formatted("comm.bucket_bytes", "99999999999GiB"),
            "comm.bucket_bytes = \"99999999999GiB\": must be a size in bytes, "
            "such as \"4MiB\"");
  EXPECT_EQ(Formatted("comm.bucket_bytes", "-1"),
            "comm.bucket_bytes = -1: must be at least 1, such as \"4MiB\"");
  EXPECT_EQ(Formatted("comm.inline_bytes", "-1"),
            "comm.inline_bytes = -1: must be at least 0, such as \"64KiB\"");
}

// Every key whose value is a path, by its unit.
TEST(ConfigValues, PathsHaveNeitherTildeNorNul) {
  std::vector<std::string> paths;
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.rule.unit != KeyUnit::kPath) continue;
    paths.emplace_back(key.name);
    TrainerConfig config;
    EXPECT_EQ(SetFromText(key, "~/kept", config),
              absl::InvalidArgumentError(absl::StrCat(
                  key.name,
                  " = \"~/kept\": must have the home folder written out ($HOME "
                  "on a command line), since only a shell reads \"~\"; a name "
                  "that begins so is \"./~\", such as ",
                  key.example)));
    EXPECT_FALSE(SetFromText(key, "~", config).ok()) << key.name;
    EXPECT_FALSE(SetFromText(key, "~else/runs", config).ok()) << key.name;
    EXPECT_EQ(SetValue(key, std::string("before\0after", 12), config),
              absl::InvalidArgumentError(absl::StrCat(
                  key.name,
                  " = \"before\\u0000after\": must be a path without a NUL, "
                  "such as ",
                  key.example)));
    for (const std::string& cut :
         {std::string("\0", 1), std::string("kept\0", 5),
          std::string("/data/\0\0/a", 10)}) {
      EXPECT_FALSE(SetValue(key, cut, config).ok()) << key.name;
    }
    EXPECT_TRUE(SetFromText(key, "./~kept/a~b", config).ok()) << key.name;
    EXPECT_TRUE(SetFromText(key, "", config).ok()) << key.name;
  }
  EXPECT_EQ(paths, (std::vector<std::string>{
                       "model.init_from", "data.path", "data.sample_weights",
                       "data.tokenizer_path", "train.kernel_cache",
                       "mesh.schedule_file", "checkpoint.dir", "log.run_dir",
                       "log.file", "log.tensorboard", "trace.file"}));
}

TEST(ConfigValues, AfterAnErrorTheFieldIsAsBefore) {
  TrainerConfig config;
  config.job.seed = 5;
  EXPECT_FALSE(SetFromText(*FindKey("train.seed"), "-1", config).ok());
  EXPECT_EQ(config.job.seed, 5);
}

TEST(NearestKey, WhatPeopleWrite) {
  EXPECT_EQ(NearestKey("train.global_batch"), "train.global_batch_size");
  EXPECT_EQ(NearestKey("train.epoch"), "train.epochs");
  EXPECT_EQ(NearestKey("model.lr"), "optimizer.lr");
  EXPECT_EQ(NearestKey("optim.momentun"), "optimizer.momentum");
  EXPECT_EQ(NearestKey("checkpoint.directory"), "");
  EXPECT_EQ(NearestKey("x"), "");
  EXPECT_EQ(NearestSection("optim"), "");
  EXPECT_EQ(NearestSection("Train"), "train");
}

TEST(KeyAdvice, AccumulationIsAQuotientOfBatchSizes) {
  const std::string advice = KeyAdvice("train.gradient_accumulation_steps");
  EXPECT_NE(advice.find("train.micro_batch_size"), std::string::npos) << advice;
  EXPECT_EQ(advice.find("there is no key train.gradient_accumulation_steps: "),
            0u)
      << advice;
  EXPECT_NE(KeyAdvice("accumulate_grad_batches"), "");
  EXPECT_NE(KeyAdvice("data.batch_size"), "");
  EXPECT_EQ(KeyAdvice("train.stepz"), "");
}

}  // namespace
}  // namespace troupe::tools
