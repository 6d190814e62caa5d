// What happened when on which rank: actions of the compute strand, collectives
// of the communication strand, buckets that became ready.
//
//   ChromeTrace trace({/*first_step=*/10, /*steps=*/2});
//   spec.trace = &trace;
//   ... run the job ...
//   absl::Status status = trace.WriteFile("trace.json");  // ui.perfetto.dev
//
// A sink stamps events itself, so that those who report need no clock; the
// simulator's sink keeps them to check its invariants.
//
// Threads: Record() from any.

#ifndef ACTORS_TRACE_H_
#define ACTORS_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace troupe::actors {

enum class TraceTrack { kCompute, kComm, kLoader };

enum class TraceKind {
  kAction,            // begins and ends; name is the action's, "B1"
  kCollective,        // begins when launched, ends when its result is there
  kGradientComplete,  // instant; name is the parameter's
  kBucketReady,       // instant
  kUpdate,            // begins and ends
  kLoad,              // begins and ends: a loader makes a step's batches
};

enum class TracePhase { kBegin, kEnd, kInstant };

struct TraceEvent {
  int rank = 0;
  TraceTrack track = TraceTrack::kCompute;
  TraceKind kind = TraceKind::kAction;
  TracePhase phase = TracePhase::kInstant;
  std::int64_t step = 0;
  int bucket = -1;  // where it concerns one
  std::string name;
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // Whether events of this step are kept: callers skip the work otherwise.
  virtual bool Wants(std::int64_t step) const = 0;
  virtual void Record(const TraceEvent& event) = 0;
};

// Chrome's trace event format, as Perfetto reads it: a process per rank, a
// track per strand, and a flow arrow from each bucket's readiness to its
// reduction.
class ChromeTrace : public TraceSink {
 public:
  struct Options {
    std::int64_t first_step = 0;
    std::int64_t steps = 2;
    std::int64_t events_max = 1 << 20;  // later ones are dropped and counted
  };
  explicit ChromeTrace(const Options& options);

  bool Wants(std::int64_t step) const override {
    return step >= options_.first_step &&
           step < options_.first_step + options_.steps;
  }
  void Record(const TraceEvent& event) override;

  std::string ToJson() const;
  //   the file system's error, naming `path`.
  absl::Status WriteFile(const std::string& path) const;

 private:
  struct Stamped {
    TraceEvent event;
    double micros = 0;
  };

  const Options options_;
  const absl::Time start_;
  mutable absl::Mutex mutex_;
  std::vector<Stamped> events_ ABSL_GUARDED_BY(mutex_);
  std::int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_TRACE_H_
