// The tensors that other stages send to a rank: each ends the receive of the
// table that it is for. What comes before its step has begun is kept until
// then.
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
#include "actors/chunks/step_types.h"
#include "actors/engine/engine_parts.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class Dispatcher;

class Inbox {
 public:
  // `parts` outlives it.
  explicit Inbox(const EngineParts& parts) : parts_(parts) {}

  //   kInvalidArgument: the present step receives no such tensor, or has it.
  absl::Status Deliver(const Transfer& transfer, Dispatcher& dispatcher);
  // Delivers what came for the step that has begun.
  absl::Status BeginStep(Dispatcher& dispatcher);

 private:
  // Transferred tensors, where this rank's kernels may read them.
  absl::StatusOr<nn::TensorList> OnThisDevice(const Transfer& transfer);

  const EngineParts& parts_;
  std::vector<Transfer> early_;  // arrived before their step began
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_INBOX_H_
