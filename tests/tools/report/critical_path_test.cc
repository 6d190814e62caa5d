// Critical paths of traces that are worked out by hand.

#include "tools/report/critical_path.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/tools/report/made_run.h"

namespace troupe::tools {
namespace {

// "0:F0 0-10, 1:F0 12-22 (+2)": rank, action, times, and the handover before.
std::string PathOf(const MadeRun& run) {
  const RunTimeline timeline(run.trace, run.shape);
  std::string text;
  for (const PathPart& part :
       CriticalPath(timeline.Step(7), timeline, run.shape)) {
    const pipeline::Action action = {part.bar.kind, part.bar.index, {}};
    absl::StrAppend(&text, text.empty() ? "" : ", ", part.bar.rank, ":",
                    action.ToString(), " ", part.begin, "-", part.end);
    if (part.handover > 0) absl::StrAppend(&text, " (+", part.handover, ")");
  }
  return text;
}

TEST(CriticalPathTest, CrossesStagesWhereAnInputCameLast) {
  EXPECT_EQ(PathOf(TwoStages()),
            "0:F0 0-10, 1:F0 12-22 (+2), 1:B0 22-46, 1:F1 46-56, 1:B1 56-78, "
            "0:B1 80-100 (+2), 0:AR0 100-104, 0:UP0 106-110 (+2)");
}

TEST(CriticalPathTest, GoesOverWhatHandsOverAndWhatTakes) {
  MadeRun run(/*dp=*/1, /*pp=*/2);
  run.Add(0, "F0", 0, 10).Add(0, "SA0", 10, 11);
  run.Add(1, "RA0", 12, 13).Add(1, "F0", 13, 20).Add(1, "B0", 20, 30);
  run.Add(1, "SG0", 30, 31);
  run.Add(0, "RG0", 33, 34).Add(0, "B0", 34, 44);
  EXPECT_EQ(PathOf(run),
            "0:F0 0-10, 0:SA0 10-11, 1:RA0 12-13 (+1), 1:F0 13-20, "
            "1:B0 20-30, 1:SG0 30-31, 0:RG0 33-34 (+2), 0:B0 34-44");
}

TEST(CriticalPathTest, ACollectiveIsAsLateAsTheLastThatLaunchesIt) {
  // Launched in the middle of the backward of rank 1.
  EXPECT_EQ(PathOf(TwoReplicas()),
            "1:F0 0-14, 1:B0 14-42, 1:AR0 42-52, 1:UP0 52-56");
}

TEST(CriticalPathTest, ACollectiveOfTheComputeStrandStandsInItsLine) {
  MadeRun run(/*dp=*/2, /*pp=*/1);
  run.plan.ranks[0].reduce_inline = true;
  run.Add(0, "F0", 0, 10).Add(0, "B0", 10, 30).AddComm(0, "RU0", 30, 41);
  run.Add(1, "F0", 0, 20).Add(1, "B0", 20, 34).AddComm(1, "RU0", 34, 40);
  EXPECT_EQ(PathOf(run), "1:F0 0-20, 1:B0 20-34, 0:RU0 34-41");
}

TEST(CriticalPathTest, AStepOfOneRankIsItsOwnPath) {
  MadeRun run(/*dp=*/1, /*pp=*/1);
  run.Add(0, "F0", 0, 10).Add(0, "B0", 11, 30).Add(0, "UP1", 15, 16);
  EXPECT_EQ(PathOf(run), "0:F0 0-10, 0:B0 11-30 (+1)");
  EXPECT_EQ(PathOf(MadeRun(1, 1)), "");
}

}  // namespace
}  // namespace troupe::tools
