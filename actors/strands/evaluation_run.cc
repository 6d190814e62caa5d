#include "actors/strands/evaluation_run.h"

namespace troupe::actors {
namespace {

LoadWindow::Options WindowOptions(const JobSpec& spec) {
  LoadWindow::Options options;
  options.kind = StepKind::kEvaluate;
  options.ahead_max = spec.prefetch_steps;
  options.run_steps_max = 1;  // each run sends an Alive
  return options;
}

}  // namespace

EvaluationRun::EvaluationRun(std::int64_t step, const RankContext& context)
    : context_(context),
      step_(step),
      adds_(context.plan == nullptr ||
            context.plan->mesh.IsFirstCopy(context.rank)),
      window_(WindowOptions(*context.spec)),
      targets_(context.spec->count_targets == nullptr ? -1 : 0) {}

void EvaluationRun::CountTargets(const Loaded& loaded) {
  // All ranks of a replica load the same batches, as do its copies.
  const auto& count = context_.spec->count_targets;
  if (count == nullptr || context_.coords.pp != 0 || !adds_) return;
  for (const StepBatches& step : loaded.steps) {
    for (const data::Batch& batch : step) targets_ += count(batch.targets);
  }
}

void EvaluationRun::AddLosses(const StepsDone& done) {
  if (!adds_) return;
  for (const LossBits& loss : done.losses) {
    sum_ += FromBits(loss.sum);
    count_ += FromBits(loss.count);
    correct_ += FromBits(loss.correct);
  }
}

Evaluated EvaluationRun::Result() const {
  Evaluated evaluated;
  evaluated.generation = context_.generation;
  evaluated.rank = context_.rank;
  evaluated.step = step_;
  evaluated.loss = {Bits(sum_), Bits(count_), Bits(correct_)};
  evaluated.targets = targets_;
  return evaluated;
}

}  // namespace troupe::actors
