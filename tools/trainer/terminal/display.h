// Shows a run: on a terminal one line that is drawn over and over, elsewhere a
// line every so many steps; other messages go between.
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
    // Width of the terminal, asked each time the bar is written: windows
    // change.
    std::function<int()> columns = [] { return 80; };
    std::int64_t log_every = 100;  // steps; without a bar
    bool tables = false;           // whether whoever prints adds tables
  };
  using Write = std::function<void(absl::string_view)>;

  Display(const Options& options, Write write)
      : options_(options), write_(std::move(write)) {}

  bool shows_tables() const { return options_.tables; }
  // One or more lines, without the last line end.
  void Print(const std::string& text) ABSL_LOCKS_EXCLUDED(mutex_);
  // `seconds` on the run's clock: a bar is drawn ten times a second at most.
  void ShowStep(const Progress& progress, double seconds)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Leaves the cursor at the start of a line.
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::string Bar() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const Write write_;
  absl::Mutex mutex_;
  // What the bar on the screen shows; none: there is no bar.
  std::optional<Progress> shown_ ABSL_GUARDED_BY(mutex_);
  double drawn_at_ ABSL_GUARDED_BY(mutex_) = -1;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_DISPLAY_H_
