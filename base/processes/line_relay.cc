#include "base/processes/line_relay.h"

#include <errno.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/processes/write_ready.h"

namespace troupe::base {
namespace {

constexpr char kClearLine[] = "\r\x1b[K";

}  // namespace

void OutputQueue::Add(absl::string_view text) {
  if (!dropped_) text_.append(text.data(), text.size());
}

void OutputQueue::Flush() {
  const ssize_t n =
      WriteReady(fd_, absl::string_view(text_.data() + begin_, waiting()));
  if (n < 0 && errno != EINTR && errno != EAGAIN) return Drop();
  if (n > 0) begin_ += static_cast<std::size_t>(n);
  if (begin_ < text_.size() && begin_ < kLineBytesMax) return;
  text_.erase(0, begin_);
  begin_ = 0;
}

void OutputQueue::Drop() {
  dropped_ = true;
  text_.clear();
  begin_ = 0;
}

void LineRelay::Add(absl::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t room = kLineBytesMax - open_.size();
    const std::size_t end = bytes.substr(0, room).find('\n');
    const bool is_whole = end != absl::string_view::npos;
    const absl::string_view piece = bytes.substr(0, is_whole ? end : room);
    open_.append(piece.data(), piece.size());
    bytes.remove_prefix(piece.size() + (is_whole ? 1 : 0));
    if (!is_whole && open_.size() < kLineBytesMax) return;
    Emit(open_);
    open_.clear();
  }
}

void LineRelay::End() {
  if (!open_.empty()) Emit(open_);
  open_.clear();
}

void LineRelay::Emit(absl::string_view line) {
  out_->Add(absl::StrCat(style_.clears_line ? kClearLine : "", style_.mark,
                         line, "\n"));
  const absl::string_view words = absl::StripAsciiWhitespace(line);
  if (!words.empty()) {
    last_line_ = std::string(words.substr(0, kLastLineBytesMax));
  }
}

std::string MarkOf(int process, bool colored) {
  if (!colored) return absl::StrCat("[", process, "] ");
  constexpr int kFirstColor = 31, kColors = 6;  // red to cyan
  return absl::StrCat("\x1b[", kFirstColor + process % kColors, "m[", process,
                      "]\x1b[0m ");
}

}  // namespace troupe::base
