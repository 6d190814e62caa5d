#include "actors/cluster/host_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(const std::string& host, int port,
                                  int socket_type) {
  addrinfo hints = {};
  hints.ai_socktype = socket_type;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error == 0) return Addresses(found);
  return absl::NotFoundError(
      absl::StrCat("host ", host, ": ", ::gai_strerror(error),
                   "; give its address, or a name that this host knows"));
}

base::OwnedFd MakeSocket(int family, int type) {
  return base::OwnedFd(
      ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool IsPublicV4(std::uint32_t a) {
  const auto in = [a](std::uint32_t network, int bits) {
    return (a >> (32 - bits)) == (network >> (32 - bits));
  };
  return !(in(0x7f000000, 8) ||   // 127.0.0.0/8
           in(0x0a000000, 8) ||   // 10.0.0.0/8
           in(0xac100000, 12) ||  // 172.16.0.0/12
           in(0xc0a80000, 16) ||  // 192.168.0.0/16
           in(0xa9fe0000, 16) ||  // 169.254.0.0/16
           in(0x64400000, 10));   // 100.64.0.0/10
}

bool IsPublic(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return IsPublicV4(ntohl(v4->sin_addr.s_addr));
  }
  if (address->sa_family != AF_INET6) return true;
  const in6_addr& v6 =
      reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    std::uint32_t v4;
    memcpy(&v4, v6.s6_addr + 12, sizeof(v4));
    return IsPublicV4(ntohl(v4));
  }
  return !(IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_LINKLOCAL(&v6) ||
           (v6.s6_addr[0] & 0xfe) == 0xfc);
}

// Returns the numeric form of an address; empty if it has none.
std::string Numeric(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  const int error = ::getnameinfo(address, size, text, sizeof(text), nullptr, 0,
                                  NI_NUMERICHOST);
  return error == 0 ? std::string(text) : std::string();
}

// Tries to connect `socket`. Returns 0, or an errno.
int TryConnect(const base::OwnedFd& socket, const addrinfo& address,
               absl::Duration timeout) {
  if (!socket.valid()) return errno;
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) return errno;
  pollfd entry = {socket.get(), POLLOUT, 0};
  const int ms = static_cast<int>(absl::ToInt64Milliseconds(timeout)) + 1;
  if (::poll(&entry, 1, ms) != 1) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

// Tries to listen at an address. Returns 0, or an errno.
int TryBind(const addrinfo& address) {
  const base::OwnedFd socket = MakeSocket(address.ai_family, SOCK_STREAM);
  if (!socket.valid()) return errno;
  // A port of connections that have just ended is free.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool listens =
      ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 &&
      ::listen(socket.get(), /*backlog=*/1) == 0;
  return listens ? 0 : errno;
}

}  // namespace

absl::StatusOr<bool> IsPublicAddress(const std::string& host) {
  TROUPE_ASSIGN_OR_RETURN(const Addresses all, Resolve(host, 0, SOCK_STREAM));
  for (const addrinfo* each = all.get(); each != nullptr;
       each = each->ai_next) {
    if (IsPublic(each->ai_addr)) return true;
  }
  return false;
}

absl::StatusOr<std::vector<std::string>> AddressesOf(const std::string& host) {
  TROUPE_ASSIGN_OR_RETURN(const Addresses all, Resolve(host, 0, SOCK_STREAM));
  std::vector<std::string> found;
  for (const addrinfo* each = all.get(); each != nullptr;
       each = each->ai_next) {
    std::string text = Numeric(each->ai_addr, each->ai_addrlen);
    if (!text.empty() && !absl::c_linear_search(found, text)) {
      found.push_back(std::move(text));
    }
  }
  return found;
}

absl::StatusOr<base::OwnedFd> OpenConnection(const std::string& host, int port,
                                             absl::Duration timeout) {
  TROUPE_ASSIGN_OR_RETURN(const Addresses all,
                          Resolve(host, port, SOCK_STREAM));
  int error = ENOENT;
  for (const addrinfo* each = all.get(); each != nullptr;
       each = each->ai_next) {
    base::OwnedFd socket = MakeSocket(each->ai_family, SOCK_STREAM);
    error = TryConnect(socket, *each, timeout);
    if (error == 0) return socket;
  }
  return absl::UnavailableError(absl::StrCat(
      HostAndPort(host, port), ": ", std::generic_category().message(error)));
}

absl::Status TryListening(const std::string& host, int port) {
  TROUPE_ASSIGN_OR_RETURN(const Addresses all,
                          Resolve(host, port, SOCK_STREAM));
  const int error = TryBind(*all);
  if (error == 0) return absl::OkStatus();
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(
        "the port is taken by another process; choose a free one, or end that "
        "process (ss -ltnp shows it)");
  }
  if (error == EADDRNOTAVAIL) {
    return absl::UnavailableError(
        "this machine does not have the address; process 0 must run on the "
        "machine that does");
  }
  return absl::UnavailableError(
      absl::StrCat(std::generic_category().message(error),
                   error == EACCES ? "; choose a port from 1024 on" : ""));
}

std::string HostAndPort(const std::string& host, int port) {
  const bool v6 = absl::StrContains(host, ':');
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]:" : ":", port);
}

absl::StatusOr<std::string> LocalAddressTo(const std::string& host, int port) {
  TROUPE_ASSIGN_OR_RETURN(const Addresses all, Resolve(host, port, SOCK_DGRAM));
  for (const addrinfo* each = all.get(); each != nullptr;
       each = each->ai_next) {
    const base::OwnedFd socket = MakeSocket(each->ai_family, SOCK_DGRAM);
    sockaddr_storage mine = {};
    socklen_t size = sizeof(mine);
    auto* const address = reinterpret_cast<sockaddr*>(&mine);
    if (!socket.valid() ||
        ::connect(socket.get(), each->ai_addr, each->ai_addrlen) != 0 ||
        ::getsockname(socket.get(), address, &size) != 0) {
      continue;
    }
    std::string text = Numeric(address, size);
    if (!text.empty()) return text;
  }
  return absl::UnavailableError(absl::StrCat(
      "no way from this machine to ", host, "; check its network (ip route)"));
}

std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

}  // namespace troupe::actors
