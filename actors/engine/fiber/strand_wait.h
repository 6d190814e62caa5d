// Interface through which code on a compute strand waits for other strands. It
// hides how the strand blocks, so that production and the simulator take the
// same path through the step engine.
//
//   while (!cursor.complete()) {
//     if (!RunWhatMay()) wait.AwaitNews();     // until a message arrives
//   }
//
// StrandFiber (strand_fiber.h) implements it for actors; tests on plain threads
// have one that blocks.
//
// Threads: the strand's.

#ifndef ACTORS_ENGINE_FIBER_STRAND_WAIT_H_
#define ACTORS_ENGINE_FIBER_STRAND_WAIT_H_

#include "absl/status/status.h"
#include "comm/communicator.h"

namespace troupe::actors {

class StrandWait {
 public:
  virtual ~StrandWait() = default;

  // Waits for news: the end of a collective, or a tensor of another stage. May
  // return without any.
  virtual void AwaitNews() = 0;

  // Lets the strand handle its messages between two pieces of work, without
  // waiting for any. `expected`: whether news is on its way.
  virtual void TakeNews(bool expected) = 0;

  // Runs `collective` to its end on this strand, like
  // Communicator::RunInline().
  virtual absl::Status RunInline(comm::Communicator& comm,
                                 const comm::Collective& collective) = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_FIBER_STRAND_WAIT_H_
