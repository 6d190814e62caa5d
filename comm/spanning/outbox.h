// Work that was found under a group's lock, and is done after it is released:
// no link and no arithmetic runs under the lock.
//
//   Outbox out;
//   {
//     absl::MutexLock lock(&life->mutex());
//     links->Begin(op, &out);
//   }
//   links->Flush(op, &out);

#ifndef COMM_SPANNING_OUTBOX_H_
#define COMM_SPANNING_OUTBOX_H_

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "comm/link.h"

namespace troupe::comm::internal {

struct Outbox {
  struct Outgoing {
    int member;
    Frame frame;
    const char* payload = nullptr;
    SendDone* done = nullptr;
  };

  absl::InlinedVector<Outgoing, 2> sends;
  // Pieces of a small collective that can be computed.
  absl::InlinedVector<int, 4> small_pieces;
  // If not ok, the group is aborted with it, before anything is sent.
  absl::Status failure;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OUTBOX_H_
