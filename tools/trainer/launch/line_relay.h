// Hands on the lines that several processes write, whole, with a mark in front
// that says whose they are.
//
//   OutputQueue out(STDOUT_FILENO);
//   LineRelay relay({/*mark=*/"[1] ", /*clears_line=*/false}, &out);
//   relay.Add("step 1\nste");  // "[1] step 1\n"
//   relay.Add("p 2");
//   relay.End();               // "[1] step 2\n"
//   relay.last_line();         // "step 2"
//   while (out.waiting() > 0) out.Flush();
//
// Threads: one.

#ifndef TOOLS_TRAINER_LAUNCH_LINE_RELAY_H_
#define TOOLS_TRAINER_LAUNCH_LINE_RELAY_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace troupe::tools {

// What waits to be written. Writes no more at once than a pipe takes that says
// that it is ready, so that nobody who polls is ever stuck in a write.
class OutputQueue {
 public:
  explicit OutputQueue(int fd) : fd_(fd) {}

  void Add(absl::string_view text);
  // Writes a piece; call it when `fd` is ready. Where nobody reads any more,
  // everything is dropped, now and later.
  void Flush();
  void Drop();

  std::size_t waiting() const { return text_.size() - begin_; }
  int fd() const { return fd_; }

 private:
  const int fd_;
  bool dropped_ = false;
  std::string text_;
  std::size_t begin_ = 0;  // of what waits in `text_`
};

class LineRelay {
 public:
  struct Style {
    std::string mark;          // before each line
    bool clears_line = false;  // another program draws on the same terminal
  };
  // `out` outlives this.
  LineRelay(Style style, OutputQueue* out)
      : style_(std::move(style)), out_(out) {}

  void Add(absl::string_view bytes);
  // No more comes: what has no end gets one.
  void End();

  // The last one that is not blank, cut to kLastLineBytesMax.
  const std::string& last_line() const { return last_line_; }

 private:
  void Emit(absl::string_view line);

  const Style style_;
  OutputQueue* const out_;
  std::string open_;  // a line without its end
  std::string last_line_;
};

inline constexpr std::size_t kLineBytesMax = 64 << 10;  // longer ones are cut
inline constexpr std::size_t kLastLineBytesMax = 2000;

// "[1] ", in a colour of its own.
std::string MarkOf(int process, bool colored);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_LINE_RELAY_H_
