#include "tools/trainer/run/json_log.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/file_system.h"
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

// --- Resumed runs ---

class ResumedJsonLogTest : public testing::Test {
 protected:
  ResumedJsonLogTest() {
    EXPECT_TRUE(files_.RemoveAll(path_).ok());
    EXPECT_TRUE(files_.RemoveAll(path_ + ".shorter").ok());
  }

  // Logs steps `first` + 1 to `last` of a run, with an evaluation at its end.
  void Run(std::int64_t first, std::int64_t last, bool resumed) {
    auto log = JsonLog::Open(files_, path_);
    ASSERT_TRUE(log.ok()) << log.status();
    StartEntry start;
    start.first_step = first;
    start.resumed = resumed;
    ASSERT_TRUE(log->OnStart(start).ok());
    for (std::int64_t step = first + 1; step <= last; ++step) {
      StepEntry entry = Entry();
      entry.step = step;
      ASSERT_TRUE(log->OnStep(entry).ok());
    }
    EvaluationEntry evaluation;
    evaluation.step = last;
    ASSERT_TRUE(log->OnEvaluation(evaluation).ok());
  }

  // Returns the steps of the lines, with an "e" behind those of evaluations.
  std::string Steps() {
    std::string text;
    const std::string lines =
        base::ReadWholeFile(files_, path_, 100'000'000).value();
    EXPECT_TRUE(lines.empty() || lines.back() == '\n');
    for (const absl::string_view line :
         absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
      const nlohmann::json json = nlohmann::json::parse(line);
      absl::StrAppend(&text, json["step"].get<std::int64_t>(),
                      json["kind"] == "evaluation" ? "e " : " ");
    }
    return text;
  }

  base::PosixFileSystem files_;
  const std::string path_ = ::testing::TempDir() + "/resumed.jsonl";
};

TEST_F(ResumedJsonLogTest, HasEachStepOnce) {
  Run(0, 5, /*resumed=*/false);
  Run(2, 7, /*resumed=*/true);
  EXPECT_EQ(Steps(), "1 2 3 4 5 6 7 7e ");
  Run(7, 8, /*resumed=*/true);
  EXPECT_EQ(Steps(), "1 2 3 4 5 6 7 7e 8 8e ");
  EXPECT_FALSE(files_.Exists(path_ + ".shorter"));
}

TEST_F(ResumedJsonLogTest, MayRepeatAllThatItHas) {
  Run(4, 6, /*resumed=*/true);  // another log had the steps before
  Run(3, 5, /*resumed=*/true);
  EXPECT_EQ(Steps(), "4 5 5e ");
}

TEST_F(ResumedJsonLogTest, DropsALineThatACrashCutOff) {
  Run(0, 3, /*resumed=*/false);
  auto file = files_.OpenToAppend(path_);
  ASSERT_TRUE((*file)->Append("{\"kind\":\"train\",\"st").ok());
  Run(3, 4, /*resumed=*/true);
  EXPECT_EQ(Steps(), "1 2 3 3e 4 4e ");
}

// A log may have several runs, one after the other. Only the last one's lines
// may be repeated.
TEST_F(ResumedJsonLogTest, LeavesAnotherRunAlone) {
  Run(0, 5, /*resumed=*/false);
  Run(0, 3, /*resumed=*/false);
  Run(2, 4, /*resumed=*/true);
  EXPECT_EQ(Steps(), "1 2 3 4 5 5e 1 2 3 4 4e ");
  Run(0, 1, /*resumed=*/false);
  EXPECT_EQ(Steps(), "1 2 3 4 5 5e 1 2 3 4 4e 1 1e ");
}

TEST_F(ResumedJsonLogTest, CutsALongLog) {
  Run(0, 20'000, /*resumed=*/false);  // longer than what is read at once
  Run(19'998, 20'001, /*resumed=*/true);
  const std::string steps = Steps();
  EXPECT_TRUE(absl::EndsWith(steps, " 19997 19998 19999 20000 20001 20001e "));
  EXPECT_TRUE(absl::StartsWith(steps, "1 2 3 "));
}

TEST_F(ResumedJsonLogTest, WritesToADevice) {
  auto log = JsonLog::Open(files_, "/dev/null");
  ASSERT_TRUE(log.ok()) << log.status();
  StartEntry start;
  start.first_step = 3;
  start.resumed = true;
  EXPECT_TRUE(log->OnStart(start).ok());
  EXPECT_TRUE(log->OnStep(Entry()).ok());
}

}  // namespace
}  // namespace troupe::tools
