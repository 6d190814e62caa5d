// Messages of tensors in the memory of a device, by the messages of a group of
// the program's: in a process through a copy on the device, between processes
// through the host.
//
//   TROUPE_ASSIGN_OR_RETURN(Outgoing out, PrepareSend(kernels, group, tensor));
//   event = group.StartSend(/*to=*/1, /*tag=*/0, out.data, out.ready);
//
//   Incoming in{tensor};
//   TROUPE_RETURN_IF_ERROR(PrepareReceive(kernels, group, &in));
//   event = group.StartRecv(/*from=*/0, /*tag=*/0, in.buffer, &in.arrival);
//   // Once the event is ready:
//   TROUPE_RETURN_IF_ERROR(Land(kernels, &in));
//
// A message is what the tensor holds after all earlier work of kCompute, copied
// at once to a buffer of its own. What has come gets to its place in the order
// of kCompute when the receiver takes it. So no queue ever waits for a peer:
// messages and collectives may be started, and waited for, in any order that
// the host's memory permits.
//
// Tensors in the host's memory are messages as they are, except in a group that
// hands over.
//
// Threads: the rank's own.

#ifndef ACTORS_PROGRAM_PROGRAM_MESSAGES_H_
#define ACTORS_PROGRAM_PROGRAM_MESSAGES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

struct Outgoing {
  nn::Tensor data;    // tensor for the group to send
  base::Event ready;  // completes when that may be read
};

struct Incoming {
  nn::Tensor into;         // destination of the message
  nn::Tensor buffer = {};  // tensor for the group to receive into
  comm::Arrival arrival = {};
  bool landed = false;
  // Completes with the copy to `into`, which reads the message until then.
  base::Event copied = {};
};

// Copies `tensor`, if need be, to memory that the group can send. The tensor
// keeps its memory until `ready`.
//   kResourceExhausted: no memory is left.
absl::StatusOr<Outgoing> PrepareSend(nn::Kernels& kernels,
                                     const comm::Communicator& group,
                                     const nn::Tensor& tensor);

// Sets the buffer that the group receives into.
//   kResourceExhausted: no memory is left.
absl::Status PrepareReceive(nn::Kernels& kernels,
                            const comm::Communicator& group,
                            Incoming* incoming);

// Lets kCompute copy the message to `into`, unless it is there, and waits for
// that if it is memory of the host. Does nothing in a second call.
absl::Status Land(nn::Kernels& kernels, Incoming* incoming);

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_PROGRAM_MESSAGES_H_
