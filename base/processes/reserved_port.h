// Reserves a port of this host for a process that will be started.
//
//   TROUPE_ASSIGN_OR_RETURN(ReservedPort port, ReservedPort::OnLoopback());
//   Show(port.number());
//
// The port stays bound, without listening, until the object is destroyed, so
// the system does not assign it to a process that asks for any free port. The
// process that it is for binds with SO_REUSEADDR. Threads: any.

#ifndef BASE_PROCESSES_RESERVED_PORT_H_
#define BASE_PROCESSES_RESERVED_PORT_H_

#include <utility>

#include "absl/status/statusor.h"

namespace troupe::base {

class ReservedPort {
 public:
  // Reserves a free port of 127.0.0.1.
  static absl::StatusOr<ReservedPort> OnLoopback();
  ~ReservedPort();
  ReservedPort(ReservedPort&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), number_(other.number_) {}
  ReservedPort& operator=(ReservedPort&&) = delete;

  int number() const { return number_; }

 private:
  ReservedPort(int fd, int number) : fd_(fd), number_(number) {}

  int fd_;
  int number_;
};

}  // namespace troupe::base

#endif  // BASE_PROCESSES_RESERVED_PORT_H_
