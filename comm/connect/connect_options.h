// Options for connecting the processes of a job.
//
//   ConnectOptions options;
//   options.process = 1;
//   options.processes = 4;
//   options.token.fill(7);  // use random bytes: a secret of the job
//   if (absl::Status s = options.Validate(); !s.ok()) return s;

#ifndef COMM_CONNECT_CONNECT_OPTIONS_H_
#define COMM_CONNECT_CONNECT_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm/connect/handshake.h"
#include "comm/connect/transport.h"
#include "comm/shm/ring.h"
#include "comm/tcp/tls_stream.h"

namespace troupe::comm {

struct ConnectOptions {
  int process = 0;
  int processes = 1;
  JobToken token{};  // never all zero
  // Number of restarts of the job: processes of another generation are refused.
  std::uint64_t generation = 0;
  std::string key_prefix = "links";  // prefix of all keys in the store

  // Transport, the same for all processes. ConnectLinks() knows kAuto, kShm and
  // kTcp; transports.h has the others.
  Transport transport = Transport::kAuto;
  std::string bind_address = "127.0.0.1";  // numeric
  // Name or number by which other processes reach it; empty: bind_address.
  std::string advertised_host;
  // Key of this host; empty: HostKey(). Processes with equal keys share memory.
  std::string host_key;
  // If set, TCP links are encrypted, and both ends present certificates; must
  // be set in all processes or in none.
  std::optional<TlsFiles> tls;
  // Size of the buffer for each direction of a link through shared memory; a
  // power of two.
  std::size_t ring_bytes = kRingBytesMin;

  absl::Duration timeout = absl::Seconds(30);
  absl::Duration stranger_timeout = absl::Seconds(2);

  // Checks all fields.
  //   kInvalidArgument: names the field that is invalid.
  absl::Status Validate() const;
};

}  // namespace troupe::comm

#endif  // COMM_CONNECT_CONNECT_OPTIONS_H_
