// A StrandWait whose TakeNews() can be disabled for a while: nothing else may
// run on the strand while a step is recorded.
//
//   QuietWait wait(&fiber);
//   {
//     const QuietWait::Scope quiet(wait);
//     wait.TakeNews(/*expected=*/false);         // returns at once
//   }
//
// Threads: the strand's.

#ifndef ACTORS_ENGINE_FIBER_QUIET_WAIT_H_
#define ACTORS_ENGINE_FIBER_QUIET_WAIT_H_

#include "absl/status/status.h"
#include "actors/engine/fiber/strand_wait.h"
#include "comm/communicator.h"

namespace troupe::actors {

class QuietWait final : public StrandWait {
 public:
  // `wait` outlives it.
  explicit QuietWait(StrandWait* wait) : wait_(*wait) {}

  class Scope {
   public:
    explicit Scope(QuietWait& wait) : wait_(wait) { wait_.quiet_ = true; }
    ~Scope() { wait_.quiet_ = false; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    QuietWait& wait_;
  };

  bool quiet() const { return quiet_; }

  void AwaitNews() override { wait_.AwaitNews(); }
  void TakeNews(bool expected) override {
    if (!quiet_) wait_.TakeNews(expected);
  }
  absl::Status RunInline(comm::Communicator& comm,
                         const comm::Collective& collective) override {
    return wait_.RunInline(comm, collective);
  }

 private:
  StrandWait& wait_;
  bool quiet_ = false;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_FIBER_QUIET_WAIT_H_
