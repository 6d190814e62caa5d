#include "actors/strands/evaluation_run.h"

#include <memory>
#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {
namespace {

// Returns rank 3 of generation 2; it counts two targets of each batch.
RankContext ContextOf(bool counts, int stage) {
  auto spec = std::make_shared<JobSpec>();
  spec->prefetch_steps = 1;
  if (counts) spec->count_targets = [](const nn::Tensor&) { return 2; };
  RankContext context;
  context.rank = 3;
  context.generation = 2;
  context.coords.pp = stage;
  context.spec = std::move(spec);
  return context;
}

Loaded LoadedBatch() {
  Loaded loaded;
  loaded.steps = {StepBatches(1)};
  return loaded;
}

StepsDone DoneWith(double sum, double count, double correct) {
  StepsDone done;
  done.kind = StepKind::kEvaluate;
  done.losses = {LossBits{Bits(sum), Bits(count), Bits(correct)}};
  return done;
}

TEST(EvaluationRunTest, AddsUpLosses) {
  const RankContext context = ContextOf(/*counts=*/false, /*stage=*/0);
  EvaluationRun run(/*step=*/100, context);
  run.AddLosses(DoneWith(3, 2, 1));
  run.AddLosses(DoneWith(5, 4, 2));
  const Evaluated evaluated = run.Result();
  EXPECT_EQ(evaluated.generation, 2);
  EXPECT_EQ(evaluated.rank, 3);
  EXPECT_EQ(evaluated.step, 100);
  EXPECT_EQ(FromBits(evaluated.loss.sum), 8);
  EXPECT_EQ(FromBits(evaluated.loss.count), 6);
  EXPECT_EQ(FromBits(evaluated.loss.correct), 3);
  EXPECT_EQ(evaluated.targets, -1) << "the job does not count them";
}

TEST(EvaluationRunTest, CountsTheTargetsOfTheFirstStage) {
  const RankContext first = ContextOf(/*counts=*/true, /*stage=*/0);
  EvaluationRun run(100, first);
  run.CountTargets(LoadedBatch());
  run.CountTargets(LoadedBatch());
  EXPECT_EQ(run.Result().targets, 4);
  const RankContext second = ContextOf(true, /*stage=*/1);
  EvaluationRun other(100, second);
  other.CountTargets(LoadedBatch());
  EXPECT_EQ(other.Result().targets, 0);
}

TEST(EvaluationRunTest, EndsWithTheTestSet) {
  const RankContext context = ContextOf(false, 0);
  EvaluationRun run(100, context);
  const std::optional<LoadRequest> request = run.window().NextRequest();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->kind, StepKind::kEvaluate);
  EXPECT_FALSE(run.window().finished());
  Loaded nothing{StepKind::kEvaluate, request->first, {}};
  run.window().OnLoaded(std::move(nothing), request->count);
  EXPECT_TRUE(run.window().finished());
}

}  // namespace
}  // namespace troupe::actors
