// State of one collective in flight in one process of a spanning group: the
// arguments of its ranks, the notes of the other processes, and the progress of
// each piece. Plain data; spanning_state.h defines the protocol.
//
//   Operation op(seq, layout);
//   op.Join(place, collective, event);
//   TROUPE_RETURN_IF_ERROR(op.MakePlan(layout, settings));
//   op.Reuse();        // finished: now for another collective
//
// A reused operation keeps its plan, and MakePlan() takes it if the collective
// is like the one before: a small all-reduce costs less than to plan it.
//
// Terms: see layout.h and transfer_plan.h.

#ifndef COMM_SPANNING_OPERATION_H_
#define COMM_SPANNING_OPERATION_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "comm/collective_kinds.h"
#include "comm/communicator.h"
#include "comm/reduction_tree.h"
#include "comm/spanning/direct_work.h"
#include "comm/spanning/layout.h"
#include "comm/spanning/staging.h"
#include "comm/spanning/transfer_plan.h"

namespace troupe::comm::internal {

// Announcement that a member's ranks have started a collective.
struct Note {
  bool here = false;
  int rank = 0;  // the lowest rank of the member
  std::uint64_t signature = 0;
  std::uint64_t settings = 0;
  std::uint64_t replicas = 0;
  bool by_reference = false;
  // Counts, small parts, references, in this order: in `kept`, or in the link's
  // memory if all of it is used before the link goes on.
  absl::string_view payload;
  std::string kept;
};

// State of a collective whose processes access each other's ranges.
struct Direct {
  Direct(const GroupLayout& layout, const TransferPlan& plan,
         std::size_t element_bytes, bool updates)
      : work(layout, plan, element_bytes, updates),
        inputs(layout.size()),
        outputs(layout.size()) {}

  DirectWork work;
  // Addresses by rank of the group; null if this process does not need them.
  std::vector<std::shared_ptr<char>> inputs, outputs;
  int tasks = 0;      // number of tasks that claim parts
  bool over = false;  // this process's part has ended, and peers were notified
};

struct PieceState {
  enum class Stage { kWaiting, kRunning, kForwarding, kDone };
  struct Arrived {
    const char* data = nullptr;
    int placed_by = -1;  // member whose frame is being received there
    bool whole = false;
  };

  Stage stage = Stage::kWaiting;
  // Whether the parts that this process sends have been passed to the links.
  bool prepared = false;
  int frames_missing = 0;
  int sends_out = 0;
  std::vector<Arrived> nodes;  // if the tree is computed here
  Arrived value;
  // Sums of this process's own nodes that it sends, by node.
  std::vector<std::pair<int, StagingBuffer>> parts;
  std::vector<StagingBuffer> buffers;
};

struct Operation {
  Operation(std::uint64_t seq, const GroupLayout& layout);

  // Drops all but the plan, so that the operation can be another collective's.
  void Reuse();
  void Join(int place, const Collective& collective, const Event& event);
  // Makes the plan, once all ranks of this process have joined.
  absl::Status MakePlan(const GroupLayout& layout,
                        const TransferSettings& settings);

  bool all_armed() const {
    return armed_count == static_cast<int>(ranks.size());
  }
  const Collective& first() const { return ranks[first_place].collective; }
  // Returns the sort key of collectives in flight (Collective::priority).
  std::pair<int, std::uint64_t> urgency() const {
    return {-first().priority, seq};
  }
  bool updates() const { return RuleOf(first().kind).updates; }

  // Rank r's input and output of piece i, and the ranks here that receive it.
  const char* Input(int i, int rank) const;
  char* Output(int i, int rank) const;
  // The same for a block, at its element `at`.
  const char* InputOf(int block, std::int64_t at, int rank) const;
  char* OutputOf(int block, std::int64_t at, int rank) const;
  const std::vector<int>& Targets(int i) const {
    return targets[plan->piece(i).block];
  }

  void MakePieces(const GroupLayout& layout);
  // Prepares the pieces of a plan that was used before.
  void ResetPieces(const GroupLayout& layout);
  void MakeWindows(const GroupLayout& layout);
  // Returns whether parts of piece i are sent from `from` to `to` in frames of
  // their own, and so are buffered at `to`.
  bool Stages(int i, int from, int to) const {
    return plan->block_of(i).source == TransferPlan::kTree &&
           plan->SendsParts(i, from, to) && !plan->eager(from, to);
  }
  // MayGo() returns whether every member that computes piece i has room for its
  // parts; Gone() records that they were sent.
  bool MayGo(int i, int self) const;
  void Gone(int i, int self);
  void OrderSends(const GroupLayout& layout);

  struct Rank {
    bool joined = false;
    bool armed = false;
    std::uint64_t signature = 0;
    Collective collective;
    Event event;
    // Time when it was started; the epoch: not known.
    std::chrono::steady_clock::time_point since;
  };

  std::uint64_t seq;
  std::vector<Rank> ranks;  // index: place
  int first_place = -1;     // index of the first rank that joined
  int armed_count = 0;
  bool has_events = false;
  std::vector<Note> notes;  // index: member
  int notes_here = 0;

  std::unique_ptr<TransferPlan> plan;
  std::uint64_t planned_as = 0;  // signature of the collective that it is for
  Reduction reduction;
  std::size_t element_bytes = 1;
  // Index: rank of the group; null for other processes'.
  std::vector<const char*> inputs;
  std::vector<char*> outputs;             // index: rank of the group
  std::vector<std::vector<int>> targets;  // index: block
  std::vector<PieceState> pieces;
  int pieces_left = 0;
  // Indices of the pieces with parts to send, in the order of sending.
  std::vector<int> order;
  std::size_t next_in_order = 0;
  // Flow control towards a member, for pieces of a tree whose parts travel in
  // frames of their own.
  struct Window {
    int ahead = 0;  // pieces sent to the member, not computed there yet
    int credits_expected = 0, credits_due = 0;  // from, and to, the member
  };
  std::vector<Window> windows;  // index: member
  int pieces_ahead_max = 0;     // limit on Window::ahead
  // Set before the first note is sent: elements may arrive from then on.
  bool planned = false;
  bool announced = false;  // all notes have been passed to the links
  bool begun = false;
  // Whether its ranks have started different collectives: it never begins, and
  // its group is about to end.
  bool differs = false;
  // Whether its note refers to its ranges.
  bool lends = false;
  // Set if elements are read by reference, not sent as pieces.
  std::unique_ptr<Direct> direct;
  // Whether a member has finished its part and accesses no memory here any
  // more, by member. It may be ahead of this process.
  std::vector<bool> let_go;
  // Whether it is so small that the thread that finds it ready computes it at
  // once.
  bool small = false;
  std::atomic<bool> done{false};
  // Held during Apply(), so that one runs at a time.
  absl::Mutex update_mutex;
};

// Returns the properties of a reduce_update that are equal on all ranks: the
// number of replicas, and the dtypes of the first 14. 0 for other collectives.
std::uint64_t PackReplicas(const Collective& collective);
// Returns "f32 and f64 replicas".
std::string DescribeReplicas(std::uint64_t packed);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OPERATION_H_
