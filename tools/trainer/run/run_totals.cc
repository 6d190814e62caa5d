#include "tools/trainer/run/run_totals.h"

#include <algorithm>

namespace troupe::tools {

void RunTotals::Start(const actors::JobInfo& info) {
  first_step_ = info.first_step;
  sampler_ = info.sampler;
  resumed_from_ = info.resumed_from;
  steps_ = info.steps;
  skipped_steps_ = info.skipped_steps;
  if (info.plan.dynamic_loss_scale) loss_scale_ = info.plan.loss_scale;
}

void RunTotals::Add(const actors::StepReport& report) {
  samples_ += report.samples;
  peak_bytes_ = report.peak_bytes;
  skipped_steps_ += report.skipped;
  if (loss_scale_) loss_scale_ = report.loss_scale;
  rate_.Add(report.seconds, report.samples);
}

Progress RunTotals::ProgressAt(const actors::StepReport& report) const {
  Progress progress;
  progress.step = report.step;
  progress.steps = steps_;
  progress.epoch = EpochOf(report.step);
  progress.epochs = EpochOf(steps_);
  progress.loss = report.loss;
  progress.loss_scale = loss_scale_;
  progress.skipped_steps = skipped_steps_;
  progress.samples_per_s = rate_.SamplesPerSecond();
  if (progress.samples_per_s > 0) {
    progress.left_s = double((steps_ - report.step) * report.samples) /
                      progress.samples_per_s;
  }
  return progress;
}

std::int64_t RunTotals::EpochOf(std::int64_t step) const {
  const std::int64_t in_run = std::max<std::int64_t>(step - first_step_, 1);
  return sampler_->BatchAt(in_run - 1).epoch + 1;
}

}  // namespace troupe::tools
