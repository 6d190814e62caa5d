#include "actors/engine/fiber/strand_fiber.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

// Wakes the strand while it waits for `comm`. If the stack is unwound before
// the collective has ended, the destructor aborts the group, so that no peer
// uses its ranges any more.
class InlineWait {
 public:
  InlineWait(comm::Communicator& comm, const std::function<void()>& notify)
      : comm_(comm) {
    comm_.SetWakeup(notify);
  }
  ~InlineWait() {
    comm_.SetWakeup(nullptr);
    if (!started_ || done_.ready()) return;
    comm_.Abort(absl::CancelledError(absl::StrCat(
        "rank ", comm_.rank(), " of the group ended during a collective")));
  }

  absl::Status Start(const comm::Collective& collective,
                     const std::function<void()>& notify) {
    TROUPE_ASSIGN_OR_RETURN(done_, comm_.Start(collective, base::Event()));
    started_ = true;
    done_.OnReady([notify](const absl::Status&) { notify(); });
    return absl::OkStatus();
  }
  const base::Event& done() const { return done_; }

 private:
  comm::Communicator& comm_;
  bool started_ = false;
  base::Event done_;
};

}  // namespace

StrandFiber::StrandFiber(Options options, std::function<void()> body)
    : options_(std::move(options)),
      fiber_([this, body = std::move(body)](base::Fiber::Yielder& yielder) {
        yielder_ = &yielder;
        body();
      }) {}

StrandFiber::State StrandFiber::Resume() {
  fiber_.Resume();
  return fiber_.done() ? State::kDone : state_;
}

void StrandFiber::Yield(State state) {
  state_ = state;
  yielder_->Yield();
}

absl::Status StrandFiber::RunInline(comm::Communicator& comm,
                                    const comm::Collective& collective) {
  if (!options_.shared_thread) {
    return comm.RunInline(collective, options_.timeout);
  }
  InlineWait wait(comm, options_.notify);
  TROUPE_RETURN_IF_ERROR(wait.Start(collective, options_.notify));
  while (!wait.done().ready()) {
    if (comm.Progress()) {
      TakeNews(/*expected=*/false);
    } else {
      AwaitNews();
    }
  }
  return wait.done().status();
}

}  // namespace troupe::actors
