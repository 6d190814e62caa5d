#include "tools/trainer/terminal/display.h"

#include "absl/strings/str_cat.h"

namespace troupe::tools {
namespace {

constexpr double kRedrawSeconds = 0.1;
// Moves the cursor to the start of the line and clears the line.
constexpr char kClearLine[] = "\r\x1b[K";

}  // namespace

void Display::Print(const std::string& text) {
  absl::MutexLock lock(&mutex_);
  write_(shown_ ? absl::StrCat(kClearLine, text, "\n", Bar())
                : absl::StrCat(text, "\n"));
}

std::string Display::Bar() const {
  // The last column stays free: some terminals wrap when it is filled.
  return FormatBar(*shown_, options_.columns() - 1);
}

void Display::ShowStep(const Progress& progress, double seconds) {
  absl::MutexLock lock(&mutex_);
  const bool last = progress.step == progress.steps;
  if (!options_.bar) {
    if (last || progress.step % options_.log_every == 0) {
      write_(absl::StrCat(FormatLine(progress), "\n"));
    }
    return;
  }
  if (!last && drawn_at_ >= 0 && seconds - drawn_at_ < kRedrawSeconds) return;
  drawn_at_ = seconds;
  shown_ = progress;
  write_(absl::StrCat(kClearLine, Bar()));
}

void Display::End() {
  absl::MutexLock lock(&mutex_);
  if (shown_) write_("\n");
  shown_.reset();
}

}  // namespace troupe::tools
