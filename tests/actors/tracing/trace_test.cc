// Tests a trace of two steps in which buckets are reduced while backward still
// runs.

#include "actors/tracing/trace.h"

#include <errno.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "actors/job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "nn/models/models.h"
#include "tests/actors/test_job.h"
#include "tests/actors/tracing/trace_importer.h"
#include "tests/base/faulty_file_system.h"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

TEST(ChromeTraceTest, ShowsReductionsDuringBackward) {
  // The layers are wide, so that backward takes long; each has a bucket.
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
  const ImportedTrace imported = ImportTrace(FileBytes(path));
  EXPECT_EQ(imported.problems, "");

  // End of backward, by (rank, step).
  std::map<std::pair<char, std::int64_t>, double> end;
  for (const ImportedSlice& slice : imported.slices) {
    if (!absl::EndsWith(slice.where, "/compute/B0")) continue;
    end[{slice.where[0], slice.step}] = slice.end;
  }
  EXPECT_EQ(end.size(), 4u);  // two ranks, two steps
  int launched_during_backward = 0;
  for (const ImportedSlice& slice : imported.slices) {
    if (!absl::StrContains(slice.where, "/AR")) continue;
    launched_during_backward += slice.begin < end[{slice.where[0], slice.step}];
  }
  EXPECT_GE(launched_during_backward, 4);
}

// Reductions are handed over, inline, or inline with the update in one pass.
TEST(ChromeTraceTest, ArrowsLeadFromBucketsToTheirUpdates) {
  for (const std::int64_t inline_bytes : {0, 1 << 30}) {
    for (const bool fuse : {false, true}) {
      JobSpec spec = TinyCnnJob(2, 3);
      spec.plan.inline_bytes = inline_bytes;
      spec.plan.fuse_updates = fuse;
      ChromeTrace trace({/*first_step=*/1, /*steps=*/2});
      spec.trace = &trace;
      ASSERT_TRUE(RunJob(spec).ok());
      const ImportedTrace imported = ImportTrace(trace.ToJson());
      EXPECT_EQ(imported.problems, "");
      using Arrows = std::map<std::pair<std::string, std::string>, int>;
      // Two ranks, two steps, one bucket.
      const Arrows in_two = {{{"0/compute/B0", "0/comm/AR0"}, 2},
                             {{"0/comm/AR0", "0/compute/UP0"}, 2},
                             {{"1/compute/B0", "1/comm/AR0"}, 2},
                             {{"1/comm/AR0", "1/compute/UP0"}, 2}};
      const Arrows in_one = {{{"0/compute/B0", "0/comm/RU0"}, 2},
                             {{"1/compute/B0", "1/comm/RU0"}, 2}};
      Arrows arrows;  // all tracks of the communication strand as one
      for (const auto& [ends, count] : imported.arrows) {
        const auto on_one_track = [](const std::string& where) {
          return absl::StrReplaceAll(where, {{"/comm 2/", "/comm/"}});
        };
        arrows[{on_one_track(ends.first), on_one_track(ends.second)}] += count;
      }
      EXPECT_EQ(arrows, inline_bytes > 0 && fuse ? in_one : in_two)
          << inline_bytes << ", fused " << fuse;
    }
  }
}

TEST(ChromeTraceTest, ArrowsLeadFromStageToStage) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/3);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.cuts = {6};
  spec.plan.micro_batch_size = 16;
  ChromeTrace trace({/*first_step=*/2, /*steps=*/2});
  spec.trace = &trace;
  ASSERT_TRUE(RunJob(spec).ok());
  const ImportedTrace imported = ImportTrace(trace.ToJson());
  EXPECT_EQ(imported.problems, "");
  for (const char* m : {"0", "1"}) {
    const auto count = [&](const std::string& from, const std::string& to) {
      const auto found = imported.arrows.find({from + m, to + m});
      return found == imported.arrows.end() ? 0 : found->second;
    };
    EXPECT_EQ(count("0/compute/SA", "1/compute/RA"), 2) << m;
    EXPECT_EQ(count("1/compute/SG", "0/compute/RG"), 2) << m;
  }
}

TEST(ChromeTraceTest, ShowsEvaluationsAndCheckpoints) {
  JobSpec spec = TinyCnnJob(2, 6);
  spec.checkpoint.dir = FreshFolder("saved");
  spec.checkpoint.every = 2;
  spec.eval_every = 3;
  ChromeTrace trace({/*first_step=*/3, /*steps=*/2});
  spec.trace = &trace;
  ASSERT_TRUE(RunJob(spec).ok());
  const ImportedTrace imported = ImportTrace(trace.ToJson());
  EXPECT_EQ(imported.problems, "");
  // An evaluation after step 3, and a checkpoint of step 4 follow the steps that
  // are traced. Rank 0 writes it; rank 1 hashes what it has, to be compared.
  std::vector<std::string> seen;
  for (const ImportedSlice& slice : imported.slices) {
    const bool of_run = absl::StrContains(slice.where, "/rank/") ||
                        absl::StrContains(slice.where, "/checkpointer/");
    if (of_run) seen.push_back(absl::StrCat(slice.where, " ", slice.step));
  }
  EXPECT_THAT(seen,
              testing::UnorderedElementsAre(
                  "0/rank/evaluate 3", "1/rank/evaluate 3", "0/rank/copy 4",
                  "1/rank/copy 4", "0/checkpointer/write 4", "0/checkpointer/commit 4"));
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
  EXPECT_FALSE(trace.Wants(1000));  // the call of another rank
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
    // The file has the numbers of the log.
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
