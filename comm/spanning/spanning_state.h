// State that the ranks of a spanning group in one process share: its
// collectives in flight, from the first rank that joins to the last piece.
//
//   TROUPE_ASSIGN_OR_RETURN(auto op, state->Join(place, collective, event));
//   state->Arm(place, op, /*after=*/absl::OkStatus());
//   while (!op->done && !state->ended()) board->Progress();
//
// A rank *joins* a collective by Start() or RunInline(), and *arms* it when its
// `after` is ready. When all ranks here have armed it, the process *announces*
// it: a note to every other member. When all notes have arrived as well, it
// *begins*: parts of pieces are sent, a window of them at a time, from the most
// urgent collective that has some (Collective::priority). A piece is *run*
// (computed, copied, or passed to an update) when all its frames have arrived
// and no link needs its own parts any more, and is forwarded if this process
// owns it. The last piece ends the collective.
//
// Abort: nothing new is begun; when links and tasks have released all memory
// (`busy_`), all events complete and the group has *ended*.
//
// Locks: one mutex; no link, user code or arithmetic runs under it. Frames are
// collected under it, and sent after it is released (Outbox).
//
// Files: spanning_state.cc has the calls of ranks, spanning_frames.cc received
// frames, spanning_pieces.cc the pieces, spanning_direct.cc access by
// reference, spanning_waits.cc which ranks wait for which.

#ifndef COMM_SPANNING_SPANNING_STATE_H_
#define COMM_SPANNING_SPANNING_STATE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "comm/local/wakeup.h"
#include "comm/spanning/layout.h"
#include "comm/spanning/messages.h"
#include "comm/spanning/node_tree.h"
#include "comm/spanning/operation.h"
#include "comm/spanning/switchboard.h"

namespace troupe::comm::internal {

class SpanningState final : public Endpoint,
                            public std::enable_shared_from_this<SpanningState> {
 public:
  using OpPtr = std::shared_ptr<Operation>;

  SpanningState(std::shared_ptr<Switchboard> board,
                std::shared_ptr<Courier> courier, std::uint32_t group,
                FabricGroupOptions options);

  const GroupLayout& layout() const { return layout_; }
  Switchboard& board() { return *board_; }
  SpanningMessages& messages() { return messages_; }

  // Joins the next collective of the rank at index `place`.
  absl::StatusOr<OpPtr> Join(int place, const Collective& collective,
                             const Event& event);
  // Arms `op`; `after` is the status of the event it waited for.
  void Arm(int place, const OpPtr& op, const absl::Status& after);
  // Keeps a finished collective's operation for the next one, if no other
  // thread uses it any more.
  void Recycle(OpPtr op) ABSL_LOCKS_EXCLUDED(mutex_);

  void BeginAbort(const absl::Status& why) override;
  // Calls BeginAbort(), and drives the fabric until all memory is released.
  void Abort(const absl::Status& why);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Called when the communicator of the rank is destroyed.
  void Depart(int place);
  // Aborts the group if a message waits for a rank that has left.
  void EndMessagesOfGone() ABSL_LOCKS_EXCLUDED(mutex_);
  void SetWakeup(int place, std::function<void()> wakeup);

  // Waits() returns what the rank at `place` waits for, or waited for when the
  // group was aborted; SetSince() sets the time from which it waits for `op`.
  std::vector<Waiting> Waits(int place) const ABSL_LOCKS_EXCLUDED(mutex_);
  void SetSince(int place, const OpPtr& op) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns "barrier(), collective 7 of the group: not started by rank 1 in
  // process 0; ...".
  std::string DescribeWait(int place, const Operation& op) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Endpoint
  char* Place(int peer, const Frame& frame) override;
  absl::Status Take(int peer, const Frame& frame, const char* payload) override;
  void OnLost(int peer, const absl::Status& why) override;

 private:
  friend class PieceSent;
  struct Outgoing {
    int member;
    Frame frame;
    const char* payload;
    SendDone* done;
  };
  // Work to do once the mutex is free.
  struct Outbox {
    absl::InlinedVector<Outgoing, 2> sends;
    absl::InlinedVector<int, 4> small_pieces;
    absl::Status failure;
  };
  // Destination of a frame of elements that was validated.
  struct Target {
    OpPtr op;
    int piece = -1;
    int node = -1;  // -1: the value
  };

  // spanning_waits.cc
  std::vector<int> AbsentAt(const Operation& op, int member) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string FirstWait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string AbsentText(const Operation& op) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string PendingOf(int place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Waiting> WaitsNow(int place) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records the waits; called when the group is being aborted.
  void NoteWaits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records that the group was aborted before the rank at `place` started
  // `collective`.
  void NoteRefused(int place, const Collective& collective)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // spanning_state.cc
  absl::Status AdmitLocked(int place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  OpPtr FindOrMake(std::uint64_t seq) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AllAlike(const Operation& op) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CompareLocked(const Operation& op) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Departed(const Operation& op) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns why a collective that ranks here have armed can never complete, as
  // a rank that it needs has left; ok if there is none.
  absl::Status Missing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether all ranks of `member` have left, after their last
  // collectives.
  bool HasDeparted(int member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Announce(const OpPtr& op);
  absl::string_view OnlyPart(const Operation& op, int member) const;
  std::string NotePayload(const Operation& op, int member) const;
  void ReduceNode(const Operation& op, int i, int node, void* to) const;
  void SendToAll(const Frame& frame, absl::string_view text);
  void EndIfLetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseHolders();
  void Wake();

  // spanning_frames.cc
  absl::Status TakeNote(int member, const Frame& frame, const char* payload);
  absl::Status TakeElements(int member, const Frame& frame);
  absl::Status TakeCredit(int member, const Frame& frame);
  absl::Status TakeAbort(const Frame& frame, const char* payload);
  absl::Status TakeDepart(int member, const Frame& frame);
  absl::Status Find(int member, const Frame& frame, Target* target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RunsAtOnce(const Operation& op) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginIfAllHere(const OpPtr& op, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadNote(Operation* op, int member)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadCounts(const Operation& op, int member,
                          absl::string_view* payload) const;
  absl::Status Broke(int member, absl::string_view rule) const;

  // spanning_direct.cc
  std::string References(const Operation& op);
  bool Lendable(const Operation& op) const;
  static bool SharedByAll(const Operation& op, int b);
  absl::StatusOr<bool> BeginDirect(const OpPtr& op)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status BorrowFrom(Operation* op, int member)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PostDirect(const OpPtr& op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DirectTask(const OpPtr& op);
  absl::Status RunPart(Operation* op, const DirectWork::Part& part);
  void EndDirect(const OpPtr& op, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LendAll(Operation* op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LetGoOf(Operation* op, int member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishIfLetGo(const OpPtr& op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HearOfLending() ABSL_LOCKS_EXCLUDED(mutex_);
  void LetGoAllIfDue() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TakeLetGo(int member, const Frame& frame);
  absl::Status TakeLetGoAll(int member);

  // spanning_pieces.cc
  void Begin(const OpPtr& op, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pump(Outbox* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PumpTask();
  // Returns the collective whose next piece is sent first, or null if none may
  // be.
  OpPtr MostUrgent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PrepareTask(const OpPtr& op, int i);
  void IssueParts(const OpPtr& op, int i, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveCredits(const OpPtr& op, int i, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forward(const OpPtr& op, int i, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddSend(const OpPtr& op, int i, int member, FrameType type, int node,
               const char* payload, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnSent(const OpPtr& op, int i, int member);
  void RunIfReady(const OpPtr& op, int i, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(const OpPtr& op, int i);
  absl::Status Compute(Operation* op, int i);
  absl::Status Update(Operation* op, std::int64_t begin, std::int64_t count,
                      std::int64_t turn, const char* sum);
  void PieceDone(const OpPtr& op, int i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const OpPtr& op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Carries out `out` without the lock. `op` is the collective of its small
  // pieces.
  void Flush(const OpPtr& op, Outbox* out) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<Switchboard> board_;
  const std::uint32_t group_;
  const FabricGroupOptions options_;
  const GroupLayout layout_;
  const TransferSettings settings_;
  const NodeTree tree_;
  const std::unique_ptr<Wakeup[]> wakeups_;  // index: place
  SpanningMessages messages_;

  mutable absl::Mutex mutex_;
  std::map<std::uint64_t, OpPtr> ops_ ABSL_GUARDED_BY(mutex_);
  OpPtr spare_ ABSL_GUARDED_BY(mutex_);  // see Recycle(); may be null
  // Collectives that have begun and have pieces to send, the most urgent first.
  std::map<std::pair<int, std::uint64_t>, OpPtr> to_send_
      ABSL_GUARDED_BY(mutex_);
  // Number of pieces in their first step.
  int sending_ ABSL_GUARDED_BY(mutex_) = 0;
  // Number of collectives joined, by place.
  std::vector<std::uint64_t> next_ ABSL_GUARDED_BY(mutex_);
  // Number of collectives that a rank joined before it left, by rank of the
  // group.
  std::map<int, std::uint64_t> departed_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  // Waits at the time of an abort, by place; empty before.
  std::vector<std::vector<Waiting>> waits_at_abort_ ABSL_GUARDED_BY(mutex_);
  // Number of links and tasks that use memory of the group. By member, included
  // in it: frames being sent, and frames being received.
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<int> sending_to_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> placed_from_ ABSL_GUARDED_BY(mutex_);
  // Number of collectives in which a member may access memory here; part of
  // busy_.
  std::vector<int> lent_to_ ABSL_GUARDED_BY(mutex_);
  // Whether a member accesses no memory of the group any more, by member.
  std::vector<bool> let_go_all_ ABSL_GUARDED_BY(mutex_);
  // Number of tasks that access other processes' memory; whether kLetGoAll was
  // sent; whether the group lends or borrows memory, so that peers wait for it.
  int reaching_ ABSL_GUARDED_BY(mutex_) = 0;
  bool said_let_go_ ABSL_GUARDED_BY(mutex_) = false;
  bool lends_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> ended_{false};
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_SPANNING_STATE_H_
