// Takes the tensors that other stages send to a rank: each ends its receive
// action in the table. A tensor that arrives before its step has begun is kept
// until then.
//
//   Inbox inbox(parts);
//   TROUPE_RETURN_IF_ERROR(inbox.Deliver(transfer, dispatcher));
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_INBOX_H_
#define ACTORS_ENGINE_INBOX_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/engine_parts.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class Dispatcher;

class Inbox {
 public:
  // `parts` outlives it.
  explicit Inbox(const EngineParts& parts) : parts_(parts) {}

  // Ends the receive of `transfer`, or keeps it for a later step.
  //   kInvalidArgument: the present step does not receive this tensor, or has
  //   received it already.
  absl::Status Deliver(const Transfer& transfer, Dispatcher& dispatcher);
  // Delivers the kept tensors of the step that has begun.
  absl::Status BeginStep(Dispatcher& dispatcher);

 private:
  // Returns the transferred tensors in memory that this rank's kernels may
  // read.
  absl::StatusOr<nn::TensorList> OnThisDevice(const Transfer& transfer);

  const EngineParts& parts_;
  std::vector<Transfer> early_;  // transfers whose step has not begun
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_INBOX_H_
