// The fiber on which a compute strand runs its steps: code that waits returns
// to the strand's message loop, and goes on when the strand resumes it.
//
//   StrandFiber fiber(options, [&] { RunSteps(); });  // and fiber.AwaitNews()
//   // For each message of the strand:
//   switch (fiber.Resume()) {
//     case StrandFiber::State::kWaiting: break;   // until the next message
//     case StrandFiber::State::kLooking: break;   // after those that are there
//     case StrandFiber::State::kDone: End();
//   }
//
// Strands with a thread each spin in RunInline(), and look into their mailbox
// only where news is expected, so that nothing switches unless it waits.
// Strands that share one thread (the simulator's) would wait for ever in this
// way: they yield while a collective waits for peers, and at every point where
// they may, so that ranks interleave. The additions of a collective are the
// same.
//
// One that is destroyed in the middle of RunInline() aborts the group: peers
// may not touch what its frames held.
//
// Errors: an exception of the body leaves through Resume().
// Threads: one. Cost: 7 ns a switch (base/fiber.h).

#ifndef ACTORS_ENGINE_STRAND_FIBER_H_
#define ACTORS_ENGINE_STRAND_FIBER_H_

#include <functional>

#include "absl/time/time.h"
#include "actors/engine/strand_wait.h"
#include "base/fiber.h"

namespace troupe::actors {

class StrandFiber : public StrandWait {
 public:
  struct Options {
    // Whether the peers' strands run in this very thread.
    bool shared_thread = false;
    // How long RunInline() waits for peers that have threads of their own.
    // Where the thread is shared, whoever watches over the job ends the wait.
    absl::Duration timeout = absl::InfiniteDuration();
    // Tells the strand to resume a waiting fiber, since a collective of
    // RunInline() has come on. Called in any thread; only leaves a note. Needed
    // where the thread is shared.
    std::function<void()> notify;
  };
  enum class State { kWaiting, kLooking, kDone };

  StrandFiber(Options options, std::function<void()> body);

  // Runs the body until it waits, looks for news or ends.
  State Resume();

  // StrandWait, for the body:
  void AwaitNews() override { Yield(State::kWaiting); }
  void TakeNews(bool expected) override {
    if (expected || options_.shared_thread) Yield(State::kLooking);
  }
  absl::Status RunInline(comm::Communicator& comm,
                         const comm::Collective& collective) override;

 private:
  void Yield(State state);

  const Options options_;
  State state_ = State::kWaiting;
  base::Fiber::Yielder* yielder_ = nullptr;
  base::Fiber fiber_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STRAND_FIBER_H_
