#include "comm/local/wakeup.h"

#include <utility>

namespace troupe::comm::internal {
namespace {

// List of the calls that this thread is in, the innermost first.
struct Frame {
  const Wakeup* of;
  const Frame* outer;
};
thread_local const Frame* innermost = nullptr;

int CallsHere(const Wakeup* of) {
  int count = 0;
  for (const Frame* frame = innermost; frame != nullptr; frame = frame->outer) {
    if (frame->of == of) ++count;
  }
  return count;
}

}  // namespace

// Spans one call from begin to end, also if it throws.
class Wakeup::Running {
 public:
  explicit Running(Wakeup& wakeup)
      : wakeup_(wakeup), frame_{&wakeup, innermost} {
    innermost = &frame_;
    absl::MutexLock lock(&wakeup_.mutex_);
    ++wakeup_.running_;
    function_ = wakeup_.function_;
  }
  ~Running() {
    innermost = frame_.outer;
    absl::MutexLock lock(&wakeup_.mutex_);
    --wakeup_.running_;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void operator()() const {
    if (function_ != nullptr) (*function_)();
  }

 private:
  Wakeup& wakeup_;
  const Frame frame_;
  std::shared_ptr<const std::function<void()>> function_;
};

void Wakeup::Set(std::function<void()> function) {
  std::shared_ptr<const std::function<void()>> other;
  if (function) {
    other = std::make_shared<const std::function<void()>>(std::move(function));
  }
  const int here = CallsHere(this);
  absl::MutexLock lock(&mutex_);
  function_.swap(other);  // the old function is destroyed after the lock
  const auto others_returned = [this, here]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                                   mutex_) { return running_ == here; };
  mutex_.Await(absl::Condition(&others_returned));
}

void Wakeup::Call() {
  const Running call(*this);
  call();
}

}  // namespace troupe::comm::internal
