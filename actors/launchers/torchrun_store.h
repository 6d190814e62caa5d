// A client of torchrun's key-value store, which listens at MASTER_PORT itself.
// So process 0 listens at another port and puts its address into the store; the
// other processes wait for it there.
//
//   TorchrunStore store;
//   store.address = {"127.0.0.1", 29500};  // MASTER_ADDR, MASTER_PORT
//   store.key = "troupe/none/0/address";   // Placement::store_key
//   TROUPE_RETURN_IF_ERROR(PublishAddress(store, {"10.0.0.7", 40112}));
//   TROUPE_ASSIGN_OR_RETURN(base::HostPort master, WaitAddress(store));
//
// The protocol is the part of c10d::TCPStore of PyTorch 2.15 that is needed
// here. It is documented only in its source
// (torch/csrc/distributed/c10d/TCPStoreBackend.hpp). An answer longer than
// kAddressBytesMax is rejected.
//
// Blocks for at most `timeout`, connecting included. Threads: any.

#ifndef ACTORS_LAUNCHERS_TORCHRUN_STORE_H_
#define ACTORS_LAUNCHERS_TORCHRUN_STORE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/host_port.h"

namespace troupe::actors {

inline constexpr int kAddressBytesMax = 300;

struct TorchrunStore {
  base::HostPort address;
  std::string key;
  absl::Duration timeout = absl::Seconds(60);
};

// Publishes, or waits for, the address of process 0. Errors of both:
//   kUnavailable: nothing listens there, or the connection was closed.
//   kDeadlineExceeded: the store does not answer; of WaitAddress() also:
//     process 0 has not published its address.
//   kDataLoss: the answer does not follow the protocol.
absl::Status PublishAddress(const TorchrunStore& store,
                            const base::HostPort& own);
absl::StatusOr<base::HostPort> WaitAddress(const TorchrunStore& store);

}  // namespace troupe::actors

#endif  // ACTORS_LAUNCHERS_TORCHRUN_STORE_H_
