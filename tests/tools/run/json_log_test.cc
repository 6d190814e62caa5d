#include "tools/trainer/run/json_log.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/file_system.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace troupe::tools {
namespace {

StepEntry Entry() {
  StepEntry entry;
  entry.step = 100;
  entry.epoch = 2;
  entry.loss = 0.5;
  entry.accuracy = 0.9375;
  entry.samples_per_s = 1234.5;
  entry.lr = 0.1;
  entry.peak_bytes = 4096;
  entry.time = absl::FromUnixMillis(1767323045678);
  return entry;
}

TEST(JsonLog, AStep) {
  EXPECT_EQ(FormatStepJson(Entry()),
            R"({"kind":"train","step":100,"epoch":2,"loss":0.5,)"
            R"("accuracy":0.9375,"samples_per_s":1234.5,"lr":0.1,)"
            R"("peak_bytes":4096,)"
            R"("time":"2026-01-02T03:04:05.678Z"})");
}

TEST(JsonLog, AStepWithADynamicLossScale) {
  StepEntry entry = Entry();
  entry.loss_scale = 32768;
  entry.skipped_steps = 3;
  const nlohmann::json json = nlohmann::json::parse(FormatStepJson(entry));
  EXPECT_EQ(json["loss_scale"], 32768);
  EXPECT_EQ(json["skipped_steps"], 3);
}

TEST(JsonLog, TheNormOfGradientsWhereTheyAreClipped) {
  StepEntry entry = Entry();
  entry.grad_norm = 2.5;
  const std::string line = FormatStepJson(entry);
  EXPECT_NE(line.find(R"("lr":0.1,"grad_norm":2.5,"peak_bytes")"),
            std::string::npos)
      << line;
  entry.grad_norm = std::nan("");
  const nlohmann::json json = nlohmann::json::parse(FormatStepJson(entry));
  EXPECT_EQ(json["grad_norm_text"], "nan");
}

TEST(JsonLog, AnEvaluation) {
  EvaluationEntry entry;
  entry.step = 100;
  entry.loss = 0.25;
  entry.count = 2048;
  entry.time = Entry().time;
  EXPECT_EQ(FormatEvaluationJson(entry),
            R"({"kind":"evaluation","step":100,"loss":0.25,"count":2048,)"
            R"("time":"2026-01-02T03:04:05.678Z"})");
}

TEST(JsonLog, NumbersThatJsonLacks) {
  const double inf = std::numeric_limits<double>::infinity();
  for (const auto& [loss, text] :
       {std::pair(std::nan(""), "nan"), std::pair(inf, "inf"),
        std::pair(-inf, "-inf")}) {
    StepEntry entry = Entry();
    entry.loss = loss;
    const nlohmann::json json = nlohmann::json::parse(FormatStepJson(entry));
    EXPECT_TRUE(json["loss"].is_null());
    EXPECT_EQ(json["loss_text"], text);
  }
}

TEST(JsonLog, LinesAreAppendedInAFolderOfTheirOwn) {
  base::PosixFileSystem files;
  const std::string folder = ::testing::TempDir() + "/json_log";
  ASSERT_TRUE(files.RemoveAll(folder).ok());
  for (const char* line : {"{\"a\":1}", "{\"a\":2}"}) {
    auto log = JsonLog::Open(files, folder + "/deep/log.jsonl");
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE(log->Write(line).ok());
  }
  EXPECT_EQ(
      base::ReadWholeFile(files, folder + "/deep/log.jsonl", 1000).value(),
      "{\"a\":1}\n{\"a\":2}\n");
}

}  // namespace
}  // namespace troupe::tools
