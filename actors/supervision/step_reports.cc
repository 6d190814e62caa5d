#include "actors/supervision/step_reports.h"

namespace troupe::actors {

std::vector<StepReport> StepReports::Make(const Progress& progress,
                                          double seconds) {
  const double each = (seconds - seconds_) / double(progress.losses.size());
  seconds_ = seconds;
  std::vector<StepReport> reports;
  reports.reserve(progress.losses.size());
  for (const LossBits& loss : progress.losses) {
    StepReport report;
    report.step =
        progress.first + static_cast<std::int64_t>(reports.size()) + 1;
    report.loss = loss.Reduced(reduction_);
    report.accuracy = loss.accuracy();
    report.skipped = loss.skipped != 0;
    report.loss_scale = FromBits(loss.scale);
    report.samples =
        span_->sampler->BatchAt(report.step - 1 - span_->first_step).size;
    report.seconds = seconds;
    report.step_seconds = each;
    report.grad_norm = FromBits(loss.grad_norm);
    report.lr = optimizer_->LearningRate(report.step - 1);
    report.peak_bytes = static_cast<std::int64_t>(peak_bytes_);
    reports.push_back(report);
  }
  return reports;
}

}  // namespace troupe::actors
