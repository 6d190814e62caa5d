// Times every op that a job's kernels compute, each by itself, and passes it
// on. A job that is not given to it is not slower for it.
//
//   OpClock clock;
//   clock.Attach(spec);
//   actors::TimedPart part;  // actors/step_seconds.h
//   part.begin = [&] { clock.Start(); };
//   part.end = [&] { clock.Stop(); };
//   status = actors::StepsPerSecond(spec, /*seconds=*/1, part).status();
//   for (const OpClock::Time& op : clock.times()) Print(op.name, op.seconds);
//
// An op costs two readings of the clock more than without: some 50 ns.
//
// Threads: Start() and Stop() from any one, while a rank computes: what an op
// took counts where it ends. times() when the job has ended. The clock outlives
// the job. Kernels that work later than they are told are timed wrongly.

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
  // Nanoseconds since any one time.
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

  // From now on the job opens its kernels through Wrap().
  void Attach(actors::JobSpec& spec);
  // `inner` with its ops timed.
  std::unique_ptr<nn::Kernels> Wrap(std::unique_ptr<nn::Kernels> inner);

  // Ops count between the two.
  void Start();
  void Stop();

  // Those of ops that were called, longest first; summed over kernel sets.
  std::vector<Time> times() const;
  // Between Start() and Stop().
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
