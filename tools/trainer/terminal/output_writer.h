// Writes to the standard output or error output, whose reader may have stopped
// reading.
//
//   OutputWriter out(STDOUT_FILENO);
//   out.Write("step 1\n");   // waits while the pipe is full
//   out.StopWaiting();       // from another thread: a stop was requested
//   out.Write("step 2\n");   // waits a second at most, then drops the text
//
// A program whose output is not read waits, as every program does. A run that
// was asked to stop must not: its checkpoint would never be written.
//
// Threads: any.

#ifndef TOOLS_TRAINER_TERMINAL_OUTPUT_WRITER_H_
#define TOOLS_TRAINER_TERMINAL_OUTPUT_WRITER_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace troupe::tools {

// Time without progress after which output is dropped, once a stop was
// requested.
inline constexpr int kReaderPatienceMsMax = 1000;

class OutputWriter {
 public:
  // `patience_ms_max`: the limit on Write() after StopWaiting(), without
  // progress.
  explicit OutputWriter(int fd, int patience_ms_max = kReaderPatienceMsMax)
      : fd_(fd), patience_ms_max_(patience_ms_max) {}

  // Returns false once text was lost, in this call or an earlier one: by an
  // error of the descriptor, or dropped. After text was dropped, later text is
  // written if the reader has room for it, from the start of a line.
  bool Write(absl::string_view text) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes Write(), also a call in progress, drop text instead of waiting long
  // for a reader.
  void StopWaiting() { stopping_ = true; }

 private:
  // Returns whether the descriptor is ready, or has an error.
  bool WaitUntilReady() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WriteAll(absl::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int fd_;
  const int patience_ms_max_;
  std::atomic<bool> stopping_{false};
  absl::Mutex mutex_;
  bool dropped_ ABSL_GUARDED_BY(mutex_) = false;
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;  // the last line lacks its end
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_TERMINAL_OUTPUT_WRITER_H_
