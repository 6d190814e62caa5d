// A trace of each rank's events: actions of the compute strand, collectives of
// the communication strand, buckets that became ready, transfers between
// stages, loading, evaluations and checkpoints; and the bytes of its tensors.
//
//   ChromeTrace trace({/*first_step=*/10, /*steps=*/2});  // of this run
//   spec.trace = &trace;
//   RunJob(spec);
//   absl::Status status = trace.WriteFile(files, "trace.json");
//
// A sink stamps events itself, so that actors need no clock to report them. The
// simulator's sink keeps the events to check its invariants.
//
// Threads: any.

#ifndef ACTORS_TRACING_TRACE_H_
#define ACTORS_TRACING_TRACE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/files/file_system.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

enum class TraceTrack { kCompute, kComm, kLoader, kRank, kCheckpointer };

enum class TraceKind {
  kAction,            // begins and ends; name is the action's, "B1"
  kCollective,        // begins when launched, ends when its result is complete
  kGradientComplete,  // instant; name is the parameter's
  kBucketReady,       // instant
  kUpdate,            // begins and ends
  kGraph,             // begins and ends: a recorded step is launched
  kTransfer,          // begins and ends: a stage sends, or takes a received one
  kLoad,              // begins and ends: a loader makes a step's batches
  kEvaluation,        // begins and ends; `step` is the last one trained
  kCheckpoint,        // begins and ends: a part of saving `step`, the last one
};

enum class TracePhase { kBegin, kEnd, kInstant };

struct TraceEvent {
  int rank = 0;
  TraceTrack track = TraceTrack::kCompute;
  TraceKind kind = TraceKind::kAction;
  TracePhase phase = TracePhase::kInstant;
  std::int64_t step = 0;
  // Action of the table, if `kind` is an action, a collective, an update or a
  // transfer.
  pipeline::ActionKind action = pipeline::ActionKind::kForward;
  int chunk = 0;    // number of the rank's chunk
  int bucket = -1;  // number of the chunk's bucket; -1: it concerns none
  // A transfer's micro-batch, and its place: between the stages `boundary` and
  // `boundary` + 1 of this replica.
  int micro_batch = -1;
  int boundary = -1;
  int replica = 0;
  // Bytes of the rank's tensors at this moment; below 0: not known.
  std::int64_t bytes = -1;
  std::string name;
};

struct StampedEvent {
  TraceEvent event;
  double micros = 0;  // since the sink was made; from Take(): since 1970
};

// A part of a rank's work on its compute strand, written when it has ended: an
// operator of a profile, or what a program has named.
struct TraceSlice {
  int rank = 0;
  std::string category;  // "operator"
  std::string name;      // "LinearForward"
  double micros = 0;     // begin, as in StampedEvent
  double duration = 0;   // microseconds
  // Bytes of the rank's tensors at its end; below 0: not known.
  std::int64_t bytes = -1;
  // Texts that the viewer shows with it: {"module", "layer1.0.conv1"}.
  std::vector<std::pair<std::string, std::string>> facts;
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // Returns whether events of this step (from 0) are kept; otherwise callers
  // skip the work. The first call of a run is for its first step.
  virtual bool Wants(std::int64_t step) const = 0;
  virtual void Record(const TraceEvent& event) = 0;

  // Move events between sinks: in a job of several processes, the events that
  // Take() returns elsewhere are added to the sink of process 0, with `micros`
  // since 1970 by the clock of process 0. A sink without these functions has
  // only the ranks of its own process.
  virtual std::vector<StampedEvent> Take() { return {}; }
  virtual void Add(std::vector<StampedEvent> /*events*/) {}
};

// Records `event` if there is a sink, and it wants the step.
inline void Note(TraceSink* sink, const TraceEvent& event) {
  if (sink != nullptr && sink->Wants(event.step)) sink->Record(event);
}

// Collects the events of one run, and writes them in Chrome's trace event
// format for Perfetto (trace_json.h). Steps in the file count from 1, as in
// reports and logs.
class ChromeTrace : public TraceSink {
 public:
  struct Options {
    // First step that is kept, counted from 1 at the start of this run, also of
    // a resumed one.
    std::int64_t first_step = 10;
    std::int64_t steps = 5;
    std::int64_t events_max = 1 << 20;  // later events are dropped and counted
  };
  explicit ChromeTrace(const Options& options);

  bool Wants(std::int64_t step) const override;
  void Record(const TraceEvent& event) override;
  std::vector<StampedEvent> Take() override;
  void Add(std::vector<StampedEvent> events) override;

  // Returns whether no event was recorded, as in a run that ended before
  // `first_step`.
  bool IsEmpty() const;

  std::string ToJson() const;
  // Writes a file for ui.perfetto.dev. Errors are those of `files` and name
  // `path`.
  absl::Status WriteFile(base::FileSystem& files,
                         const std::string& path) const;

 private:
  const Options options_;
  const absl::Time start_;
  mutable std::atomic<std::int64_t> run_start_{-1};  // the run's first step
  mutable absl::Mutex mutex_;
  std::vector<StampedEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_TRACING_TRACE_H_
