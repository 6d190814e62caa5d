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
    report.samples = samples_;
    report.seconds = seconds;
    report.step_seconds = each;
    report.grad_norm = FromBits(loss.grad_norm);
    report.lr = optimizer_->LearningRate(report.step - 1);
    report.peak_bytes = static_cast<std::int64_t>(peak_bytes_);
    reports.push_back(report);
  }
  return reports;
}

EvaluationReport SumOf(std::int64_t step, nn::ops::LossReduction reduction,
                       std::vector<Evaluated> parts) {
  std::sort(
      parts.begin(), parts.end(),
      [](const Evaluated& a, const Evaluated& b) { return a.rank < b.rank; });
  double sum = 0, count = 0, correct = 0;
  std::int64_t targets = 0;
  bool counted = false;  // whether the ranks have counted targets
  for (const Evaluated& part : parts) {
    counted = counted || part.targets >= 0;
    targets += part.targets;
    sum += FromBits(part.loss.sum);
    count += FromBits(part.loss.count);
    correct += FromBits(part.loss.correct);
  }
  const LossBits all = {Bits(sum), Bits(count), Bits(correct)};
  EvaluationReport report;
  report.step = step;
  // A sum over nothing would be 0, the best loss of all.
  report.loss = count == 0 ? all.mean() : all.Reduced(reduction);
  report.accuracy = all.accuracy();
  report.count = counted ? targets : static_cast<std::int64_t>(count);
  return report;
}

}  // namespace troupe::actors
