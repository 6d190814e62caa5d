#include "actors/supervision/evaluation_round.h"

#include <cstddef>

namespace troupe::actors {

void EvaluationRound::Begin(std::int64_t step, int ranks) {
  step_ = step;
  parts_.assign(static_cast<std::size_t>(ranks), std::nullopt);
  missing_ = ranks;
}

bool EvaluationRound::Add(const Evaluated& part) {
  if (parts_.empty() || part.step != step_ || parts_[part.rank]) return false;
  parts_[part.rank] = part;
  --missing_;
  return true;
}

bool EvaluationRound::complete() const {
  return !parts_.empty() && missing_ == 0;
}

EvaluationReport EvaluationRound::End(nn::ops::LossReduction reduction) {
  double sum = 0, count = 0, correct = 0;
  std::int64_t targets = 0;
  bool counted = false;  // whether the ranks have counted targets
  for (const std::optional<Evaluated>& part : parts_) {
    if (!part) continue;
    counted = counted || part->targets >= 0;
    targets += part->targets;
    sum += FromBits(part->loss.sum);
    count += FromBits(part->loss.count);
    correct += FromBits(part->loss.correct);
  }
  parts_.clear();
  const LossBits all = {Bits(sum), Bits(count), Bits(correct)};
  EvaluationReport report;
  report.step = step_;
  // A sum over nothing would be 0, the best loss of all.
  report.loss = count == 0 ? all.mean() : all.Reduced(reduction);
  report.accuracy = all.accuracy();
  report.count = counted ? targets : static_cast<std::int64_t>(count);
  return report;
}

}  // namespace troupe::actors
