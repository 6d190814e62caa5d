#include "base/processes/reserved_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace troupe::base {

absl::StatusOr<ReservedPort> ReservedPort::OnLoopback() {
  ReservedPort port(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), 0);
  const int on = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (port.fd_ < 0 ||
      setsockopt(port.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(port.fd_, any, size) != 0 ||
      getsockname(port.fd_, any, &size) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot get a port of 127.0.0.1: ",
                     std::generic_category().message(errno),
                     "; choose one by --master=127.0.0.1:port"));
  }
  port.number_ = ntohs(address.sin_port);
  return port;
}

ReservedPort::~ReservedPort() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace troupe::base
