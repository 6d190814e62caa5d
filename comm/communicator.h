// What one rank holds of a group: it starts collectives and drives them.
//
//   std::vector<std::unique_ptr<Communicator>> group = MakeLocalGroup({2});
//   Communicator& comm = *group[rank];
//   absl::StatusOr<Event> sum =
//       comm.Start(AllReduce(ReduceOp::kSum, gradients), /*after=*/Event());
//   while (!sum->ready()) comm.Progress();          // or from an actor's loop
//
// A loop of its own thread, with nothing to do meanwhile, takes the short way:
//
//   absl::Status status = comm.RunInline(AllReduce(ReduceOp::kSum, gradients),
//                                        /*timeout=*/absl::Seconds(10));
//
// Order: all ranks of a group start the same collectives in the same order, on
// ranges of equal count and dtype; RunInline counts as a start and pairs with
// either. A rank that starts another one than its peers fails the whole group
// with an error that names both ranks and both collectives. Collectives that
// are in flight together may end in another order than they were started in:
// one that waits for its `after` holds up none behind it.
//
// Driving: Start() never blocks and moves no data by itself. Progress() does a
// bounded piece of the work that is there (one chunk) and says whether it did
// anything; any rank's Progress() may do work of a collective that all ranks
// have started, since every element's result is one fixed tree of additions
// (reduction_tree.h), whoever computes it. SetWakeup() tells when there is work
// again, so an actor can sleep in between.
//
// Failure: Abort() from any thread ends all work of the group on every rank:
// every pending Event completes with the status, later Start() calls return it.
// A group does not recover; make a new one.
//
// Threads: Start, Progress, RunInline and SetWakeup of one Communicator from
// one thread at a time; different ranks' from different threads. Abort() and
// Waits() from any. An event's callback may use the Communicator of the thread
// it runs in.

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
#include "comm/reduce_op.h"
#include "comm/replica_update.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

using Event = base::Event;

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

// "all_reduce", "reduce_scatter": as in flow.h; for errors and traces.
absl::string_view CollectiveKindName(CollectiveKind kind);

// One collective as a rank asks for it: what it gives and what it gets (shapes:
// flow.h). Both, and `update`, stay alive until the event is ready; ranges of
// different ranks do not overlap. Empty for a barrier. What a rank does not
// need (the range of a gather, where it is not the root) is not looked at.
struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  // in the group
  // What this rank gets; undefined where it gets nothing (not the root).
  nn::Tensor range;
  // What it gives. Undefined: nothing (not the root), or, of all_reduce, reduce
  // and broadcast, what `range` holds; of these, `range` itself says the same.
  // May be this rank's own block of `range` (all_gather, gather), or hold
  // `range` as its own block (reduce_scatter, scatter); otherwise the two do
  // not overlap.
  nn::Tensor input;
  std::shared_ptr<ReplicaUpdate> update;  // of a reduce_update
  // Where a rank has several in flight in a group that spans processes, the one
  // with the largest goes first on the wire, then the one that was started
  // first. What a rank sends first is its own affair: the order of starts is
  // still one on all ranks, and so are the bits.
  int priority = 0;
  // Elements for, and from, each rank, in an all_to_all with unequal parts.
  std::vector<std::int64_t> send_counts, recv_counts;

  // "all_reduce(sum, f32 x 1024)", "gather(root 0, bf16 x 8)", "barrier()",
  // "all_to_all(f32, by counts)"; what errors and traces print.
  std::string ToString() const;

  // An all_to_all with unequal parts.
  bool by_counts() const {
    return !send_counts.empty() || !recv_counts.empty();
  }
  // Whichever of the two is as long on every rank: the c elements of flow.h (of
  // an all_to_all: n c). Signatures and texts count it.
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

// A source of StartRecv(): whichever rank sends first.
inline constexpr int kAnySource = -1;

// What StartRecv() received, readable when its event is ready.
struct Arrival {
  int source = kAnySource;
  std::int64_t count = 0;  // elements
};

// What a rank has started and is not done (Communicator::Waits()).
struct Waiting {
  // "all_reduce(sum, f32 x 1024), collective 7 of the group",
  // "recv(from 0, tag 5, f32 x 8)"
  std::string what;
  // Which collective of the group it is, as all ranks count; -1: a message.
  std::int64_t collective = -1;
  // Other ranks that it needs and that have not come, as far as is known here:
  // of another process that has said nothing, all (some may have come; then
  // they wait for the same `collective`). Empty: all are there, and the work is
  // being done. Of a receive from any: all others.
  std::vector<int> ranks;
  // When it was started; of RunInline(), when spinning was in vain.
  std::chrono::steady_clock::time_point since;
};

// kInvalidArgument where rank `rank` of a group of `size` cannot run
// `collective`: an op that its dtype lacks, a root outside the group, input or
// range that are missing, without memory, on another device than the CPU, of
// other lengths than flow.h says or in each other's way, replicas that are not
// as long as the range, counts that do not add up.
absl::Status CheckCollective(const Collective& collective, int rank, int size);

// kInvalidArgument where no rank of a group of `size` can send `data` to `to`,
// or receive into `into` from `from` (perhaps kAnySource): no such rank, no
// memory here.
absl::Status CheckSend(int to, const nn::Tensor& data, int size);
absl::Status CheckRecv(int from, const nn::Tensor& into, int size);

class DeviceWork;

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Tells the device that this rank's ranges lie on, before the first Start().
  // True: its collectives are work of devices (device/device_group.h), which
  // Start() gives them; it is called in the device's thread, and `work`
  // outlives the last call. False: they move data in memory of the host.
  virtual bool UseDevice(DeviceWork* /*work*/) { return false; }

  // Behind UseDevice(), in the same thread: collectives will work on parts of
  // `ranges`, which stay where they are until the next call, or one without
  // any; then none of them is under way. For a backend that knows memory faster
  // which it was told of.
  virtual void UseRanges(absl::Span<const nn::Tensor> /*ranges*/) {}

  // Starts `collective` once `after` is ready; the event is ready when this
  // rank's range holds the result and may be reused. An `after` that fails
  // aborts the group: the peers would wait for ever.
  //   kInvalidArgument: see CheckCollective(). Nothing was started.
  //   kResourceExhausted: too many are in flight. Nothing was started; drive
  //     those and start again.
  //   the status of Abort(), once the group is aborted.
  virtual absl::StatusOr<Event> Start(const Collective& collective,
                                      Event after) = 0;

  // What StartCoalesced() does. A backend overrides it where it knows a way to
  // begin them together.
  virtual absl::StatusOr<Event> StartTogether(
      absl::Span<const Collective> collectives, const Event& after);

  // Starts `collective` and works on it in the caller's thread until this
  // rank's range holds the result. Waits by spinning, then by yielding.
  //   kDeadlineExceeded: `timeout` is over. Names the ranks that did not come,
  //     and aborts the group: its range may not be touched any more.
  //   otherwise as Start().
  // A backend overrides it where it knows a way without an Event.
  virtual absl::Status RunInline(const Collective& collective,
                                 absl::Duration timeout);

  // Does at most one chunk of work. False when there is none now.
  virtual bool Progress() = 0;

  // Sends `data` to rank `to` once `after` is ready; the event is ready when
  // `data` may be reused. Sends to one rank arrive in the order of their
  // starts; it takes them by tag.
  // Rank `to` may be this one.
  //   kInvalidArgument: see CheckSend(). Nothing was started.
  //   the status of Abort(), once the group is aborted.
  virtual absl::StatusOr<Event> StartSend(int to, std::uint32_t tag,
                                          const nn::Tensor& data,
                                          Event after) = 0;
  // Receives what rank `from` (or kAnySource) sends under `tag`; the event is
  // ready when it is in `into`. What is sent may be shorter, and says so in
  // `arrival` (may be null; stays until then).
  //   The event's status is kInvalidArgument where what comes is longer, or of
  //   another dtype: names both sides, and aborts the group.
  // Returns errors as StartSend(), by CheckRecv().
  virtual absl::StatusOr<Event> StartRecv(int from, std::uint32_t tag,
                                          const nn::Tensor& into,
                                          Arrival* arrival) = 0;

  // `wakeup` is called whenever Progress() of this rank may find work after it
  // had found none: from any thread, perhaps within this very call of a peer's.
  // It only leaves a note (sends a message, sets a flag): it neither blocks nor
  // uses the communicator, but may set another wakeup. None is running any more
  // when SetWakeup() or the destructor returns, save one that called it.
  virtual void SetWakeup(std::function<void()> wakeup) = 0;

  // What this rank waits for, the oldest first: collectives, then messages.
  // Any thread, also while another is in a call. Once the group is aborted:
  // what the rank waited for then (and, between processes, the collective that
  // it was refused first), for whoever asks why.
  virtual std::vector<Waiting> Waits() const = 0;

  // The first status counts. When the call that brought it returns, no rank's
  // range is touched any more.
  virtual void Abort(absl::Status status) = 0;
};

// Drives `comm` in the caller's thread until `event` is ready: by spinning,
// then by yielding. kDeadlineExceeded after `timeout`: aborts the group.
absl::Status Await(Communicator& comm, const Event& event,
                   absl::Duration timeout);

// Starts all, in order, each once `after` is ready; the event is ready when all
// are, with the first error there was.
//   kInvalidArgument: see CheckCollective(). Nothing was started.
//   otherwise as Start(). Where some had been started and another could not be,
//     the group is aborted: those cannot be taken back, and the peers would
//     wait for the rest.
absl::StatusOr<Event> StartCoalesced(Communicator& comm,
                                     absl::Span<const Collective> collectives,
                                     const Event& after);

}  // namespace troupe::comm

#endif  // COMM_COMMUNICATOR_H_
