// How the processes of a job are connected.
//
//   ConnectOptions options;
//   options.process = 1;
//   options.processes = 4;
//   options.token.fill(7);  // random, and a secret of the job
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
  // How often the job was restarted: others are turned away.
  std::uint64_t generation = 0;
  std::string key_prefix = "links";  // of all keys in the store

  // The same for all processes. Not kMpi: see comm/mpi/mpi_process.h.
  Transport transport = Transport::kAuto;
  std::string bind_address = "127.0.0.1";  // a number
  // A name or number by which others reach it; empty: bind_address.
  std::string advertised_host;
  // Empty: HostKey(). Processes with the same one share memory.
  std::string host_key;
  // Where set, links by TCP are encrypted, and both ends show certificates; for
  // all processes alike.
  std::optional<TlsFiles> tls;
  // Room of each direction of a link through shared memory; a power of two.
  std::size_t ring_bytes = kRingBytesMin;

  absl::Duration timeout = absl::Seconds(30);
  absl::Duration stranger_timeout = absl::Seconds(2);

  //   kInvalidArgument: what cannot be, named.
  absl::Status Validate() const;
};

}  // namespace troupe::comm

#endif  // COMM_CONNECT_CONNECT_OPTIONS_H_
