#include "actors/chunks/step/step_trace.h"

#include <string>

#include "pipeline/table/action_rules.h"

namespace troupe::actors {
namespace {

using pipeline::ActionKind;

TraceKind KindOf(ActionKind action) {
  switch (pipeline::RuleOf(action).role) {
    case pipeline::ActionRole::kCompute:
      return TraceKind::kAction;
    case pipeline::ActionRole::kReceive:
    case pipeline::ActionRole::kSend:
      return TraceKind::kTransfer;
    case pipeline::ActionRole::kCollective:
      return TraceKind::kCollective;
    case pipeline::ActionRole::kUpdate:
      return TraceKind::kUpdate;
  }
  return TraceKind::kAction;
}

// Returns whether a transfer crosses the boundary before its stage; else it
// crosses the one after it.
bool IsBefore(ActionKind action) {
  return pipeline::IsReceive(action) == pipeline::IsOfForward(action);
}

}  // namespace

void StepTrace::Note(const pipeline::Action& action, TracePhase phase) {
  TraceEvent event;
  event.rank = rank_;
  event.kind = KindOf(action.kind);
  event.track = event.kind == TraceKind::kCollective ? TraceTrack::kComm
                                                     : TraceTrack::kCompute;
  event.phase = phase;
  event.step = step_;
  event.action = action.kind;
  event.chunk = action.chunk;
  event.bucket = pipeline::IsOfBucket(action.kind) ? action.index : -1;
  if (event.kind == TraceKind::kTransfer) {
    event.micro_batch = action.index;
    event.boundary = stages_[action.chunk] - (IsBefore(action.kind) ? 1 : 0);
    event.replica = replica_;
  }
  event.bytes = BytesNow();
  event.name = action.ToString(static_cast<int>(stages_.size()));
  sink_->Record(event);
}

void StepTrace::NoteGraph(TracePhase phase) {
  TraceEvent event;
  event.rank = rank_;
  event.kind = TraceKind::kGraph;
  event.phase = phase;
  event.step = step_;
  event.bytes = BytesNow();
  event.name = "graph";
  sink_->Record(event);
}

std::int64_t StepTrace::BytesNow() const {
  if (allocator_ == nullptr) return -1;
  return static_cast<std::int64_t>(allocator_->stats().bytes_in_use);
}

void StepTrace::NoteBucket(TraceKind kind, absl::string_view name, int chunk,
                           int bucket) {
  TraceEvent event;
  event.rank = rank_;
  event.kind = kind;
  event.step = step_;
  event.chunk = chunk;
  event.bucket = bucket;
  event.name = std::string(name);
  sink_->Record(event);
}

}  // namespace troupe::actors
