// State that the ranks of a spanning group in one process share: takes their
// calls and the frames of the other processes, and says which of its parts
// acts.
//
//   TROUPE_ASSIGN_OR_RETURN(OpPtr op, state->Join(place, collective, event));
//   state->Arm(place, op, /*after=*/absl::OkStatus());
//   while (!op->done && !state->ended()) board->Progress();
//
// A rank *joins* a collective by Start() or RunInline(), and *arms* it when its
// `after` is ready. When all ranks here have armed it, the process *announces*
// it: a note to every other member. When all notes have arrived as well, it
// *begins*: by reference if all processes have mapped all ranges
// (DirectTransfers), otherwise over links (LinkTransfers). GroupLifetime has
// the lock, the collectives in flight, and how they and the group end.

#ifndef COMM_SPANNING_SPANNING_STATE_H_
#define COMM_SPANNING_SPANNING_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "comm/spanning/direct_transfers.h"
#include "comm/spanning/frames/switchboard.h"
#include "comm/spanning/group_lifetime.h"
#include "comm/spanning/link_transfers.h"

namespace troupe::comm::internal {

class SpanningState final : public Endpoint {
 public:
  SpanningState(std::shared_ptr<Switchboard> board,
                std::shared_ptr<Courier> courier, std::uint32_t group,
                FabricGroupOptions options);

  const GroupLayout& layout() const { return context().layout(); }
  Switchboard& board() { return context().board(); }
  SpanningMessages& messages() { return life_->messages(); }

  // Joins the next collective of the rank at index `place`.
  absl::StatusOr<OpPtr> Join(int place, const Collective& collective,
                             const Event& event)
      ABSL_LOCKS_EXCLUDED(life_->mutex());
  // Arms `op`; `after` is the status of the event it waited for.
  void Arm(int place, const OpPtr& op, const absl::Status& after)
      ABSL_LOCKS_EXCLUDED(life_->mutex());
  // Keeps a finished collective's operation for the next one, if no other
  // thread uses it any more.
  void Recycle(OpPtr op) ABSL_LOCKS_EXCLUDED(life_->mutex());

  // See GroupLifetime.
  void BeginAbort(const absl::Status& why) override { life_->BeginAbort(why); }
  void Abort(const absl::Status& why) { life_->Abort(why); }
  bool ended() const { return life_->ended(); }
  absl::Status status() const { return life_->status(); }
  void SetWakeup(int place, std::function<void()> wakeup) {
    life_->SetWakeup(place, std::move(wakeup));
  }

  // Called when the communicator of the rank is destroyed.
  void Depart(int place) ABSL_LOCKS_EXCLUDED(life_->mutex());
  // Aborts the group if a message waits for a rank that has left.
  void EndMessagesOfGone() ABSL_LOCKS_EXCLUDED(life_->mutex());

  // Waits() returns what the rank at `place` waits for, or waited for when the
  // group was aborted; SetSince() sets the time from which it waits for `op`.
  std::vector<Waiting> Waits(int place) const
      ABSL_LOCKS_EXCLUDED(life_->mutex());
  void SetSince(int place, const OpPtr& op) ABSL_LOCKS_EXCLUDED(life_->mutex());
  // Returns "barrier(), collective 7 of the group: not started by rank 1 in
  // process 0; ...".
  std::string DescribeWait(int place, const Operation& op) const
      ABSL_LOCKS_EXCLUDED(life_->mutex());

  // Endpoint
  char* Place(int peer, const Frame& frame) override;
  absl::Status Take(int peer, const Frame& frame, const char* payload) override;
  void OnLost(int peer, const absl::Status& why) override;

 private:
  const GroupContext& context() const { return life_->context(); }

  // Sends the notes of `op`, all of whose ranks here have armed it.
  void Announce(const OpPtr& op) ABSL_LOCKS_EXCLUDED(life_->mutex());
  // Returns the references that the notes contain, for which it lends ranges.
  std::string LendIfPossible(const OpPtr& op)
      ABSL_LOCKS_EXCLUDED(life_->mutex());
  void SendNotes(const Operation& op, absl::string_view references);
  void BeginIfAllHere(const OpPtr& op, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  void Begin(const OpPtr& op, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());
  // Returns whether the last note that `op` waits for completes all pieces that
  // use it, in this thread: then nothing forwards them, and none waits for
  // other frames.
  bool RunsAtOnce(const Operation& op) const;
  // Returns why a collective that ranks here have armed can never complete, as
  // a rank that it needs has left; ok if there is none.
  absl::Status Missing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(life_->mutex());

  absl::Status TakeNote(int member, const Frame& frame, const char* payload)
      ABSL_LOCKS_EXCLUDED(life_->mutex());
  absl::Status TakeAbort(const Frame& frame, const char* payload);
  absl::Status TakeDepart(int member, const Frame& frame)
      ABSL_LOCKS_EXCLUDED(life_->mutex());

  const std::shared_ptr<GroupLifetime> life_;
  const std::shared_ptr<LinkTransfers> links_;
  const std::shared_ptr<DirectTransfers> direct_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_SPANNING_STATE_H_
