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
// one thread at a time; different ranks' from different threads. Abort() from
// any. An event's callback may use the Communicator of the thread it runs in.

#ifndef COMM_COMMUNICATOR_H_
#define COMM_COMMUNICATOR_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/event.h"
#include "comm/reduce_op.h"
#include "comm/replica_update.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

using Event = base::Event;

enum class CollectiveKind { kAllReduce, kBroadcast, kBarrier, kReduceUpdate };

// One collective as a rank asks for it. `range` is reduced or received in
// place; it and `update` stay alive until the event is ready, and ranges of
// different ranks do not overlap. Empty for a barrier.
struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  // of a broadcast, in the group
  nn::Tensor range;
  std::shared_ptr<ReplicaUpdate> update;  // of a reduce_update

  // "all_reduce(sum, f32 x 1024)", "broadcast(root 0, bf16 x 8)", "barrier()";
  // what errors and traces print.
  std::string ToString() const;
};

Collective AllReduce(ReduceOp op, nn::Tensor range);
// Reduces, and updates every rank's replicas from the result
// (replica_update.h). The ranges keep what they hold.
Collective ReduceUpdate(ReduceOp op, nn::Tensor range,
                        std::shared_ptr<ReplicaUpdate> update);
Collective Broadcast(int root, nn::Tensor range);
Collective Barrier();

// kInvalidArgument where no group of `size` ranks can run `collective`: an op
// that its dtype lacks, a root outside the group, a range without memory or on
// another device than the CPU, replicas that are not as long as the range.
absl::Status CheckCollective(const Collective& collective, int size);

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Starts `collective` once `after` is ready; the event is ready when this
  // rank's range holds the result and may be reused. An `after` that fails
  // aborts the group: the peers would wait for ever.
  //   kInvalidArgument: see CheckCollective(). Nothing was started.
  //   kResourceExhausted: too many are in flight. Nothing was started; drive
  //     those and start again.
  //   the status of Abort(), once the group is aborted.
  virtual absl::StatusOr<Event> Start(const Collective& collective,
                                      Event after) = 0;

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

  // `wakeup` is called whenever Progress() of this rank may find work after it
  // had found none: from any thread, perhaps within this very call of a peer's.
  // It only leaves a note (sends a message, sets a flag): it neither blocks nor
  // uses the communicator, but may set another wakeup. None is running any more
  // when SetWakeup() or the destructor returns, save one that called it.
  virtual void SetWakeup(std::function<void()> wakeup) = 0;

  // The first status counts. When the call that brought it returns, no rank's
  // range is touched any more.
  virtual void Abort(absl::Status status) = 0;
};

}  // namespace troupe::comm

#endif  // COMM_COMMUNICATOR_H_
