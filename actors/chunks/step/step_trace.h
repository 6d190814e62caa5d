// Records the events of one rank's steps in a trace. In steps that the sink
// does not want it records nothing, and costs a comparison.
//
//   StepTrace trace(spec.trace, rank, plan.StagesOf(rank), /*replica=*/0);
//   trace.BeginStep(StepKind::kTrain, step);
//   {
//     TraceScope scope(trace, action);     // "F0" begins
//     Run(action);
//   }                                      // and ends, also on an error
//   trace.Begin(reduction);                // an action that ends elsewhere
//   trace.End(reduction);                  // when it has ended
//
// Threads: one at a time. The sink may be called in any thread.

#ifndef ACTORS_CHUNKS_STEP_STEP_TRACE_H_
#define ACTORS_CHUNKS_STEP_STEP_TRACE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "actors/chunks/step/step_types.h"
#include "actors/tracing/trace.h"
#include "nn/tensor/allocator.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

class StepTrace {
 public:
  // `sink`: null records nothing. `stages`: stage of each chunk of the rank;
  // names of actions include the chunk if there are several. `replica`: number
  // of the rank's replica.
  StepTrace(TraceSink* sink, int rank, std::vector<int> stages = {0},
            int replica = 0)
      : sink_(sink),
        rank_(rank),
        stages_(std::move(stages)),
        replica_(replica) {}

  // Adds the memory of `allocator` in use to later events. It outlives the
  // trace.
  void WatchMemory(const nn::Allocator* allocator) { allocator_ = allocator; }

  // Starts a step. Only training steps are traced.
  void BeginStep(StepKind kind, std::int64_t step) {
    step_ = step;
    wanted_ =
        kind == StepKind::kTrain && sink_ != nullptr && sink_->Wants(step);
    on_ = wanted_;
  }
  // Records no further actions in this step. A step that runs as a graph has
  // the launch as its one event, between BeginGraph() and EndGraph().
  void Mute() { on_ = false; }
  void BeginGraph() {
    Mute();
    if (wanted_) NoteGraph(TracePhase::kBegin);
  }
  void EndGraph() {
    if (wanted_) NoteGraph(TracePhase::kEnd);
  }

  void Begin(const pipeline::Action& action) {
    if (on_) Note(action, TracePhase::kBegin);
  }
  void End(const pipeline::Action& action) {
    if (on_) Note(action, TracePhase::kEnd);
  }
  void GradientComplete(absl::string_view parameter, int chunk, int bucket) {
    if (on_) NoteBucket(TraceKind::kGradientComplete, parameter, chunk, bucket);
  }
  void BucketReady(int chunk, int bucket) {
    if (on_) NoteBucket(TraceKind::kBucketReady, "bucket ready", chunk, bucket);
  }

 private:
  void Note(const pipeline::Action& action, TracePhase phase);
  void NoteGraph(TracePhase phase);
  void NoteBucket(TraceKind kind, absl::string_view name, int chunk,
                  int bucket);
  // Returns the bytes in use by the rank's tensors; -1 if not known.
  std::int64_t BytesNow() const;

  TraceSink* const sink_;
  const int rank_;
  const std::vector<int> stages_;
  const int replica_;
  const nn::Allocator* allocator_ = nullptr;
  std::int64_t step_ = 0;
  bool wanted_ = false;  // whether the sink wants the step
  bool on_ = false;
};

// Traces an action that begins and ends with a block (RAII).
class TraceScope {
 public:
  // Both arguments outlive the scope.
  TraceScope(StepTrace& trace, const pipeline::Action& action)
      : trace_(trace), action_(action) {
    trace_.Begin(action_);
  }
  ~TraceScope() { trace_.End(action_); }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  StepTrace& trace_;
  const pipeline::Action& action_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_STEP_TRACE_H_
