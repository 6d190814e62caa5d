// Decides whether a rank's training steps run one op after the other (eager) or
// as a recorded graph: when to record one, and which way to keep.
//
//   GraphChoice choice(/*measure=*/true);
//   const GraphChoice::Way way = choice.Next();     // kCapture: once
//   RunStep(way);
//   choice.NoteStep(way);
//   choice.NoteTime(way, /*seconds=*/0.01);
//   if (auto verdict = choice.TakeVerdict()) Tell(verdict->ToString());
//
// Without measuring, a step is recorded after kWarmUpSteps eager ones, which
// choose its kernels and allocate its memory. With measuring, kTimedSteps more
// eager steps are timed first, then as many launches of the graph, and the way
// with the smaller median is kept. Both ways compute the same bits, so a run
// may decide otherwise than the one before. A rank with peers does not measure:
// all ranks must decide alike (step_recorder.cc).
//
// Threads: one at a time. Reads no clock.

#ifndef ACTORS_ENGINE_RECORDING_GRAPH_CHOICE_H_
#define ACTORS_ENGINE_RECORDING_GRAPH_CHOICE_H_

#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class GraphChoice {
 public:
  static constexpr int kWarmUpSteps = 2;
  static constexpr int kTimedSteps = 5;  // for each way

  enum class Way { kEager, kCapture, kGraph };

  struct Verdict {
    bool graph = false;
    double eager_seconds = 0, graph_seconds = 0;  // medians of a step
    // "graph: 0.8 ms a step, eager 1.2 ms"
    std::string ToString() const;
  };

  explicit GraphChoice(bool measure) : measure_(measure) {}

  // Returns how the next step runs.
  Way Next() const;
  // Counts a step that was run, or recorded and then run, in this way.
  void NoteStep(Way way);
  // Makes all later steps eager, since no graph can be recorded.
  void Refuse() { eager_for_good_ = true; }

  // Returns whether the next step, which runs in this way, is to be timed.
  bool WantsTime(Way way) const;
  // Adds the time of a step, which may be known only after later steps have
  // begun. Times after the decision have no effect.
  void NoteTime(Way way, double seconds);
  // Makes the decision and returns it, once, when enough steps were timed.
  // Next() follows it from then on.
  std::optional<Verdict> TakeVerdict();

 private:
  const bool measure_;
  int eager_steps_ = 0, graph_steps_ = 0;
  bool captured_ = false;
  bool eager_for_good_ = false;
  bool decided_ = false;
  std::vector<double> eager_, graph_;  // seconds
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_RECORDING_GRAPH_CHOICE_H_
