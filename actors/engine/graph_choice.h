// Whether a rank's training steps run one op after the other or as a recorded
// graph: when to record one, and which way to keep.
//
//   GraphChoice choice(/*measure=*/true);
//   const GraphChoice::Way way = choice.Next();     // kCapture comes once
//   RunStep(way);
//   choice.NoteStep(way);
//   choice.NoteTime(way, /*seconds=*/0.01);
//   if (auto verdict = choice.TakeVerdict()) Tell(verdict->ToString());
//
// Without measuring a step is recorded when it was run a few times, so that its
// kernels are chosen and its memory has settled. With it, some further steps
// are timed first, then as many launches, and the way with the smaller median
// stays. Both ways compute the same bits, so that ranks need not agree, and a
// run need not choose as the one before.
//
// Threads: one at a time. Reads no clock.

#ifndef ACTORS_ENGINE_GRAPH_CHOICE_H_
#define ACTORS_ENGINE_GRAPH_CHOICE_H_

#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class GraphChoice {
 public:
  static constexpr int kWarmUpSteps = 2;
  static constexpr int kTimedSteps = 5;  // each way

  enum class Way { kEager, kCapture, kGraph };

  struct Verdict {
    bool graph = false;
    double eager_seconds = 0, graph_seconds = 0;  // medians of a step
    // "graph: 0.8 ms a step, eager 1.2 ms"
    std::string ToString() const;
  };

  explicit GraphChoice(bool measure) : measure_(measure) {}

  // How the next step runs.
  Way Next() const;
  // A step was run, or recorded and then run, in this way.
  void NoteStep(Way way);
  // No graph can be recorded: all steps are eager.
  void Refuse() { eager_for_good_ = true; }

  // Whether the next step, which runs in this way, is to be timed.
  bool WantsTime(Way way) const;
  // Times come later than their steps. Further ones are not looked at.
  void NoteTime(Way way, double seconds);
  // What was chosen, once, when there are times enough. From then on Next()
  // says so.
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

#endif  // ACTORS_ENGINE_GRAPH_CHOICE_H_
