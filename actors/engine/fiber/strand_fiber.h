// The fiber (stackful coroutine) on which a compute strand runs its steps. Code
// that waits yields to the strand's message loop, and continues when the strand
// resumes the fiber.
//
//   StrandFiber fiber(options, [&] { RunSteps(); });  // and fiber.AwaitNews()
//   // For each message of the strand:
//   switch (fiber.Resume()) {
//     case StrandFiber::State::kWaiting: break;   // resume on a message
//     case StrandFiber::State::kLooking: break;   // after the queued messages
//     case StrandFiber::State::kDone: End();
//   }
//
// A strand with a thread of its own spins in RunInline(), and handles messages
// in TakeNews() only if news is expected, so that it switches only to wait.
// Strands that share one thread (the simulator's) would deadlock in this way:
// they yield while a collective waits for peers, and in every TakeNews(), so
// that ranks interleave. The additions of a collective are the same.
//
// A fiber that is destroyed in the middle of RunInline() aborts the group,
// since the memory of its stack frames must not be used by peers any more.
//
// Errors: an exception of the body leaves through Resume().
// Threads: one. Cost: 7 ns a switch (base/fibers/fiber.h).

#ifndef ACTORS_ENGINE_FIBER_STRAND_FIBER_H_
#define ACTORS_ENGINE_FIBER_STRAND_FIBER_H_

#include <functional>

#include "absl/time/time.h"
#include "actors/engine/fiber/strand_wait.h"
#include "base/fibers/fiber.h"

namespace troupe::actors {

class StrandFiber : public StrandWait {
 public:
  struct Options {
    // Whether the peers' strands run in this same thread.
    bool shared_thread = false;
    // Limit on the time that RunInline() waits for peers. Unused if the thread
    // is shared: the job's supervision then ends the wait.
    absl::Duration timeout = absl::InfiniteDuration();
    // Asks the strand to resume a waiting fiber, since a collective of
    // RunInline() has progressed. It is called in any thread and must not
    // resume the fiber itself. Needed if the thread is shared.
    std::function<void()> notify;
  };
  enum class State { kWaiting, kLooking, kDone };

  StrandFiber(Options options, std::function<void()> body);

  // Runs the body until it waits, yields in TakeNews(), or ends.
  State Resume();

  // StrandWait, called by the body:
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

#endif  // ACTORS_ENGINE_FIBER_STRAND_FIBER_H_
