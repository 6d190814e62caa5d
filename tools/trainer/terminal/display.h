// Shows the progress of a run: on a terminal one line that is redrawn,
// elsewhere a line every `log_every` steps. Other messages are printed in
// between.
//
//   Display display({/*bar=*/true, columns, /*log_every=*/100}, write);
//   display.Print("training lenet");
//   display.ShowStep(progress, /*seconds=*/1.5);
//   display.End();
//
// Threads: any.

#ifndef TOOLS_TRAINER_TERMINAL_DISPLAY_H_
#define TOOLS_TRAINER_TERMINAL_DISPLAY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tools/trainer/terminal/progress.h"

namespace troupe::tools {

class Display {
 public:
  struct Options {
    bool bar = false;
    // Returns the width of the terminal. Called each time the bar is written,
    // since windows are resized.
    std::function<int()> columns = [] { return 80; };
    std::int64_t log_every = 100;  // steps between lines without a bar
    bool tables = false;           // whether callers should print tables
  };
  using Write = std::function<void(absl::string_view)>;

  Display(const Options& options, Write write)
      : options_(options), write_(std::move(write)) {}

  bool shows_tables() const { return options_.tables; }
  // Prints one or more lines; `text` lacks the last line end.
  void Print(const std::string& text) ABSL_LOCKS_EXCLUDED(mutex_);
  // Shows a step at `seconds` on the run's clock. A bar is drawn at most ten
  // times a second.
  void ShowStep(const Progress& progress, double seconds)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the bar and leaves the cursor at the start of a line.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string Bar() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const Write write_;
  absl::Mutex mutex_;
  // Progress that the bar on the screen shows; none: there is no bar.
  std::optional<Progress> shown_ ABSL_GUARDED_BY(mutex_);
  double drawn_at_ ABSL_GUARDED_BY(mutex_) = -1;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_DISPLAY_H_
