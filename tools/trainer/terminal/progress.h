// Formats the progress of a run: pure functions from numbers to text.
//
//   std::string bar = FormatBar(progress, /*columns=*/80);
//   // epoch 2/5 [=====>    ] 640/1280 loss 0.1234 acc 96.5% 12,345/s ETA 0:42
//   std::string line = FormatLine(progress);
//   // step 640/1280  epoch 2  loss 0.1234  accuracy 96.52%  12,345 samples/s
//   // ETA 0:42                                         (all on one line)

#ifndef TOOLS_TRAINER_TERMINAL_PROGRESS_H_
#define TOOLS_TRAINER_TERMINAL_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace troupe::tools {

// Progress of a run after a step.
struct Progress {
  std::int64_t step = 0;  // 1 after the first
  std::int64_t steps = 0;
  std::int64_t epoch = 1;  // epoch of that step, from 1
  std::int64_t epochs = 1;
  double loss = 0;
  std::optional<double> accuracy;    // 0 to 1; classification only
  double samples_per_s = 0;          // 0: not known yet
  std::optional<double> loss_scale;  // none if constant
  std::int64_t skipped_steps = 0;    // number so far, also before a resume
  double left_s = 0;  // expected rest; unknown while samples_per_s is 0
};

// Returns one line of at most `columns` characters, without its end. A narrow
// terminal lacks the bar first, then time, rate, accuracy and loss, then the
// epoch. The count of steps is cut last.
std::string FormatBar(const Progress& progress, int columns);
std::string FormatLine(const Progress& progress);

// "12,345"
std::string FormatCount(std::int64_t count);
// "4.2 s", "12:05", "1:02:03"
std::string FormatElapsed(double seconds);
// "0:42", "12:05", "1:02:03"
std::string FormatDuration(double seconds);
// "0.1234", "1.2e-05", "nan"
std::string FormatLoss(double loss);
// "97.90%", of 0.979
std::string FormatPercent(double fraction);

// Measures the samples per second over the last few seconds.
class RateMeter {
 public:
  // `seconds` is the time on the run's clock, which never goes backwards.
  void Add(double seconds, std::int64_t samples);
  double SamplesPerSecond() const;  // 0: not known yet

 private:
  static constexpr double kWindowSeconds = 5;

  std::deque<std::pair<double, std::int64_t>> marks_{{0.0, 0}};
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_PROGRESS_H_
