// Formats the results of a run: a line for each evaluation, and the last lines.
//
//   Summary summary;
//   summary.steps = 1280;
//   summary.evaluation = TestResult{/*step=*/1280, /*loss=*/0.0712, 0.979};
//   summary.next.kept = "trainer train --set checkpoint.dir=checkpoints";
//   std::string text = FormatSummary(summary);
//   // done: 1,280 steps in 12.3 s
//   // test accuracy: 97.90% (loss 0.0712)
//   // no checkpoint written; to keep the model: trainer train --set ...

#ifndef TOOLS_TRAINER_TERMINAL_SUMMARY_H_
#define TOOLS_TRAINER_TERMINAL_SUMMARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::tools {

// Result on the samples for tests after a step.
struct TestResult {
  std::int64_t step = 0;
  double loss = 0;
  std::optional<double> accuracy;  // 0 to 1; classification only

  // Whether a sample counted: otherwise accuracy is NaN.
  bool counts() const;
  // "test accuracy after step 640: 97.90% (loss 0.0712)", or without the
  // accuracy; `steps` is the number of the run, of which the last is not named.
  std::string ToString(std::int64_t steps) const;
};

// "after step 640: test loss 0.0712, accuracy 97.90% of 2,048 samples", or that
// no sample counts: `count` is 0, or the accuracy NaN.
std::string FormatEvaluation(const TestResult& result, std::int64_t count);

// Paths of files that a run has written; empty: none.
struct RunFiles {
  std::vector<std::string> metrics;
  std::string trace;
  bool trace_empty = false;
  std::string run_dir;
  std::string checkpoint;       // the last one
  std::string best_checkpoint;  // the one of the best evaluation
  std::string resumed_from;     // a checkpoint from before this run
  bool has_folder = false;      // whether checkpoint.dir is set
};

// Commands to type next (FormatCommand).
struct NextCommands {
  std::string again;   // for this run again
  std::string kept;    // for the same with a folder for its checkpoints
  std::string longer;  // for a longer one
  std::string where;   // StartWords::where of these commands
};

// Contents of the last lines of a run.
struct Summary {
  std::int64_t first_step = 0;
  std::int64_t steps = 0;  // total number committed
  std::int64_t samples = 0;
  double seconds = 0;
  // Peak bytes of tensors on any one rank; 0: unknown.
  std::int64_t peak_bytes = 0;
  bool stopped = false;  // whether it ended before all steps were done
  // Sentence that says why it ended early (JobResult::converged); empty: it did
  // not.
  std::string converged;
  std::int64_t skipped_steps = 0;
  std::optional<double> loss_scale;  // scale of the last step; none if constant
  // The last evaluation, which may be of a step before a stop.
  std::optional<TestResult> evaluation;
  // The best one, by checkpoint.best_metric; none: not tracked.
  std::optional<TestResult> best;
  RunFiles files;
  NextCommands next;
};
// Returns the lines, each with its end.
std::string FormatSummary(const Summary& summary);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_SUMMARY_H_
