// Profiler: what a rank's time goes to, operator by operator, in a few steps of
// a loop (torch.profiler.profile, with its schedule).
//
//   ProfilerOptions options;
//   options.wait = 1, options.warmup = 1, options.active = 2;
//   Profiler profiler(rank, options, "result");
//   for (auto [x, y] : loader) {
//     sgd.ZeroGrad();
//     nn::CrossEntropy(model(x), y).Backward();
//     sgd.Step();
//     profiler.Step();
//   }
//   profiler.Stop();
//   rank.Log("%s", profiler.Table());            // the costliest operators
//
// A cycle is `wait` steps in which nothing is recorded, `warmup` steps that are
// recorded and dropped, and `active` steps. At its end the timeline is written
// to "result/rank0_cycle1.json", for ui.perfetto.dev: operators and calls of
// groups with module, shapes and memory, the parts that the program has named
// (RecordFunction), and the reductions of a DDP beside them. With active = 0
// all is recorded, from the constructor to Stop() or the end of the profiler.
//
// On a GPU the rank waits for each operator while it records, so that times are
// those of the device; reductions do not overlap with the backward then.
//
// Cost: none outside of the steps that are recorded or dropped.
// Errors: base::StatusError. kInvalidArgument names the option.
// kFailedPrecondition: the rank is profiled already. Those of files come out of
// Step(), Stop(), or the end of the profiler; if an exception leaves its block,
// that throws nothing.
// Threads: the rank's own, which outlives it.

#ifndef TROUPE_PROFILER_H_
#define TROUPE_PROFILER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "troupe/profile/op_profile.h"
#include "troupe/rank.h"

namespace troupe {

class Profiler;

// The names of torch.profiler.profile() and torch.profiler.schedule(). Numbers
// are those of steps.
struct ProfilerOptions {
  int wait = 0;
  int warmup = 0;
  int active = 0;  // 0: all, without cycles
  int repeat = 0;  // number of cycles; 0: until the end
  int skip_first = 0;
  bool record_shapes = true;
  bool profile_memory = true;
  // Number of events of a cycle that are kept; the timeline counts the others.
  std::int64_t events_max = 1 << 20;
  // Called at the end of each cycle, after its file is written.
  std::function<void(Profiler&)> on_trace_ready = nullptr;
};

class Profiler {
 public:
  // `folder`: where timelines are written; it is made if need be. Empty: none
  // are. Each rank writes its own.
  explicit Profiler(Rank& rank, const ProfilerOptions& options = {},
                    std::string folder = "");
  ~Profiler() noexcept(false);
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Ends a step of the loop, and begins the next one.
  void Step();
  // Ends the profile; a cycle that is under way ends here if one of its active
  // steps has ended. Later calls do nothing.
  void Stop();

  // Whether the present step is recorded and kept.
  bool recording() const { return phase_ == Phase::kActive; }
  // Number of cycles that have ended.
  int cycles() const { return cycles_; }
  // The last cycle that has ended, its operators, and the table of them.
  //   kFailedPrecondition: none has.
  const OpProfile& profile() const;
  std::vector<OperatorTime> KeyAverages(const TableOptions& options = {}) const;
  std::string Table(const TableOptions& options = {}) const;

 private:
  enum class Phase { kNone, kWarmup, kActive };

  Phase PhaseOf(std::int64_t step) const;
  // Goes on to `phase`, with which the present step begins.
  void Enter(Phase phase);
  void BeginStepRange();
  void EndCycle();
  void Write() const;

  Rank& rank_;
  const ProfilerOptions options_;
  const std::string folder_;
  const int exceptions_;  // number of those in flight when it was made
  std::int64_t step_ = 0;
  Phase phase_ = Phase::kNone;
  int step_range_ = -1;
  std::int64_t active_steps_ = 0;  // steps of this cycle that have ended
  int cycles_ = 0;
  bool stopped_ = false;
  OpProfile profile_;
};

// A part of a rank's work by a name of the program's (torch.profiler's
// record_function), to the end of the block: a slice of the timeline.
//
//   RecordFunction rollout(rank, "rollout");
class RecordFunction {
 public:
  RecordFunction(Rank& rank, absl::string_view name);
  ~RecordFunction();
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;

 private:
  OpRecorder& recorder_;
  const int range_;
};

}  // namespace troupe

#endif  // TROUPE_PROFILER_H_
