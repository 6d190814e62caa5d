// Decides how many steps ranks are granted at once: as many as take some 30 ms,
// so that grants cost nothing beside the steps, and a stop takes effect soon.
//
//   StepWindow window(/*first_step=*/0);
//   window.steps();                 // 1
//   window.Adapt(1, 0.001);         // 1 ms a step: twice as many
//   window.Restart(0.5);            // after an evaluation
//
// Times are in seconds since any fixed point. For one thread.

#ifndef ACTORS_SUPERVISION_STEP_WINDOW_H_
#define ACTORS_SUPERVISION_STEP_WINDOW_H_

#include <cstdint>

namespace troupe::actors {

class StepWindow {
 public:
  // Limit on the number of steps, however short they are.
  static constexpr std::int64_t kStepsMax = 1024;

  // `max` is another limit, for tests; 0: none.
  explicit StepWindow(std::int64_t first_step, std::int64_t max = 0)
      : step_(first_step), max_(max > 0 ? max : kStepsMax) {}

  std::int64_t steps() const { return steps_; }

  // Adapts the number to the pace since the last call: `committed` steps are
  // done at `seconds`. It at most doubles.
  void Adapt(std::int64_t committed, double seconds);

  // Excludes the time until `seconds` from the pace.
  void Restart(double seconds) { seconds_ = seconds; }

 private:
  std::int64_t steps_ = 1;
  std::int64_t step_;   // steps that were done at the last call
  double seconds_ = 0;  // time of that call
  std::int64_t max_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_STEP_WINDOW_H_
