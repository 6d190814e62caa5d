#include "actors/rank.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/strand_guard.h"

namespace troupe::actors {
namespace {

// A chunk of steps is about this much data: large enough that a message costs
// nothing beside it, small enough to stay in a second-level cache.
constexpr std::int64_t kChunkBytes = 1 << 20;
constexpr std::int64_t kChunkStepsMax = 256;

}  // namespace

void RankState::Init(Self self, RankContextPtr context,
                     SupervisorActor supervisor, LoaderActor loader,
                     ComputeActor compute) {
  self_ = self;
  context_ = std::move(context);
  supervisor_ = std::move(supervisor);
  loader_ = std::move(loader);
  compute_ = std::move(compute);
  granted_ = requested_ = context_->span->first_step;
  LoadAhead();
}

void RankState::LoadAhead() {
  const JobSpec& spec = *context_->spec;
  const std::int64_t limit =
      std::max<std::int64_t>(spec.prefetch_steps, 2 * chunk_);
  while (requested_ < context_->span->steps && ahead_ < limit) {
    const std::int64_t count =
        std::min(chunk_, context_->span->steps - requested_);
    RequestLoad(StepKind::kTrain, requested_, count);
    requested_ += count;
    ahead_ += count;
    // The first chunk tells how large a step is.
    if (!chunk_chosen_) break;
  }
}

void RankState::RequestLoad(StepKind kind, std::int64_t first,
                            std::int64_t count) {
  LoadRequest request{kind, first, count};
  const auto timeout = std::chrono::nanoseconds(
      absl::ToInt64Nanoseconds(context_->spec->timeout));
  self_->request(loader_, timeout, request)
      .then(
          [this, kind](Loaded& loaded) {
            kind == StepKind::kTrain ? OnLoaded(loaded)
                                     : OnEvaluationLoaded(loaded);
          },
          [this, first](const caf::error& error) {
            // The loader has reported its own failure; this is for silence.
            const absl::Status status = FromError(self_->system(), error);
            ReportFailure(self_, supervisor_, context_->rank, "loader",
                          absl::Status(status.code(),
                                       absl::StrCat("loading step ", first + 1,
                                                    ": ", status.message())));
          });
}

void RankState::ChooseChunk(const Loaded& loaded) {
  std::int64_t bytes = 1;
  for (const StepBatches& step : loaded.steps) {
    for (const data::Batch& batch : step) {
      bytes += batch.inputs.bytes() + batch.targets.bytes();
    }
  }
  chunk_ = std::clamp<std::int64_t>(kChunkBytes / bytes, 1, kChunkStepsMax);
  chunk_chosen_ = true;
}

void RankState::OnLoaded(Loaded& loaded) {
  if (!chunk_chosen_) ChooseChunk(loaded);
  loaded_.push_back(std::move(loaded));
  LoadAhead();
  Dispatch();
}

void RankState::OnGrant(const Grant& grant) {
  if (grant.generation != context_->generation) return;
  granted_ = std::max(granted_, grant.until);
  Dispatch();
}

void RankState::Dispatch() {
  while (!loaded_.empty() && runs_ < kRunsMax &&
         loaded_.front().first < granted_) {
    Loaded& front = loaded_.front();
    RunSteps run;
    run.first = front.first;
    const std::int64_t there = static_cast<std::int64_t>(front.steps.size());
    const std::int64_t count = std::min(there, granted_ - front.first);
    const auto end = front.steps.begin() + count;
    run.steps.assign(std::make_move_iterator(front.steps.begin()),
                     std::make_move_iterator(end));
    if (count == there) {
      loaded_.pop_front();
    } else {
      front.steps.erase(front.steps.begin(), end);
      front.first += count;
    }
    ahead_ -= count;
    ++runs_;
    self_->send(compute_, std::move(run));
    LoadAhead();
  }
}

void RankState::OnStepsDone(const StepsDone& done) {
  if (done.kind == StepKind::kEvaluate) {
    OnEvaluated(done);
    return;
  }
  --runs_;
  Progress progress;
  progress.generation = context_->generation;
  progress.rank = context_->rank;
  progress.first = done.first;
  progress.losses = done.losses;
  self_->send(supervisor_, std::move(progress));
  Dispatch();
}

void RankState::OnEvaluate(std::int64_t step) {
  evaluation_step_ = step;
  sum_ = count_ = correct_ = 0;
  RequestLoad(StepKind::kEvaluate, 0, 1);
}

void RankState::OnEvaluationLoaded(Loaded& loaded) {
  if (loaded.steps.empty()) {  // the rank's part of the test set is done
    Evaluated evaluated;
    evaluated.generation = context_->generation;
    evaluated.rank = context_->rank;
    evaluated.step = evaluation_step_;
    evaluated.loss = {Bits(sum_), Bits(count_), Bits(correct_)};
    self_->send(supervisor_, evaluated);
    return;
  }
  RunSteps run;
  run.kind = StepKind::kEvaluate;
  run.first = loaded.first;
  run.steps = std::move(loaded.steps);
  self_->send(compute_, std::move(run));
}

void RankState::OnEvaluated(const StepsDone& done) {
  for (const LossBits& loss : done.losses) {
    sum_ += FromBits(loss.sum);
    count_ += FromBits(loss.count);
    correct_ += FromBits(loss.correct);
  }
  // No step, but a sign of life: a long evaluation is no silence.
  Progress alive;
  alive.generation = context_->generation;
  alive.rank = context_->rank;
  alive.first = evaluation_step_;
  self_->send(supervisor_, std::move(alive));
  RequestLoad(StepKind::kEvaluate,
              done.first + static_cast<std::int64_t>(done.losses.size()), 1);
}

RankActor::behavior_type RankBehavior(RankState::Self self,
                                      RankContextPtr context,
                                      SupervisorActor supervisor,
                                      LoaderActor loader,
                                      ComputeActor compute) {
  GuardStrand(self, supervisor, context->rank, "rank");
  self->state.Init(self, std::move(context), std::move(supervisor),
                   std::move(loader), std::move(compute));
  return {
      [=](const Grant& grant) { self->state.OnGrant(grant); },
      [=](const StepsDone& done) { self->state.OnStepsDone(done); },
      [=](evaluate_atom, std::int64_t step) { self->state.OnEvaluate(step); },
      [=](snapshot_atom, std::int64_t step) -> caf::result<SnapshotPtr> {
        return self->delegate(self->state.compute(), snapshot_atom::value,
                              step);
      },
  };
}

}  // namespace troupe::actors
