// What happened when on which rank: actions of the compute strand, collectives
// of the communication strand, buckets that became ready, transfers between
// stages, loading, evaluations and checkpoints; and what its tensors hold.
//
//   ChromeTrace trace({/*first_step=*/10, /*steps=*/2});  // of this run
//   spec.trace = &trace;
//   RunJob(spec);
//   absl::Status status = trace.WriteFile(files, "trace.json");
//
// A sink stamps events itself, so that those who report need no clock; the
// simulator's sink keeps them to check its invariants.
//
// Threads: any.

#ifndef ACTORS_TRACING_TRACE_H_
#define ACTORS_TRACING_TRACE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/file_system.h"
#include "pipeline/schedule.h"

namespace troupe::actors {

enum class TraceTrack { kCompute, kComm, kLoader, kRank, kCheckpointer };

enum class TraceKind {
  kAction,            // begins and ends; name is the action's, "B1"
  kCollective,        // begins when launched, ends when its result is there
  kGradientComplete,  // instant; name is the parameter's
  kBucketReady,       // instant
  kUpdate,            // begins and ends
  kGraph,             // begins and ends: a recorded step is launched
  kTransfer,          // begins and ends: a stage sends, or takes what came
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
  // What runs, where `kind` is an action, a collective, an update or a
  // transfer.
  pipeline::ActionKind action = pipeline::ActionKind::kForward;
  int chunk = 0;    // of the rank, where it has several
  int bucket = -1;  // of the chunk, where it concerns one
  // A transfer is of this micro-batch, between the stages `boundary` and
  // `boundary` + 1 of this replica.
  int micro_batch = -1;
  int boundary = -1;
  int replica = 0;
  // What the rank's tensors hold at this moment; below 0: not known.
  std::int64_t bytes = -1;
  std::string name;
};

struct StampedEvent {
  TraceEvent event;
  double micros = 0;  // in a sink: since it was made
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // Whether events of this step, from 0, are kept: callers skip the work
  // otherwise. A run asks about its first step before any other.
  virtual bool Wants(std::int64_t step) const = 0;
  virtual void Record(const TraceEvent& event) = 0;

  // In a job of several processes, those of the others give what they have to
  // that of process 0; `micros` since 1970, by the clock of process 0. A sink
  // that does neither shows the ranks of its own process.
  virtual std::vector<StampedEvent> Take() { return {}; }
  virtual void Add(std::vector<StampedEvent> /*events*/) {}
};

// Records `event` where there is a sink that wants its step.
inline void Note(TraceSink* sink, const TraceEvent& event) {
  if (sink != nullptr && sink->Wants(event.step)) sink->Record(event);
}

// Chrome's trace event format, as Perfetto reads it (trace_json.h). The events'
// "step" is 1 after the first, as in reports and logs. For one run.
class ChromeTrace : public TraceSink {
 public:
  struct Options {
    // 1 is the first step of the run, wherever it was resumed from.
    std::int64_t first_step = 10;
    std::int64_t steps = 5;
    std::int64_t events_max = 1 << 20;  // later ones are dropped and counted
  };
  explicit ChromeTrace(const Options& options);

  bool Wants(std::int64_t step) const override;
  void Record(const TraceEvent& event) override;
  std::vector<StampedEvent> Take() override;
  void Add(std::vector<StampedEvent> events) override;

  // Whether nothing was recorded: the run was over too soon, say.
  bool IsEmpty() const;

  std::string ToJson() const;
  // For ui.perfetto.dev. Errors are those of `files` and name `path`.
  absl::Status WriteFile(base::FileSystem& files,
                         const std::string& path) const;

 private:
  const Options options_;
  const absl::Time start_;
  mutable std::atomic<std::int64_t> run_start_{-1};  // its first step, from 0
  mutable absl::Mutex mutex_;
  std::vector<StampedEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_TRACING_TRACE_H_
