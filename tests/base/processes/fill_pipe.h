// Fills a pipe, so that the next write to it would block.
//
//   int ends[2];
//   ASSERT_EQ(pipe(ends), 0);
//   FillPipe(ends[1]);

#ifndef TESTS_BASE_PROCESSES_FILL_PIPE_H_
#define TESTS_BASE_PROCESSES_FILL_PIPE_H_

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace troupe::base {

// Returns the number of bytes written. `write_end` blocks, before and after.
inline std::size_t FillPipe(int write_end) {
  fcntl(write_end, F_SETFL, O_NONBLOCK);
  const std::string piece(4096, '.');
  std::size_t filled = 0;
  while (write(write_end, piece.data(), piece.size()) > 0) {
    filled += piece.size();
  }
  fcntl(write_end, F_SETFL, 0);
  return filled;
}

}  // namespace troupe::base

#endif  // TESTS_BASE_PROCESSES_FILL_PIPE_H_
