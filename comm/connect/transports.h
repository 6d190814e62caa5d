// The table of transports between the processes of a job. Configuration, its
// help, the doctor, benchmarks and jobs go by its rows: a new transport needs
// its folder, an enumerator (transport.h), and a row here with the function
// that connects processes by it.
//
//   const TransportRule* rule = FindTransport("tcp");
//   TROUPE_ASSIGN_OR_RETURN(PeerLinks peers, rule->connect(options, store));
//   peers.links[1]->Send(frame, payload, /*done=*/nullptr, /*copy=*/true);
//
// Threads: any; connect() blocks its caller, for ConnectOptions::timeout at
// most.

#ifndef COMM_CONNECT_TRANSPORTS_H_
#define COMM_CONNECT_TRANSPORTS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "comm/connect/connect_options.h"
#include "comm/connect/transport.h"
#include "comm/link.h"
#include "comm/store.h"

namespace troupe::comm {

// The links of a process to all others.
struct PeerLinks {
  // One for each process; null for this one.
  std::vector<std::unique_ptr<Link>> links;
  // Called once after the job has failed: gives up the transport's library,
  // whose end would wait for processes that may be dead. Null if there is none.
  std::function<void(const absl::Status& why)> give_up;
};

struct TransportRule {
  Transport transport;
  absl::string_view name;  // value of comm.transport, and name in texts
  // How tensors travel, as part of a sentence: "by TCP".
  absl::string_view help;
  // Processes that it connects, as the doctor says it: "to others". Empty for
  // kAuto, which stands for other transports.
  absl::string_view reach;
  // Whether the processes of one host may share tensors, too
  // (shm/shared_memory.h).
  bool shares_memory;
  // Whether mpirun must have started the processes.
  bool by_mpirun;
  // Name of the library that connects the processes and sends their data, as it
  // is; a job owns it. Empty: ConnectLinks() makes the links, and encrypts
  // those that leave the host.
  absl::string_view library;
  // Returns name and version of the library, or why it is not available. Null
  // if there is no library: the transport is available everywhere.
  absl::StatusOr<std::string> (*version)();
  // Connects this process to the others: all call it. Processes publish their
  // addresses in the store, as text that only this function reads.
  absl::StatusOr<PeerLinks> (*connect)(const ConnectOptions& options,
                                       Store& store);
};

// Returns the rows, in the order of Transport.
absl::Span<const TransportRule> Transports();

const TransportRule& RuleOf(Transport transport);

// Returns null if no transport has this name.
const TransportRule* FindTransport(absl::string_view name);

// Returns the names of all transports, in their order: choices of
// comm.transport.
std::vector<std::string> TransportNames();

}  // namespace troupe::comm

#endif  // COMM_CONNECT_TRANSPORTS_H_
