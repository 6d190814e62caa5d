#include "actors/chunks/step_trace.h"

#include <string>

namespace troupe::actors {
namespace {

using pipeline::ActionKind;

TraceKind KindOf(ActionKind action) {
  switch (action) {
    case ActionKind::kReduceLoss:
    case ActionKind::kReduceFindings:
    case ActionKind::kReduceTied:
    case ActionKind::kReduceBucket:
    case ActionKind::kReduceUpdateBucket:
      return TraceKind::kCollective;
    case ActionKind::kUpdateBucket:
      return TraceKind::kUpdate;
    case ActionKind::kSendActivation:
    case ActionKind::kRecvActivation:
    case ActionKind::kSendGradient:
    case ActionKind::kRecvGradient:
      return TraceKind::kTransfer;
    default:
      return TraceKind::kAction;
  }
}

// The bucket that the action is about, or -1.
int BucketOf(const pipeline::Action& action) {
  switch (action.kind) {
    case ActionKind::kReduceTied:
    case ActionKind::kReduceBucket:
    case ActionKind::kReduceUpdateBucket:
    case ActionKind::kUpdateBucket:
      return action.index;
    default:
      return -1;
  }
}

// Whether what crosses does so between `stage` and the one before it.
bool IsBefore(ActionKind action) {
  return action == ActionKind::kRecvActivation ||
         action == ActionKind::kSendGradient;
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
  event.bucket = BucketOf(action);
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
