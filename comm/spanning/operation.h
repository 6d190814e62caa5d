// One collective in flight, as one process of a spanning group sees it: what
// its ranks asked for, what the other processes have said, and how far each
// piece has come. Plain data; spanning_state.h says what becomes of it.
//
//   Operation op(seq, layout);
//   op.Join(place, collective, event);
//   TROUPE_RETURN_IF_ERROR(op.MakePlan(layout, settings));
//
// Words: see layout.h and transfer_plan.h.

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
#include "comm/communicator.h"
#include "comm/reduction_tree.h"
#include "comm/spanning/direct_work.h"
#include "comm/spanning/layout.h"
#include "comm/spanning/staging.h"
#include "comm/spanning/transfer_plan.h"

namespace troupe::comm::internal {

// What a member's ranks have started.
struct Note {
  bool here = false;
  int rank = 0;  // the lowest of them
  std::uint64_t signature = 0;
  std::uint64_t settings = 0;
  std::uint64_t replicas = 0;
  bool by_reference = false;
  std::string payload;  // counts, then parts, then references
};

// A collective whose processes reach each other's ranges.
struct Direct {
  Direct(const GroupLayout& layout, const TransferPlan& plan,
         std::size_t element_bytes, bool updates)
      : work(layout, plan, element_bytes, updates),
        inputs(layout.size()),
        outputs(layout.size()) {}

  DirectWork work;
  // By rank of the group; null where this process does not need it.
  std::vector<std::shared_ptr<char>> inputs, outputs;
  int tasks = 0;      // that claim parts
  bool over = false;  // this process's part, and the others have been told
};

struct PieceState {
  enum class Stage { kWaiting, kRunning, kForwarding, kDone };
  struct Arrived {
    const char* data = nullptr;
    int placed_by = -1;  // the member whose frame is on its way there
    bool whole = false;
  };

  Stage stage = Stage::kWaiting;
  // The parts that this process sends have been handed to the links.
  bool prepared = false;
  int frames_missing = 0;
  int sends_out = 0;
  std::vector<Arrived> nodes;  // of a tree that is computed here
  Arrived value;
  // Sums of this process's own nodes, as far as they are sent.
  std::vector<std::pair<int, StagingBuffer>> parts;
  std::vector<StagingBuffer> buffers;
};

struct Operation {
  Operation(std::uint64_t seq, const GroupLayout& layout);

  void Join(int place, const Collective& collective, const Event& event);
  // Once all ranks of this process have joined.
  absl::Status MakePlan(const GroupLayout& layout,
                        const TransferSettings& settings);

  bool all_armed() const {
    return armed_count == static_cast<int>(ranks.size());
  }
  const Collective& first() const { return ranks[first_place].collective; }
  // By this, those that are in flight are sorted (Collective::priority).
  std::pair<int, std::uint64_t> urgency() const {
    return {-first().priority, seq};
  }
  bool updates() const { return first().kind == CollectiveKind::kReduceUpdate; }

  // Rank r's input and output of piece i, and the ranks here that get it.
  const char* Input(int i, int rank) const;
  char* Output(int i, int rank) const;
  // The same of a block, at its element `at`.
  const char* InputOf(int block, std::int64_t at, int rank) const;
  char* OutputOf(int block, std::int64_t at, int rank) const;
  const std::vector<int>& Targets(int i) const {
    return targets[plan->piece(i).block];
  }

  void MakePieces(const GroupLayout& layout);
  void MakeWindows(const GroupLayout& layout);
  // Whether the parts of piece i go from this process to that member, or come
  // from there, so that they wait where they are computed.
  bool Stages(int i, int from, int to) const {
    return plan->block_of(i).source == TransferPlan::kTree &&
           plan->SendsParts(i, from, to) && !plan->eager(from, to);
  }
  // Whether every member that computes piece i has room for its parts; and that
  // they have gone.
  bool MayGo(int i, int self) const;
  void Gone(int i, int self);
  void OrderSends(const GroupLayout& layout);

  struct Rank {
    bool joined = false;
    bool armed = false;
    std::uint64_t signature = 0;
    Collective collective;
    Event event;
    // When it was started; the epoch: not known.
    std::chrono::steady_clock::time_point since;
  };

  const std::uint64_t seq;
  std::vector<Rank> ranks;  // by place
  int first_place = -1;     // of those that joined, the first
  int armed_count = 0;
  bool has_events = false;
  std::vector<Note> notes;  // by member
  int notes_here = 0;

  std::unique_ptr<TransferPlan> plan;
  Reduction reduction;
  std::size_t element_bytes = 1;
  std::vector<const char*> inputs;  // by rank of the group; null elsewhere
  std::vector<char*> outputs;       // likewise
  std::vector<std::vector<int>> targets;  // by block
  std::vector<PieceState> pieces;
  int pieces_left = 0;
  // Those with parts to send, in this order.
  std::vector<int> order;
  std::size_t next_in_order = 0;
  // Of pieces of a tree whose parts go out, or come, by frames of their own.
  struct Window {
    int ahead = 0;  // sent to the member, which has not computed them yet
    int credits_expected = 0, credits_due = 0;  // from, and to, the member
  };
  std::vector<Window> windows;  // by member
  int pieces_ahead_max = 0;     // limit of Window::ahead
  // Elements may come as soon as the first note is on its way.
  bool planned = false;
  bool announced = false;  // all notes have been handed to the links
  bool begun = false;
  // Its ranks have started different ones: it never begins, and its group is
  // about to end.
  bool differs = false;
  // Its note says where its ranges lie.
  bool lends = false;
  // Elements travel by reference, not as pieces.
  std::unique_ptr<Direct> direct;
  // By member: whether its part is over, and it touches nothing here any more.
  // It may be ahead of this process.
  std::vector<bool> let_go;
  // So little that whoever finds it ready does it at once.
  bool small = false;
  std::atomic<bool> done{false};
  // One Apply() at a time; held by nothing else.
  absl::Mutex update_mutex;
};

// What all ranks of a reduce_update have alike: the number and the dtypes of
// their replicas (those of the first 14). 0 for other collectives.
std::uint64_t PackReplicas(const Collective& collective);
// "f32 and f64 replicas"
std::string DescribeReplicas(std::uint64_t packed);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OPERATION_H_
