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

TEST(FormatStart, SettingsThatDifferAreListed) {
  actors::JobInfo info = Info();
  info.resumed_from = "saved/step-00000100";
  const std::string before = FormatStart(TrainerConfig(), info);
  info.setting_changes = {"optimizer.lr: 0.1, 0.02"};
  EXPECT_EQ(FormatStart(TrainerConfig(), info),
            before +
                "\nwhere settings differ from the checkpoint's (key: then, "
                "now):\n"
                "  optimizer.lr: 0.1, 0.02");
}

TEST(FormatStart, ManyDifferencesAreCounted) {
  actors::JobInfo info = Info();
  info.resumed_from = "saved/step-00000100";
  info.plan_changes.assign(23, "x: 1, 2");
  const std::string text = FormatStart(TrainerConfig(), info);
  EXPECT_TRUE(absl::EndsWith(text, "\n  x: 1, 2\n  and 3 more")) << text;
}

TEST(FormatStart, WarnsBehindTheEndOfTheSchedule) {
  TrainerConfig config;
  config.optimizer.lr = 0.5;
  nn::LrSchedule& schedule = config.optimizer.common.schedule;
  actors::JobInfo info = Info();
  const std::string plain = FormatStart(config, info);
  schedule = nn::LrSchedule::Cosine(/*steps=*/300);
  schedule.warmup_steps = 100;
  EXPECT_EQ(FormatStart(config, info),
            plain +
                "\nwarning: the schedule \"cosine\" of the learning rate ends "
                "after 400 of 1,000 steps, and the rate then stays at 0; "
                "optimizer.schedule_steps = 300 would have to be larger");
  schedule = nn::LrSchedule::Linear(/*steps=*/999, /*min_factor=*/0.1);
  EXPECT_EQ(FormatStart(config, info),
            plain +
                "\nwarning: the schedule \"linear\" of the learning rate ends "
                "after 999 of 1,000 steps, and the rate then stays at 0.05; "
                "optimizer.schedule_steps = 999 would have to be larger");
  // A run that goes on.
  info.resumed_from = "saved/step-00000999";
  info.first_step = 999;
  EXPECT_TRUE(absl::StrContains(FormatStart(config, info), "stays at 0.05"));
  // All steps are done.
  info.first_step = 1000;
  EXPECT_FALSE(absl::StrContains(FormatStart(config, info), "warning"));
}

TEST(FormatStart, DoesNotWarnOfOtherSchedules) {
  TrainerConfig config;
  const std::string plain = FormatStart(config, Info());
  nn::LrSchedule cosine = nn::LrSchedule::Cosine(/*steps=*/1000);
  nn::LrSchedule spans = cosine;
  spans.steps = 0;  // the run's
  for (const nn::LrSchedule& schedule :
       {cosine, spans, nn::LrSchedule::OneCycle(1000), nn::LrSchedule::Step(10),
        nn::LrSchedule::InverseSqrt(10)}) {
    config.optimizer.common.schedule = schedule;
    EXPECT_EQ(FormatStart(config, Info()), plain);
  }
}

}  // namespace
}  // namespace troupe::tools
