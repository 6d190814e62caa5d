// One rank's handle on a group (c10d's ProcessGroup): starts collectives and
// messages, and drives them.
//
//   std::vector<std::unique_ptr<Communicator>> group = MakeLocalGroup({2});
//   Communicator& comm = *group[rank];
//   absl::StatusOr<Event> sum =
//       comm.Start(AllReduce(ReduceOp::kSum, gradients), /*after=*/Event());
//   while (!sum->ready()) comm.Progress();          // or from an actor's loop
//
// A thread that has nothing else to do meanwhile uses the blocking form:
//
//   absl::Status status = comm.RunInline(AllReduce(ReduceOp::kSum, gradients),
//                                        /*timeout=*/absl::Seconds(10));
//
// Order: all ranks of a group start the same collectives in the same order, on
// ranges of equal count and dtype; RunInline() counts as a start and pairs with
// either. A rank that starts another collective than its peers fails the whole
// group with an error that names both ranks and both collectives. Collectives
// in flight may end in another order than they were started in: one that waits
// for its `after` does not delay later ones.
//
// Driving: Start() never blocks and moves no data by itself. Progress() does a
// bounded piece of pending work (one chunk) and returns whether it did
// anything. Any rank's Progress() may do work of a collective that all ranks
// have started, since every element's result is one fixed tree of additions
// (reduction_tree.h), whichever rank computes it. The callback of SetWakeup()
// reports new work, so an actor can sleep in between.
//
// Failure: Abort() from any thread ends all work of the group on every rank:
// every pending Event completes with the status, later Start() calls return it.
// A group cannot be used again after that; make a new one.
//
// Threads: Start, Progress, RunInline and SetWakeup of one Communicator are
// called by one thread at a time; those of different ranks may run in different
// threads. Abort() and Waits() may be called from any thread. An event's
// callback may use the Communicator of the thread it runs in.

#ifndef COMM_COMMUNICATOR_H_
#define COMM_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/event.h"
#include "comm/reduction/reduce_op.h"
#include "comm/replica_update.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

using Event = base::Event;

// Kinds of collectives, whose properties are rows of data (collective_kinds.h).
// With n ranks, and blocks of c elements, `input` is what a rank contributes,
// `range` what it receives:
//
//     kind             input       range      blocks (flow.h)
//     all_reduce       c           c          1: all -> all
//     reduce_update    c (range)   replicas   1: all -> all
//     reduce           c           c at root  1: all -> root
//     broadcast        c at root   c          1: root -> all
//     all_gather       c           n c        n: r -> all, to r c
//     gather           c           n c, root  n: r -> root, to r c
//     scatter          n c, root   c          n: root -> r, from r c
//     reduce_scatter   n c         c          n: all -> r, from r c
//     all_to_all       n c         n c        n n: r -> s, from s c, to r c
//     all_to_all (v)   sum sent    sum recvd  n n: r -> s, by the counts
//     barrier          -           -          none
enum class CollectiveKind {
  kAllReduce,
  kBroadcast,
  kBarrier,
  kReduceUpdate,
  kReduce,
  kAllGather,
  kGather,
  kScatter,
  kReduceScatter,
  kAllToAll,
};
// Number of kinds.
inline constexpr int kCollectiveKinds =
    static_cast<int>(CollectiveKind::kAllToAll) + 1;

// Returns "all_reduce", "reduce_scatter", ... as above; for errors and traces.
absl::string_view CollectiveKindName(CollectiveKind kind);

// One rank's arguments of a collective: the tensor it contributes and the one
// it receives (shapes: above). Both, and `update`, stay alive until the event
// is ready; ranges of different ranks do not overlap. All are undefined for a
// barrier. A tensor that this rank does not need (the range of a gather on a
// rank that is not the root) is ignored.
struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  // rank in the group
  // Output of this rank; undefined where it gets none (not the root).
  nn::Tensor range;
  // Input of this rank. Undefined: it contributes nothing (not the root), or,
  // in an all_reduce, reduce or broadcast, the content of `range`; passing
  // `range` itself there means the same. May be this rank's own block of
  // `range` (all_gather, gather), or contain `range` as its own block
  // (reduce_scatter, scatter); otherwise input and range do not overlap.
  nn::Tensor input;
  std::shared_ptr<ReplicaUpdate> update;  // for a reduce_update
  // Priority on the wire in a group that spans processes: of this rank's
  // collectives in flight the one with the largest priority is sent first, then
  // the one that was started first. Each rank may choose its own: the order of
  // starts remains the same on all ranks, and so do the bits.
  int priority = 0;
  // Number of elements for, and from, each rank, in an all_to_all with unequal
  // parts.
  std::vector<std::int64_t> send_counts, recv_counts;

  // "all_reduce(sum, f32 x 1024)", "gather(root 0, bf16 x 8)", "barrier()",
  // "all_to_all(f32, by counts)"; what errors and traces print.
  std::string ToString() const;

  // Whether this is an all_to_all with unequal parts.
  bool by_counts() const {
    return !send_counts.empty() || !recv_counts.empty();
  }
  // Returns input or range, whichever has the same length on every rank: c
  // elements (n c in an all_to_all). Signatures and texts contain its
  // length.
  const nn::Tensor& counted() const;
};

Collective AllReduce(ReduceOp op, nn::Tensor range);
// Reduces, and updates every rank's replicas from the result
// (replica_update.h). The ranges keep what they hold.
Collective ReduceUpdate(ReduceOp op, nn::Tensor range,
                        std::shared_ptr<ReplicaUpdate> update);
Collective Broadcast(int root, nn::Tensor range);
Collective Barrier();
Collective Reduce(ReduceOp op, int root, nn::Tensor input, nn::Tensor range);
Collective AllGather(nn::Tensor input, nn::Tensor range);
Collective Gather(int root, nn::Tensor input, nn::Tensor range);
Collective Scatter(int root, nn::Tensor input, nn::Tensor range);
Collective ReduceScatter(ReduceOp op, nn::Tensor input, nn::Tensor range);
Collective AllToAll(nn::Tensor input, nn::Tensor range);
Collective AllToAll(nn::Tensor input, std::vector<std::int64_t> send_counts,
                    nn::Tensor range, std::vector<std::int64_t> recv_counts);

// Source for StartRecv() that matches every sender.
inline constexpr int kAnySource = -1;

// Source and length of a received message; readable when the event is ready.
struct Arrival {
  int source = kAnySource;
  std::int64_t count = 0;  // elements
  // The sender's tensor, in a group that hands messages over
  // (Communicator::HandsOver()); otherwise undefined.
  nn::Tensor data = {};
};

// A collective or message that a rank has started and that is not complete
// (Communicator::Waits()).
struct Waiting {
  // "all_reduce(sum, f32 x 1024), collective 7 of the group",
  // "recv(from 0, tag 5, f32 x 8)"
  std::string what;
  // Sequence number of the collective in the group, equal on all ranks; -1: a
  // message.
  std::int64_t collective = -1;
  // Other ranks that it waits for, as far as this process can tell. All ranks
  // of another process that has not reported yet are listed: some may have
  // started it, and wait for the same `collective`. Empty: all have started,
  // and the work is in progress. A receive from any source lists all others.
  std::vector<int> ranks;
  // Whether those in other processes are known not to have started it. False:
  // they may have run it, since this process hears nothing of them (NCCL).
  bool certain = true;
  // Time when it was started; for RunInline(), the time when it gave up
  // spinning.
  std::chrono::steady_clock::time_point since;
};

// Returns kInvalidArgument if rank `rank` of a group of `size` cannot run
// `collective`: its dtype lacks the op; the root is outside the group; input or
// range are missing, without memory, on another device than the CPU, of other
// lengths than CollectiveKind says, or overlap; replicas differ in length from
// the range; or counts do not add up.
absl::Status CheckCollective(const Collective& collective, int rank, int size);

// Returns whether a group of `size` ranks may leave `collective` out, since it
// would change nothing: there is one rank, whose input, if any, is its range,
// and no replica to update.
bool IsNoOp(const Collective& collective, int size);

// Return kInvalidArgument if no rank of a group of `size` can send `data` to
// `to`, or receive into `into` from `from` (which may be kAnySource): the rank
// does not exist, or the tensor has no host memory. In a group that hands
// messages over (`hands_over`) it may have that of a device.
absl::Status CheckSend(int to, const nn::Tensor& data, int size,
                       bool hands_over = false);
absl::Status CheckRecv(int from, const nn::Tensor& into, int size,
                       bool hands_over = false);

class DeviceWork;

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Announces the device that this rank's ranges lie on, before the first
  // Start(). Returns true if its collectives run as work of devices
  // (device/device_group.h), which Start() enqueues on them; Start() is then
  // called in the device's thread, and `work` outlives the last call. Returns
  // false if collectives move data in host memory.
  virtual bool UseDevice(DeviceWork* /*work*/) { return false; }

  // Announces that collectives will work on parts of `ranges`; called after
  // UseDevice(), in the same thread. The ranges stay where they are until the
  // next call, or a call without ranges; no collective is in flight then. For a
  // backend that is faster on registered memory.
  virtual void UseRanges(absl::Span<const nn::Tensor> /*ranges*/) {}

  // Starts `collective` once `after` is ready; the event is ready when this
  // rank's range holds the result and may be reused. An `after` that fails
  // aborts the group: the peers would wait for ever.
  //   kInvalidArgument: see CheckCollective(). Nothing was started.
  //   kResourceExhausted: too many are in flight. Nothing was started; drive
  //     them and start again.
  //   the status of Abort(), once the group is aborted.
  virtual absl::StatusOr<Event> Start(const Collective& collective,
                                      Event after) = 0;

  // Implements StartCoalesced(). A backend overrides it if it can begin several
  // collectives together.
  virtual absl::StatusOr<Event> StartTogether(
      absl::Span<const Collective> collectives, const Event& after);

  // Starts `collective` and works on it in the caller's thread until this
  // rank's range holds the result. Waits by spinning, then by yielding.
  //   kDeadlineExceeded: `timeout` is over. Names the ranks that have not
  //     started it, and aborts the group: its range may not be touched any
  //     more.
  //   otherwise the errors of Start().
  // A backend overrides it if it can do without an Event.
  virtual absl::Status RunInline(const Collective& collective,
                                 absl::Duration timeout);

  // Does at most one chunk of work. Returns false if there was none.
  virtual bool Progress() = 0;

  // Whether messages are handed over: the receiver gets the sender's tensor
  // (Arrival::data), in any memory, and copies it itself; nothing is written to
  // `into`. The sender writes to that tensor no more. For ranks of one process
  // whose devices read each other's memory (device/device_group.h).
  virtual bool HandsOver() const { return false; }
  // Returns an error that names the kind of group if it has no messages.
  virtual absl::Status CheckMessages() const { return absl::OkStatus(); }
  // Sends `data` to rank `to` once `after` is ready; the event is ready when
  // `data` may be reused. Sends to one rank arrive in the order in which they
  // were started; the receiver selects them by tag. Rank `to` may be this one.
  //   kInvalidArgument: see CheckSend(). Nothing was started.
  //   the status of Abort(), once the group is aborted.
  virtual absl::StatusOr<Event> StartSend(int to, std::uint32_t tag,
                                          const nn::Tensor& data,
                                          Event after) = 0;
  // Receives the message that rank `from` (or kAnySource) sends under `tag`;
  // the event is ready when `into` holds it. The message may be shorter than
  // `into`: `arrival` receives its length (may be null; stays alive until the
  // event is ready).
  //   The event's status is kInvalidArgument if the message is longer, or of
  //     another dtype: names both sides, and aborts the group.
  // Returns the errors of StartSend(), by CheckRecv().
  virtual absl::StatusOr<Event> StartRecv(int from, std::uint32_t tag,
                                          const nn::Tensor& into,
                                          Arrival* arrival) = 0;

  // Calls `wakeup` whenever Progress() of this rank may find work after it had
  // found none: from any thread, perhaps within this very call of a peer's. It
  // sends a message or sets a flag, and no more: it neither blocks nor uses the
  // communicator, but may set another wakeup. No call of the old one is running
  // when SetWakeup() or the destructor returns, save one that called it.
  virtual void SetWakeup(std::function<void()> wakeup) = 0;

  // Returns what this rank waits for, the oldest first: collectives, then
  // messages. Any thread may call it, also while another is in a call. After an
  // abort it returns, for diagnosis, what the rank waited for at that time
  // (and, between processes, the first collective that it was refused).
  virtual std::vector<Waiting> Waits() const = 0;

  // Aborts the group; only the first status counts. When the call that set it
  // returns, no rank's range is touched any more.
  virtual void Abort(absl::Status status) = 0;
};

// Drives `comm` in the caller's thread until `event` is ready: by spinning,
// then by yielding. kDeadlineExceeded after `timeout`: aborts the group.
absl::Status Await(Communicator& comm, const Event& event,
                   absl::Duration timeout);

// Starts all, in order, each once `after` is ready; the event is ready when all
// are, and carries the first error.
//   kInvalidArgument: see CheckCollective(). Nothing was started.
//   otherwise the errors of Start(). If some had been started before the error,
//     the group is aborted: they cannot be taken back, and the peers would wait
//     for the rest.
absl::StatusOr<Event> StartCoalesced(Communicator& comm,
                                     absl::Span<const Collective> collectives,
                                     const Event& after);

}  // namespace troupe::comm

#endif  // COMM_COMMUNICATOR_H_
