// Declares names that the usage comments in comm/tcp/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_TCP_H_
#define TESTS_USAGE_WORDS_COMM_TCP_H_

#include <sys/uio.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/files/owned_fd.h"
#include "comm/link.h"

namespace troupe::comm::usage {
namespace tcp_link_h {
extern base::OwnedFd socket;
}

namespace byte_stream_h {
extern base::OwnedFd socket;
extern iovec pieces[2];
void WaitForRoom();
}  // namespace byte_stream_h

namespace tls_stream_h {
extern base::OwnedFd socket;
void Wait(int fd, short events);
}  // namespace tls_stream_h

namespace frame_reader_h {
extern const int fd;
char* place(const Frame& frame);
void Show(const Frame& frame, const char* payload);
}  // namespace frame_reader_h

}  // namespace troupe::comm::usage

#endif  // TESTS_USAGE_WORDS_COMM_TCP_H_
