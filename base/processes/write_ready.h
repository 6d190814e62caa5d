// Writes to a descriptor without waiting for its reader.
//
//   pollfd entry = {STDOUT_FILENO, POLLOUT, 0};
//   poll(&entry, 1, /*timeout=*/-1);
//   const ssize_t n = WriteReady(STDOUT_FILENO, "step 1\n");
//
// Threads: any.

#ifndef BASE_PROCESSES_WRITE_READY_H_
#define BASE_PROCESSES_WRITE_READY_H_

#include <sys/types.h>

#include "absl/strings/string_view.h"

namespace troupe::base {

// Writes the beginning of `text` to `fd`, for which poll() has reported
// POLLOUT. Returns what write() returns. Does not block on a pipe, with a name
// or without, even if another process has filled it since the poll: EAGAIN. (It
// does if the kernel is older than 6.4, or the pipe has a name, and /proc is
// missing or denies access to the pipe.)
ssize_t WriteReady(int fd, absl::string_view text);

}  // namespace troupe::base

#endif  // BASE_PROCESSES_WRITE_READY_H_
