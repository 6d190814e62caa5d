// Profiles a job: times each op of its kernels. Other jobs are not slowed down.
//
//   OpClock clock;
//   clock.Attach(spec);
//   actors::TimedPart part;  // actors/step_seconds.h
//   part.begin = [&] { clock.Start(); };
//   part.end = [&] { clock.Stop(); };
//   status = actors::StepsPerSecond(spec, /*seconds=*/1, part).status();
//   for (const OpClock::Time& op : clock.times()) Print(op.name, op.seconds);
//
// Cost: two readings of the clock per op, about 50 ns.
//
// Threads: Start() and Stop() may be called by any one thread while ranks
// compute; an op counts if it ends between them. Call times() when the job has
// ended. The clock must outlive the job. Asynchronous kernels, as on a GPU, are
// timed wrongly.

#ifndef TOOLS_PROFILE_OP_CLOCK_H_
#define TOOLS_PROFILE_OP_CLOCK_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "actors/spec/job_spec.h"
#include "nn/kernels/kernels.h"
#include "nn/kernels/op_observer.h"

namespace troupe::tools {

class OpClock : private nn::OpObserver {
 public:
  // Returns nanoseconds since some fixed time.
  using Now = std::function<std::int64_t()>;

  struct Time {
    std::string name;  // "LinearForward"
    double seconds = 0;
    std::int64_t calls = 0;
  };

  OpClock();
  explicit OpClock(Now now);
  OpClock(const OpClock&) = delete;
  OpClock& operator=(const OpClock&) = delete;

  // Changes the job so that it opens its kernels through Wrap().
  void Attach(actors::JobSpec& spec);
  // Times each op of a kernel set from now on, to the end of the set.
  void Watch(nn::Kernels& kernels) ABSL_LOCKS_EXCLUDED(mutex_);

  // Begin and end the interval in which ops count.
  void Start();
  void Stop();

  // Returns the times of the ops that were called, longest first, summed over
  // kernel sets.
  std::vector<Time> times() const;
  // Returns the time between Start() and Stop().
  double seconds() const;

 private:
  struct Counter {
    const char* name;
    std::atomic<std::int64_t> nanos{0};
    std::atomic<std::int64_t> calls{0};
  };

  // nn::OpObserver:
  std::int64_t BeginOp(const nn::OpCall& call) override;
  void EndOp(const nn::OpCall& call, std::int64_t begin) override;

  const Now now_;
  std::atomic<bool> on_{false};
  std::int64_t start_ = 0, stop_ = 0;
  std::deque<Counter> counters_;  // indexed by the op's number
  absl::Mutex mutex_;             // ranks open their kernels at once
  std::deque<nn::ObservedOps> watched_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::tools

#endif  // TOOLS_PROFILE_OP_CLOCK_H_
