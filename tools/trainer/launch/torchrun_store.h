// torchrun keeps the port that it names MASTER_PORT for itself: its store of
// keys and values listens there. Process 0 listens elsewhere and puts its
// address into that store; the others wait for it.
//
//   TorchrunStore store;
//   store.address = {"127.0.0.1", 29500};  // MASTER_ADDR, MASTER_PORT
//   store.key = "troupe/none/0/address";   // Placement::store_key
//   TROUPE_RETURN_IF_ERROR(PublishAddress(store, {"10.0.0.7", 40112}));
//   TROUPE_ASSIGN_OR_RETURN(HostPort master, WaitAddress(store));
//
// What goes over the wire is that of c10d::TCPStore, PyTorch 2.15, as far as it
// is needed here; it is documented nowhere but in its source
// (torch/csrc/distributed/c10d/TCPStoreBackend.hpp). Nothing that it answers is
// believed beyond a length of kAddressBytesMax.
//
// Blocks until `timeout` at the longest, connecting included. Threads: any.

#ifndef TOOLS_TRAINER_LAUNCH_TORCHRUN_STORE_H_
#define TOOLS_TRAINER_LAUNCH_TORCHRUN_STORE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/trainer/terminal/host_port.h"

namespace troupe::tools {

inline constexpr int kAddressBytesMax = 300;

struct TorchrunStore {
  HostPort address;
  std::string key;
  absl::Duration timeout = absl::Seconds(60);
};

//   kUnavailable: nothing listens there, or it hangs up.
//   kDeadlineExceeded: it does not answer; WaitAddress: or process 0 has not
//     published anything.
//   kDataLoss: it answers what no store answers.
absl::Status PublishAddress(const TorchrunStore& store, const HostPort& own);
absl::StatusOr<HostPort> WaitAddress(const TorchrunStore& store);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_LAUNCH_TORCHRUN_STORE_H_
