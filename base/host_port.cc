#include "base/host_port.h"

#include <arpa/inet.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace troupe::base {

std::string HostPort::ToString() const {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  constexpr int kPortMax = 65535;
  const std::size_t colon = text.rfind(':');
  HostPort address;
  if (colon != absl::string_view::npos) {
    absl::string_view host = text.substr(0, colon);
    const bool brackets =
        absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
    const bool plain =
        host.find_first_of(brackets ? "[]/ " : "[]/ :") == host.npos;
    if (!host.empty() && plain &&
        absl::SimpleAtoi(text.substr(colon + 1), &address.port) &&
        address.port >= 1 && address.port <= kPortMax) {
      address.host = std::string(host);
      return address;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text,
                   "\" is no address; write host:port, such as n1:29400 or "
                   "[fd00::7]:29400, with a port from 1 to ",
                   kPortMax));
}

bool IsLoopbackHost(const std::string& host) {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return (ntohl(v4.s_addr) >> 24) == 127;
  }
  return host == "localhost" || host == "::1";
}

}  // namespace troupe::base
