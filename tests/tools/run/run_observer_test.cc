#include "tools/trainer/run/run_observer.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

actors::JobInfo Info() {
  actors::JobInfo info;
  info.steps = 1000;
  info.plan.global_batch_size = 64;
  info.plan.kernels = "cpu:0, avx2, 1 thread";
  return info;
}

TEST(FormatStart, SaysWhatRunsAndOnWhat) {
  EXPECT_EQ(FormatStart(TrainerConfig(), Info()),
            "training lenet (0 parameters) on glyphs: 1 rank (dp=1 pp=1), "
            "1,000 steps of 64 samples, cpu:0, avx2, 1 thread");
}

TEST(FormatStart, SaysWhatMemoryIsExpected) {
  actors::JobInfo info = Info();
  const std::string unknown = FormatStart(TrainerConfig(), info);
  info.memory.parameters = 2048;
  info.memory.activations = 4096;
  info.memory.ranks = 2;
  EXPECT_EQ(FormatStart(TrainerConfig(), info),
            unknown +
                "\nmemory expected: 6 KiB a rank (activations 4 KiB, "
                "parameters 2 KiB)");
}

TEST(FormatStart, SaysHowTensorsTravel) {
  actors::JobInfo info = Info();
  const std::string alone = FormatStart(TrainerConfig(), info);
  info.transports = "shm (1 link), tcp (2 links)";
  EXPECT_EQ(FormatStart(TrainerConfig(), info),
            alone +
                "\nprocess 0 exchanges tensors with the others by shm (1 "
                "link), tcp (2 links)");
}

TEST(FormatStart, SaysWhereItGoesOnAndWhatOfThePlanIsNew) {
  TrainerConfig config;
  config.job.checkpoint.resume = true;
  config.job.checkpoint.dir = "saved";
  actors::JobInfo info = Info();
  const std::string first = FormatStart(TrainerConfig(), info);
  EXPECT_EQ(FormatStart(config, info),
            first + "\nno checkpoint in saved yet: starting at step 0");
  info.resumed_from = "saved/step-00000100";
  info.first_step = 100;
  EXPECT_EQ(FormatStart(config, info),
            first + "\ngoing on from saved/step-00000100");
  info.plan_changes = {"mesh[dp].size: 2, 4", "micro_batch_size: 32, 16"};
  EXPECT_EQ(FormatStart(config, info),
            first +
                "\ngoing on from saved/step-00000100\n"
                "where the plan differs from the checkpoint's (field: then, "
                "now):\n"
                "  mesh[dp].size: 2, 4\n"
                "  micro_batch_size: 32, 16");
}

TEST(FormatStart, ManyDifferencesAreCounted) {
  actors::JobInfo info = Info();
  info.resumed_from = "saved/step-00000100";
  info.plan_changes.assign(23, "x: 1, 2");
  const std::string text = FormatStart(TrainerConfig(), info);
  EXPECT_TRUE(absl::EndsWith(text, "\n  x: 1, 2\n  and 3 more")) << text;
}

}  // namespace
}  // namespace troupe::tools
