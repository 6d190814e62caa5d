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
#include <vector>

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

// "after step 640: test loss 0.0712, accuracy 97.90% of 2,048 samples", or that
// no sample counts: `count` is 0, or the accuracy NaN.
std::string FormatEvaluation(std::int64_t step, double loss,
                             std::optional<double> accuracy,
                             std::int64_t count);

// Contents of the last lines of a run.
struct Summary {
  std::int64_t first_step = 0;
  std::int64_t steps = 0;  // total number committed
  std::int64_t samples = 0;
  double seconds = 0;
  std::int64_t peak_bytes =
      0;                 // peak bytes of tensors on any one rank; 0: unknown
  bool stopped = false;  // whether it ended before all steps were done
  // Sentence that says why it ended early (JobResult::converged); empty: it did
  // not.
  std::string converged;
  std::int64_t skipped_steps = 0;
  std::optional<double> loss_scale;  // scale of the last step; none if constant
  bool evaluated = false;
  std::int64_t evaluated_at = 0;  // steps; fewer than `steps` after a stop
  double test_loss = 0;
  std::optional<double> test_accuracy;
  // Best evaluation of the run, by checkpoint.best_metric; 0: not tracked.
  std::int64_t best_at = 0;
  double best_loss = 0;
  std::optional<double> best_accuracy;
  std::string best_checkpoint;       // path; empty: none
  std::vector<std::string> metrics;  // paths of files with metrics
  bool has_folder = false;           // whether checkpoint.dir is set
  std::string checkpoint;            // path of the last checkpoint written
  std::string resumed_from;          // path
  std::string trace;                 // path
  bool trace_empty = false;
  std::string run_dir;  // path; empty: none
  // Commands to type next (FormatCommand): for this run again, for the same
  // with a folder for its checkpoints, and for a longer one.
  std::string again;
  std::string kept;
  std::string where;  // StartWords::where of these commands
  std::string longer;
};
// Returns the lines, each with its end.
std::string FormatSummary(const Summary& summary);

// "12,345"
std::string FormatCount(std::int64_t count);
// "4.2 s", "12:05", "1:02:03"
std::string FormatElapsed(double seconds);
// "0:42", "12:05", "1:02:03"
std::string FormatDuration(double seconds);
// "0.1234", "1.2e-05", "nan"
std::string FormatLoss(double loss);

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
