// How code on a compute strand waits for other strands, without knowing how the
// strand does it: production's thread and the simulator's fiber take the same
// path through the step engine.
//
//   while (!cursor.complete()) {
//     if (!RunWhatMay()) wait.AwaitNews();     // until a message came
//   }
//
// StrandFiber (strand_fiber.h) is the one of actors; a test on plain threads
// blocks instead.
//
// Threads: the strand's.

#ifndef ACTORS_ENGINE_STRAND_WAIT_H_
#define ACTORS_ENGINE_STRAND_WAIT_H_

#include "absl/status/status.h"
#include "comm/communicator.h"

namespace troupe::actors {

class StrandWait {
 public:
  virtual ~StrandWait() = default;

  // Returns when there may be news: a collective is done, a tensor came. May
  // return without any.
  virtual void AwaitNews() = 0;

  // A point between two pieces of work, at which the strand may take in news
  // before the work goes on. `expected`: some is on its way.
  virtual void TakeNews(bool expected) = 0;

  // Runs `collective` to its end on this strand, as Communicator::RunInline().
  virtual absl::Status RunInline(comm::Communicator& comm,
                                 const comm::Collective& collective) = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STRAND_WAIT_H_
