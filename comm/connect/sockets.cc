#include "comm/connect/sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/check.h"

namespace troupe::comm {
namespace {

constexpr int kBacklog = 1024;
constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(const std::string& host,
                                  const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot find the address of \"", host, "\": ", ::gai_strerror(error),
        "; give an address, or a name that this host knows"));
  }
  return Addresses(list);
}

std::string TcpName(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host,
                    sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "an unknown address";
  }
  const bool v6 = address.ss_family == AF_INET6;
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]:" : ":", port);
}

absl::Status Begin(int socket, const sockaddr* address, socklen_t length,
                   const std::string& name) {
  if (::connect(socket, address, length) == 0 || errno == EINPROGRESS) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot connect to ", name));
}

}  // namespace

absl::StatusOr<Listener> ListenTcp(const std::string& address) {
  TROUPE_ASSIGN_OR_RETURN(const Addresses found,
                          Resolve(address, "0", AI_PASSIVE | AI_NUMERICHOST));
  Listener listener;
  listener.socket.reset(::socket(found->ai_family, kSocketFlags, 0));
  const int socket = listener.socket.get();
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (socket < 0 || ::bind(socket, found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket, kBacklog) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) !=
          0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot listen on ", address));
  }
  listener.name = TcpName(bound, length);
  return listener;
}

absl::StatusOr<Listener> ListenUnix() {
  Listener listener;
  listener.socket.reset(::socket(AF_UNIX, kSocketFlags, 0));
  const int socket = listener.socket.get();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t length = sizeof(address);
  // The address ends after its family, so that the system chooses a name.
  if (socket < 0 ||
      ::bind(socket, reinterpret_cast<sockaddr*>(&address),
             offsetof(sockaddr_un, sun_path)) != 0 ||
      ::listen(socket, kBacklog) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) !=
          0) {
    return absl::ErrnoToStatus(errno, "cannot listen on a Unix socket");
  }
  listener.name.assign(address.sun_path + 1,
                       length - offsetof(sockaddr_un, sun_path) - 1);
  return listener;
}

base::OwnedFd Accept(const Listener& listener) {
  return base::OwnedFd(::accept4(listener.socket.get(), nullptr, nullptr,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC));
}

absl::StatusOr<base::OwnedFd> ConnectTcp(const std::string& name, int attempt) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is no address; write host:port"));
  }
  absl::string_view host = absl::string_view(name).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  TROUPE_ASSIGN_OR_RETURN(
      const Addresses found,
      Resolve(std::string(host), name.substr(colon + 1), /*flags=*/0));
  std::vector<const addrinfo*> all;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    all.push_back(one);
  }
  const addrinfo& one = *all[attempt % all.size()];
  base::OwnedFd socket(::socket(one.ai_family, kSocketFlags, 0));
  if (!socket.valid()) return absl::ErrnoToStatus(errno, "socket");
  TROUPE_RETURN_IF_ERROR(
      Begin(socket.get(), one.ai_addr, one.ai_addrlen, name));
  return socket;
}

absl::StatusOr<base::OwnedFd> ConnectUnix(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is no name of a Unix socket"));
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  base::OwnedFd socket(::socket(AF_UNIX, kSocketFlags, 0));
  if (!socket.valid()) return absl::ErrnoToStatus(errno, "socket");
  TROUPE_RETURN_IF_ERROR(Begin(
      socket.get(), reinterpret_cast<const sockaddr*>(&address),
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()),
      absl::StrCat("the Unix socket ", name)));
  return socket;
}

std::string PeerName(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) !=
      0) {
    return "an unknown address";
  }
  if (address.ss_family != AF_UNIX) return TcpName(address, length);
  ucred other{};
  length = sizeof(other);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) != 0 ||
      other.pid <= 0) {
    return "this host";
  }
  return absl::StrCat("pid ", other.pid, " on this host");
}

}  // namespace troupe::comm
