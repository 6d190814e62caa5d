// Something under way in a group: torch.distributed's Work.
//
//   Work work = rank.world().StartAllReduce(sums, ReduceOp::kMax);
//   const Var y = model(x);                       // meanwhile
//   work.Wait();
//   Work received = rank.world().StartRecv(into);  // from any rank
//   while (!received.done()) GoOn();
//   const int from = received.source();
//
// Copies are the same work. What is not waited for is waited for at the end of
// the program.
//
// Errors: base::StatusError, with the call that has started it and its line.
// Threads: the rank's own.

#ifndef TROUPE_WORK_H_
#define TROUPE_WORK_H_

#include <memory>

#include "base/event.h"
#include "comm/communicator.h"

namespace troupe {

// Source for Recv() that matches every sender.
inline constexpr int kAnySource = comm::kAnySource;

class Work {
 public:
  Work() = default;
  // Whether Wait() returns at once, and its tensors hold the result. Ended is
  // also what has failed.
  bool done() const;
  // Waits for its end. Its tensors hold the result, or may be used again.
  void Wait();
  // Returns the rank that has sent what a StartRecv() has received.
  int source() const;

 private:
  friend class Group;       // makes it
  friend class HookRunner;  // troupe/internal/hook_runner.h
  struct State;             // troupe/internal/work_state.h
  // Puts a message that has come into its tensor.
  void Land() const;
  // Whether nothing uses its tensors any more.
  bool released() const;
  // The communicator of its group and its end; null, and a completed event, for
  // a work that is nothing.
  comm::Communicator* comm() const;
  base::Event event() const;
  std::shared_ptr<State> state_;
};

}  // namespace troupe

#endif  // TROUPE_WORK_H_
