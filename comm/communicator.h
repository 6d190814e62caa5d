// What one rank holds of a group: it starts collectives and drives them.
//
//   std::vector<std::unique_ptr<Communicator>> group = MakeLocalGroup({2});
//   Communicator& comm = *group[rank];
//   absl::StatusOr<Event> sum =
//       comm.Start(AllReduce(ReduceOp::kSum, gradients), /*after=*/Event());
//   while (!sum->ready()) comm.Progress();          // or from an actor's loop
//
// Order: all ranks of a group start the same collectives in the same order, on
// ranges of equal count and dtype. A rank that starts another one than its
// peers fails the whole group with an error that names both.
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
//
// Threads: Start, Progress and SetWakeup of one Communicator from one thread at
// a time; different ranks' from different threads. Abort() from any.

#ifndef COMM_COMMUNICATOR_H_
#define COMM_COMMUNICATOR_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/event.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

enum class ReduceOp { kSum, kAvg, kMin, kMax, kProduct };
enum class CollectiveKind { kAllReduce, kBroadcast, kBarrier };

// One collective as a rank asks for it. `range` is reduced or received in
// place; it stays alive until the event is ready. Empty for a barrier.
struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  // of a broadcast, in the group
  nn::Tensor range;

  // "all_reduce(sum, f32 x 1024)"; what errors and traces print.
  std::string ToString() const;
};

Collective AllReduce(ReduceOp op, nn::Tensor range);
Collective Broadcast(int root, nn::Tensor range);
Collective Barrier();

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Starts `collective` once `after` is ready; the event is ready when this
  // rank's range holds the result and may be reused.
  //   kInvalidArgument: dtype or op not supported, root outside the group.
  //   the status of Abort(), once the group is aborted.
  virtual absl::StatusOr<Event> Start(const Collective& collective,
                                      Event after) = 0;

  // Does at most one chunk of work. False when there is none now.
  virtual bool Progress() = 0;

  // `wakeup` is called (from any thread, must not block) whenever Progress()
  // of this rank may find work after it had found none.
  virtual void SetWakeup(std::function<void()> wakeup) = 0;

  virtual void Abort(absl::Status status) = 0;
};

}  // namespace troupe::comm

#endif  // COMM_COMMUNICATOR_H_
