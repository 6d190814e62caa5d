// "host:port" as text.
//
//   TROUPE_ASSIGN_OR_RETURN(HostPort master, ParseHostPort("n1:29400"));
//   master.host;        // "n1"
//   master.ToString();  // "n1:29400"
//
// An IPv6 address stands in brackets: "[::1]:29400".

#ifndef BASE_HOST_PORT_H_
#define BASE_HOST_PORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::base {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;      // 1 to 65535

  std::string ToString() const;
};

//   kInvalidArgument: `text` has another form.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// Whether `host` is this machine's loopback, which no other machine reaches:
// "localhost", 127.0.0.0/8 or ::1. Does not resolve names.
bool IsLoopbackHost(const std::string& host);

}  // namespace troupe::base

#endif  // BASE_HOST_PORT_H_
