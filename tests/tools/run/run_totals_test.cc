#include "tools/trainer/run/run_totals.h"

#include "data/sampler.h"
#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

// A run that goes on after 6 of 12 steps, three an epoch.
actors::JobInfo ResumedInfo() {
  data::SamplerOptions options;
  options.dataset_size = 12;
  options.global_batch_size = 4;
  actors::JobInfo info;
  info.first_step = 6;
  info.steps = 12;
  info.skipped_steps = 2;
  info.resumed_from = "saved/step-00000006";
  data::Sampler sampler = *data::Sampler::Create(options);
  for (int i = 0; i < 6; ++i) sampler.Next();
  info.sampler = *data::Sampler::Create(options);
  EXPECT_TRUE(info.sampler->Load(sampler.state()).ok());
  return info;
}

actors::StepReport Report(int step) {
  actors::StepReport report;
  report.step = step;
  report.loss = 0.5;
  report.samples = 4;
  report.seconds = (step - 6) * 2;
  report.peak_bytes = step * 100;
  report.loss_scale = step * 8;
  return report;
}

TEST(RunTotalsTest, AddsUpReports) {
  RunTotals totals;
  actors::JobInfo info = ResumedInfo();
  totals.Start(info);
  EXPECT_EQ(totals.first_step(), 6);
  EXPECT_EQ(totals.steps(), 12);
  EXPECT_EQ(totals.resumed_from(), "saved/step-00000006");
  EXPECT_EQ(totals.skipped_steps(), 2);
  totals.Add(Report(7));
  actors::StepReport skipped = Report(8);
  skipped.skipped = true;
  totals.Add(skipped);
  EXPECT_EQ(totals.samples(), 8);
  EXPECT_EQ(totals.peak_bytes(), 800);
  EXPECT_EQ(totals.skipped_steps(), 3);
  // The scale is constant.
  EXPECT_FALSE(totals.loss_scale().has_value());

  const Progress progress = totals.ProgressAt(skipped);
  EXPECT_EQ(progress.step, 8);
  EXPECT_EQ(progress.steps, 12);
  EXPECT_EQ(progress.epoch, 3);
  EXPECT_EQ(progress.epochs, 4);
  EXPECT_EQ(progress.loss, 0.5);
  EXPECT_EQ(progress.skipped_steps, 3);
  EXPECT_EQ(progress.samples_per_s, 2);
  EXPECT_EQ(progress.left_s, 8);
  EXPECT_FALSE(progress.accuracy.has_value());
}

TEST(RunTotalsTest, FollowsADynamicLossScale) {
  RunTotals totals;
  actors::JobInfo info = ResumedInfo();
  info.plan.dynamic_loss_scale = nn::LossScaleRule();
  info.plan.loss_scale = 1024;
  totals.Start(info);
  EXPECT_EQ(totals.loss_scale(), 1024);
  totals.Add(Report(7));
  EXPECT_EQ(totals.loss_scale(), 56);
  EXPECT_EQ(totals.ProgressAt(Report(7)).loss_scale, 56);
}

TEST(RunTotalsTest, EpochsCountFromOne) {
  RunTotals totals;
  totals.Start(ResumedInfo());
  EXPECT_EQ(totals.EpochOf(7), 3);
  EXPECT_EQ(totals.EpochOf(9), 3);
  EXPECT_EQ(totals.EpochOf(10), 4);
  // Steps before this run have the epoch of its first.
  EXPECT_EQ(totals.EpochOf(6), 3);
}

}  // namespace
}  // namespace troupe::tools
