// One collective in flight in one process of a spanning group: what its ranks
// here have started, what the other processes have announced, and the progress
// of its pieces. group_lifetime.h, link_transfers.h and direct_transfers.h
// define the protocol.
//
//   Operation op(seq, layout);
//   op.calls.Join(place, collective, event);
//   TROUPE_RETURN_IF_ERROR(op.MakePlan(layout, settings));
//   op.Reuse();        // finished: now for another collective
//
// A reused operation keeps its plan, and MakePlan() takes it if the collective
// is like the one before: a small all-reduce costs less than to plan it.
//
// Terms: see layout.h and transfer_plan.h. Fields are used under the group's
// lock, except that `plan` and `operands` are constant once it was planned.

#ifndef COMM_SPANNING_OPERATION_OPERATION_H_
#define COMM_SPANNING_OPERATION_OPERATION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "comm/collective_kinds.h"
#include "comm/communicator.h"
#include "comm/spanning/operation/local_calls.h"
#include "comm/spanning/operation/notes.h"
#include "comm/spanning/operation/operands.h"
#include "comm/spanning/operation/piece_progress.h"
#include "comm/spanning/plan/direct_access.h"
#include "comm/spanning/plan/layout.h"
#include "comm/spanning/plan/send_schedule.h"
#include "comm/spanning/plan/transfer_plan.h"

namespace troupe::comm::internal {

struct Operation {
  enum class Phase {
    kJoining,    // not all ranks here have armed it
    kPlanned,    // notes are being sent: elements may arrive from now on
    kAnnounced,  // all notes have been passed to the links
    kBegun,      // all notes of other members have arrived, too
  };

  Operation(std::uint64_t seq, const GroupLayout& layout);

  // Drops all but the plan, so that the operation can be another collective's.
  void Reuse();
  // Makes the plan and the pieces, once all ranks of this process have joined.
  absl::Status MakePlan(const GroupLayout& layout,
                        const TransferSettings& settings);

  bool planned() const { return phase >= Phase::kPlanned; }
  bool announced() const { return phase >= Phase::kAnnounced; }
  bool begun() const { return phase == Phase::kBegun; }
  const Collective& first() const { return calls.first(); }
  bool updates() const { return RuleOf(first().kind).updates; }

  // Rank r's input and output of piece i, and the ranks here that receive it.
  const char* Input(int i, int rank) const;
  char* Output(int i, int rank) const;
  const std::vector<int>& Targets(int i) const {
    return operands.targets(plan->piece(i).block);
  }
  // Returns whether, by reference, each process computes a share of block b and
  // writes it to the ranges of all.
  bool SharedByAll(int b) const;

  std::uint64_t seq;
  LocalCalls calls;
  Notes notes;
  std::unique_ptr<TransferPlan> plan;
  std::uint64_t planned_as = 0;  // signature of the collective that it is for
  Operands operands;
  std::vector<PieceProgress> pieces;
  int pieces_left = 0;
  SendSchedule sends;
  DirectAccess direct;
  Phase phase = Phase::kJoining;
  // Whether its ranks have started different collectives: it never begins, and
  // its group is about to end.
  bool differs = false;
  // Whether it is so small that the thread that finds it ready computes it at
  // once.
  bool small = false;
  std::atomic<bool> done{false};
  // Held during Apply(), so that one runs at a time.
  absl::Mutex update_mutex;

 private:
  void MakePieces(const GroupLayout& layout);
  // Prepares the pieces, those of `sends` as pieces with parts to send.
  void ResetPieces(const GroupLayout& layout);
};

using OpPtr = std::shared_ptr<Operation>;

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OPERATION_OPERATION_H_
