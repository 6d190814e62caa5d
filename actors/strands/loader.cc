#include "actors/strands/loader.h"

#include <algorithm>
#include <utility>

#include "actors/protocol/strand_guard.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

absl::Status Open(LoaderState& state) {
  const JobSpec& spec = *state.context->spec;
  const pipeline::Plan& plan = *state.context->plan;
  const RunSpan& span = *state.context->span;
  state.allocator = std::make_unique<nn::CachingAllocator>();
  data::Share share;
  share.rank = state.context->coords.dp;
  share.world = plan.mesh.dp();
  share.micro_batch_size = plan.micro_batch_size;
  share.workers = spec.load_workers;
  // Evaluations gather values, so all replicas run as many.
  share.even_batches = plan.gathers_values();
  if (span.sampler) {
    TROUPE_ASSIGN_OR_RETURN(
        state.train,
        data::BatchSource::Create(spec.train, span.sampler->options(), share,
                                  *state.allocator));
    TROUPE_RETURN_IF_ERROR(
        state.train->Load(span.SamplerStateAt(span.first_step)));
  }
  if (spec.test == nullptr) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(state.test, data::EvaluationSource::Create(
                                          spec.test, share, *state.allocator));
  return absl::OkStatus();
}

void Trace(const LoaderState& state, std::int64_t step, TracePhase phase) {
  TraceSink* trace = state.context->spec->trace;
  if (trace == nullptr || !trace->Wants(step)) return;
  TraceEvent event;
  event.rank = state.context->rank;
  event.track = TraceTrack::kLoader;
  event.kind = TraceKind::kLoad;
  event.phase = phase;
  event.step = step;
  event.name = "load";
  trace->Record(event);
}

absl::Status LoadTraining(LoaderState& state, std::int64_t step,
                          StepBatches& batches) {
  Trace(state, step, TracePhase::kBegin);
  TROUPE_RETURN_IF_ERROR(
      state.train->At(step - state.context->span->first_step, batches));
  Trace(state, step, TracePhase::kEnd);
  return absl::OkStatus();
}

absl::StatusOr<Loaded> Load(LoaderState& state, const LoadRequest& request) {
  Loaded loaded{request.kind, request.first, {}};
  std::int64_t count = request.count;
  if (request.kind == StepKind::kEvaluate) {
    const std::int64_t there = state.test ? state.test->batch_count() : 0;
    count = std::clamp<std::int64_t>(there - request.first, 0, count);
  }
  loaded.steps.resize(count);
  for (std::int64_t i = 0; i < count; ++i) {
    if (request.kind == StepKind::kTrain) {
      TROUPE_RETURN_IF_ERROR(
          LoadTraining(state, request.first + i, loaded.steps[i]));
    } else {
      TROUPE_ASSIGN_OR_RETURN(data::Batch batch,
                              state.test->At(request.first + i));
      loaded.steps[i].push_back(std::move(batch));
    }
  }
  return loaded;
}

}  // namespace

LoaderActor::behavior_type LoaderBehavior(
    LoaderActor::stateful_pointer<LoaderState> self, RankContextPtr context,
    SupervisorActor supervisor) {
  const FailureSource source = {supervisor, context->generation, context->rank,
                                "loader"};
  GuardStrand(self, source);
  self->state.context = std::move(context);
  if (absl::Status status = Open(self->state); !status.ok()) {
    ReportFailure(self, source, status);
  }
  return {[=](const LoadRequest& request) -> caf::result<Loaded> {
    absl::StatusOr<Loaded> loaded = Load(self->state, request);
    if (loaded.ok()) return *std::move(loaded);
    ReportFailure(self, source, loaded.status());
    return ToError(loaded.status());
  }};
}

}  // namespace troupe::actors
