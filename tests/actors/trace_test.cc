// A trace of two steps in which buckets are reduced while backward still runs.

#include "actors/trace.h"

#include <errno.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "actors/job.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "nn/models/models.h"
#include "tests/actors/test_job.h"
#include "tests/base/faulty_file_system.h"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

TEST(ChromeTraceTest, ShowsReductionsDuringBackward) {
  // Wide layers, so that backward lasts; a bucket per layer.
  JobSpec spec = TinyCnnJob(2, 12);
  spec.model = [] { return nn::MakeMlp({784, 512, 512, 512, 10}, {}); };
  spec.plan.inline_bytes = 0;
  spec.plan.buckets.first_bucket_bytes = spec.plan.buckets.bucket_bytes = 1024;
  ChromeTrace trace({/*first_step=*/9, /*steps=*/2});
  spec.trace = &trace;
  ASSERT_TRUE(RunJob(spec).ok());
  const std::string path = FreshFolder("trace") + "/trace.json";
  base::PosixFileSystem files;
  ASSERT_TRUE(trace.WriteFile(files, path).ok());
  const Json events = Json::parse(FileBytes(path))["traceEvents"];

  // Backward's end, by (rank, step); and what was launched before it.
  std::map<std::pair<int, int>, double> end;
  for (const Json& event : events) {
    if (event.value("name", "") == "B0" && event.value("ph", "") == "E") {
      end[{event["pid"], event["args"]["step"]}] = event["ts"];
    }
  }
  EXPECT_EQ(end.size(), 4u);  // two ranks, two steps
  int launched_during_backward = 0, flows = 0;
  for (const Json& event : events) {
    const std::string phase = event.value("ph", "");
    flows += phase == "s";
    if (event.value("cat", "") != "collective" || phase != "b") continue;
    if (!event["args"].contains("bucket")) continue;
    const double ends = end[{event["pid"], event["args"]["step"]}];
    launched_during_backward += event["ts"].get<double>() < ends;
  }
  EXPECT_GE(launched_during_backward, 4);
  EXPECT_GT(flows, 0);
}

// Handed over, reduced inline, and inline with the update in one pass.
TEST(ChromeTraceTest, EveryArrowEnds) {
  for (const std::int64_t inline_bytes : {0, 1 << 30}) {
    for (const bool fuse : {false, true}) {
      JobSpec spec = TinyCnnJob(2, 3);
      spec.plan.inline_bytes = inline_bytes;
      spec.plan.fuse_updates = fuse;
      ChromeTrace trace({/*first_step=*/1, /*steps=*/2});
      spec.trace = &trace;
      ASSERT_TRUE(RunJob(spec).ok());
      std::map<std::string, int> begins, ends;
      const Json document = Json::parse(trace.ToJson());
      for (const Json& event : document["traceEvents"]) {
        if (event["ph"] == "s") ++begins[event["id"].get<std::string>()];
        if (event["ph"] == "f") ++ends[event["id"].get<std::string>()];
      }
      EXPECT_EQ(begins.size(), 4u);  // two ranks, two steps, one bucket
      EXPECT_EQ(begins, ends) << inline_bytes << ", fused " << fuse;
    }
  }
}

TEST(ChromeTraceTest, KeepsOnlyItsSteps) {
  ChromeTrace trace({/*first_step=*/3, /*steps=*/2});
  EXPECT_FALSE(trace.Wants(0));
  EXPECT_FALSE(trace.Wants(1));
  EXPECT_TRUE(trace.Wants(2));
  EXPECT_TRUE(trace.Wants(3));
  EXPECT_FALSE(trace.Wants(4));
}

TEST(ChromeTraceTest, CountsFromWhereTheRunBegins) {
  ChromeTrace trace({/*first_step=*/3, /*steps=*/2});
  EXPECT_FALSE(trace.Wants(1000));
  EXPECT_FALSE(trace.Wants(1000));  // of another rank
  EXPECT_FALSE(trace.Wants(1001));
  EXPECT_TRUE(trace.Wants(1002));
  EXPECT_TRUE(trace.Wants(1003));
  EXPECT_FALSE(trace.Wants(1004));
}

TEST(ChromeTraceTest, OfAResumedJob) {
  JobSpec spec = TinyCnnJob(2, 6);
  spec.checkpoint.dir = FreshFolder("resumed");
  spec.checkpoint.resume = true;
  ASSERT_TRUE(RunJob(spec).ok());
  for (std::int64_t first_step : {2, 5}) {
    spec.steps += 4;
    ChromeTrace trace({first_step, /*steps=*/2});
    spec.trace = &trace;
    ASSERT_TRUE(RunJob(spec).ok());
    std::set<int> steps;
    const Json document = Json::parse(trace.ToJson());
    for (const Json& event : document["traceEvents"]) {
      const auto args = event.find("args");
      if (args == event.end() || !args->contains("step")) continue;
      steps.insert((*args)["step"].get<int>());
    }
    // Numbered as the log numbers them.
    EXPECT_EQ(steps, first_step == 2 ? std::set<int>({8, 9}) : std::set<int>());
    EXPECT_EQ(trace.IsEmpty(), first_step == 5);
  }
}

TEST(ChromeTraceTest, CountsWhatItDrops) {
  ChromeTrace trace({/*first_step=*/1, /*steps=*/1, /*events_max=*/2});
  TraceEvent event;
  event.name = "F0";
  for (int i = 0; i < 5; ++i) trace.Record(event);
  EXPECT_EQ(Json::parse(trace.ToJson())["otherData"]["dropped_events"], 3);
}

TEST(ChromeTraceTest, AFileThatCannotBeWrittenIsNamed) {
  const ChromeTrace trace({});
  base::FaultyFileSystem files;
  EXPECT_EQ(trace.WriteFile(files, "/nowhere/trace.json").message(),
            "cannot create /nowhere/trace.json: No such file or directory; "
            "check the path");
  const std::string path = testing::TempDir() + "/trace.json";
  files.FailAt(files.changes() + 1, ENOSPC);
  EXPECT_EQ(trace.WriteFile(files, path).message(),
            "cannot append " + path +
                ": No space left on device; free space there or write to "
                "another disk");
  EXPECT_TRUE(trace.WriteFile(files, path).ok());
  EXPECT_EQ(*base::ReadWholeFile(files, path, 1 << 20), trace.ToJson());
}

}  // namespace
}  // namespace troupe::actors
