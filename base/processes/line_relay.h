// Forwards the output of several processes in whole lines, with a mark in front
// that tells the process.
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

#ifndef BASE_PROCESSES_LINE_RELAY_H_
#define BASE_PROCESSES_LINE_RELAY_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace troupe::base {

// A queue of text to write to a descriptor, which never blocks (WriteReady()).
class OutputQueue {
 public:
  explicit OutputQueue(int fd) : fd_(fd) {}

  void Add(absl::string_view text);
  // Writes a piece. Call it when `fd` is ready. If the reader has gone, drops
  // all text, now and later.
  void Flush();
  void Drop();

  std::size_t waiting() const { return text_.size() - begin_; }
  int fd() const { return fd_; }

 private:
  const int fd_;
  bool dropped_ = false;
  std::string text_;
  std::size_t begin_ = 0;  // start of the unwritten part of `text_`
};

class LineRelay {
 public:
  struct Style {
    std::string mark;          // before each line
    bool clears_line = false;  // erases a line that another program drew
  };
  // `out` must outlive the relay.
  LineRelay(Style style, OutputQueue* out)
      : style_(std::move(style)), out_(out) {}

  void Add(absl::string_view bytes);
  // Ends the output: completes an unfinished line.
  void End();

  // Returns the last line that is not blank, cut to kLastLineBytesMax.
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

// Returns "[1] ", in a colour that depends on the process.
std::string MarkOf(int process, bool colored);

}  // namespace troupe::base

#endif  // BASE_PROCESSES_LINE_RELAY_H_
