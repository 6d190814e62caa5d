// Profiles a job: wraps its kernels, and times each op. Other jobs are not
// slowed down.
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
#include <memory>
#include <string>
#include <vector>

#include "actors/spec/job_spec.h"
#include "nn/kernels/kernels.h"

namespace troupe::tools {

class OpClock {
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
  ~OpClock();
  OpClock(const OpClock&) = delete;
  OpClock& operator=(const OpClock&) = delete;

  // Changes the job so that it opens its kernels through Wrap().
  void Attach(actors::JobSpec& spec);
  // Returns a kernel set that times each op and passes it on to `inner`.
  std::unique_ptr<nn::Kernels> Wrap(std::unique_ptr<nn::Kernels> inner);

  // Begin and end the interval in which ops count.
  void Start();
  void Stop();

  // Returns the times of the ops that were called, longest first, summed over
  // kernel sets.
  std::vector<Time> times() const;
  // Returns the time between Start() and Stop().
  double seconds() const;

 private:
  class TimedKernels;
  struct Counter {
    const char* name;
    std::atomic<std::int64_t> nanos{0};
    std::atomic<std::int64_t> calls{0};
  };

  void Count(Counter& counter, std::int64_t begin);

  const Now now_;
  std::atomic<bool> on_{false};
  std::int64_t start_ = 0, stop_ = 0;
  std::deque<Counter> counters_;  // in the order of Kernels::ForEachOp()
};

}  // namespace troupe::tools

#endif  // TOOLS_PROFILE_OP_CLOCK_H_
