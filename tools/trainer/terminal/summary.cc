#include "tools/trainer/terminal/summary.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/format_bytes.h"
#include "tools/trainer/terminal/progress.h"

namespace troupe::tools {
namespace {

constexpr char kNothingCounts[] =
    "no test sample counts, since each has a target that is ignored or a class "
    "of weight 0";

// "done: 1,280 steps in 12.3 s (6,638 samples/s)"
std::string FirstLine(const Summary& s) {
  const std::int64_t done = s.steps - s.first_step;
  std::vector<std::string> details;
  if (s.seconds > 0 && s.samples > 0) {
    details.push_back(absl::StrCat(
        FormatCount(static_cast<std::int64_t>(double(s.samples) / s.seconds)),
        " samples/s"));
  }
  if (s.peak_bytes > 0) {
    details.push_back(
        absl::StrCat("at most ", base::FormatBytes(s.peak_bytes), " a rank"));
  }
  return absl::StrCat(
      s.stopped ? "stopped" : "done", ": ", FormatCount(done), " steps in ",
      FormatElapsed(s.seconds),
      details.empty() ? ""
                      : absl::StrCat(" (", absl::StrJoin(details, ", "), ")"),
      "\n");
}

// Returns the line of the steps that updated nothing.
std::string SkippedLine(const Summary& s) {
  if (!s.loss_scale && s.skipped_steps == 0) return "";
  const std::string skipped =
      s.skipped_steps == 0
          ? "no step was skipped"
          : absl::StrCat(FormatCount(s.skipped_steps),
                         " steps were skipped, whose gradients were not "
                         "finite");
  return absl::StrCat(
      s.loss_scale ? absl::StrCat("loss scale: ", *s.loss_scale, "; ") : "",
      skipped, "\n");
}

// Returns the line of the best evaluation, with the path of its checkpoint.
std::string BestLine(const TestResult& best, const RunFiles& files) {
  const std::string what =
      best.accuracy
          ? absl::StrCat("test accuracy ", FormatPercent(*best.accuracy),
                         " (loss ", FormatLoss(best.loss), ")")
          : absl::StrCat("test loss ", FormatLoss(best.loss));
  return absl::StrCat("best: ", what, " after step ", FormatCount(best.step),
                      files.best_checkpoint.empty()
                          ? ""
                          : absl::StrCat(", ", files.best_checkpoint),
                      "\n");
}

std::string FileLines(const RunFiles& files) {
  std::string text;
  if (!files.metrics.empty()) {
    absl::StrAppend(&text, "metrics: ", absl::StrJoin(files.metrics, ", "),
                    "\n");
  }
  if (!files.trace.empty()) {
    absl::StrAppend(&text, "trace: ", files.trace,
                    files.trace_empty
                        ? " is empty, the run ended before trace.first_step; "
                          "add --set trace.first_step=1\n"
                        : " (open it at ui.perfetto.dev)\n");
  }
  if (!files.run_dir.empty()) {
    absl::StrAppend(&text, "run folder: ", files.run_dir,
                    " (as a page: trainer report ", files.run_dir, ")\n");
  }
  return text;
}

// Returns the lines on the last checkpoint and the command that resumes.
std::string CheckpointLines(const RunFiles& files, const NextCommands& next,
                            bool stopped) {
  const std::string where =
      next.where.empty() ? "" : absl::StrCat(", ", next.where);
  if (!files.checkpoint.empty() || !files.resumed_from.empty()) {
    const std::string saved =
        !files.checkpoint.empty()
            ? files.checkpoint
            : absl::StrCat(files.resumed_from, ", from before this run");
    return absl::StrCat("checkpoint: ", saved, "\nto go on", where, ": ",
                        stopped ? next.again : next.longer, " --resume\n");
  }
  if (files.has_folder) {
    return "no checkpoint written: there was no step to save\n";
  }
  return absl::StrCat("no checkpoint written; to keep the model", where, ": ",
                      next.kept, "\n");
}

}  // namespace

bool TestResult::counts() const { return !accuracy || !std::isnan(*accuracy); }

std::string TestResult::ToString(std::int64_t steps) const {
  const std::string after =
      step == steps ? "" : absl::StrCat(" after step ", FormatCount(step));
  if (!counts()) return absl::StrCat("test", after, ": ", kNothingCounts);
  if (!accuracy)
    return absl::StrCat("test loss", after, ": ", FormatLoss(loss));
  return absl::StrCat("test accuracy", after, ": ", FormatPercent(*accuracy),
                      " (loss ", FormatLoss(loss), ")");
}

std::string FormatEvaluation(const TestResult& result, std::int64_t count) {
  const std::string after = absl::StrCat("after step ", result.step, ": ");
  if (count == 0 || !result.counts()) {
    return absl::StrCat(after, kNothingCounts);
  }
  std::string line = absl::StrCat(after, "test loss ", FormatLoss(result.loss));
  if (result.accuracy) {
    absl::StrAppend(&line, ", accuracy ", FormatPercent(*result.accuracy));
  }
  return absl::StrCat(line, " of ", FormatCount(count), " samples");
}

std::string FormatSummary(const Summary& s) {
  std::string text = FirstLine(s);
  if (!s.converged.empty()) {
    absl::StrAppend(&text, "ended early: ", s.converged, "\n");
  }
  text += SkippedLine(s);
  if (s.evaluation) {
    absl::StrAppend(&text, s.evaluation->ToString(s.steps), "\n");
  }
  if (s.best) text += BestLine(*s.best, s.files);
  return absl::StrCat(text, FileLines(s.files),
                      CheckpointLines(s.files, s.next, s.stopped));
}

}  // namespace troupe::tools
