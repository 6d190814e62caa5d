// Transfers the pieces of a spanning group's collectives over links: parts are
// sent, a window of pieces at a time, from the most urgent collective that has
// some (SendQueue); a piece is *run* (computed, copied, or passed to an update)
// when all its frames have arrived and no link needs its own parts any more,
// and is forwarded if this process owns it. The last piece ends the collective.
//
//   const auto links = std::make_shared<LinkTransfers>(life);
//   Outbox out;
//   {
//     absl::MutexLock lock(&life->mutex());
//     links->Begin(op, &out);
//   }
//   links->Flush(op, &out);
//
// Terms: see layout.h and transfer_plan.h. Locks: the group's; no link and no
// arithmetic runs under it. Threads: any.

#ifndef COMM_SPANNING_LINK_TRANSFERS_H_
#define COMM_SPANNING_LINK_TRANSFERS_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "comm/link.h"
#include "comm/spanning/frame_target.h"
#include "comm/spanning/frames/wire.h"
#include "comm/spanning/group_lifetime.h"
#include "comm/spanning/outbox.h"

namespace troupe::comm::internal {

class LinkTransfers final : public std::enable_shared_from_this<LinkTransfers> {
 public:
  explicit LinkTransfers(std::shared_ptr<GroupLifetime> life)
      : life_(std::move(life)) {}

  // Begins to send and to compute the pieces of `op`, all of whose notes have
  // been read. Called under the group's lock.
  void Begin(const OpPtr& op, Outbox* out);
  // Carries out `out`. `op` is the collective of its small pieces.
  void Flush(const OpPtr& op, Outbox* out) ABSL_LOCKS_EXCLUDED(life_->mutex());

  // Returns where the elements of a frame are to be received: in a rank's range
  // if possible; null if the frame is not one of elements, or is invalid.
  char* Place(int member, const Frame& frame)
      ABSL_LOCKS_EXCLUDED(life_->mutex());
  // Handle frames; kInvalidArgument if one is invalid.
  absl::Status TakeElements(int member, const Frame& frame)
      ABSL_LOCKS_EXCLUDED(life_->mutex());
  absl::Status TakeCredit(int member, const Frame& frame)
      ABSL_LOCKS_EXCLUDED(life_->mutex());

 private:
  class PieceSent;

  absl::Status Find(int member, const Frame& frame, FrameTarget* target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  // Sends the parts of pieces, as many as the windows permit.
  void Pump(Outbox* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  void PumpTask() ABSL_LOCKS_EXCLUDED(life_->mutex());
  // Computes the sums that are sent as parts of piece i, and sends them.
  void PrepareTask(const OpPtr& op, int i) ABSL_LOCKS_EXCLUDED(life_->mutex());
  void IssueParts(const OpPtr& op, int i, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  void AddSend(const OpPtr& op, int i, int member, FrameType type, int node,
               const char* payload, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  void OnSent(const OpPtr& op, int i, int member)
      ABSL_LOCKS_EXCLUDED(life_->mutex());
  void RunIfReady(const OpPtr& op, int i, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  void Run(const OpPtr& op, int i) ABSL_LOCKS_EXCLUDED(life_->mutex());
  void GiveCredits(const OpPtr& op, int i, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  void Forward(const OpPtr& op, int i, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  void PieceDone(const OpPtr& op, int i)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());

  const std::shared_ptr<GroupLifetime> life_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_LINK_TRANSFERS_H_
