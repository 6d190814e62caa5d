#include "base/fibers/fiber.h"

#include <cxxabi.h>
#include <unistd.h>

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/fibers/fiber_sanitizers.h"

namespace troupe::base {
namespace {

namespace context = boost::context;

// The exceptions being caught or thrown. The C++ runtime keeps them per thread;
// here each stack has its own, so that a fiber may yield inside a catch block
// and be unwound while another exception propagates.
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;

  // Stores this state in the thread, and takes the thread's.
  void SwapWithThread() {
    auto* of_thread =
        reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
    std::swap(*this, *of_thread);
  }
};

}  // namespace

class Fiber::Impl : public Fiber::Yielder {
 public:
  explicit Impl(std::function<void(Yielder&)> body)
      : body_(std::move(body)),
        fiber_(std::allocator_arg, Stack{this},
               [this](context::fiber&& resumer) {
                 return Main(std::move(resumer));
               }) {}

  ~Impl() {
    if (done_) return;
    if (!started_) {
      // Boost would unwind it with an exception; its function never runs.
      abandoned_ = true;
      SwitchIn([this] { fiber_ = std::move(fiber_).resume(); });
    } else {
      // Throws forced_unwind on the fiber's stack, out of Yield().
      SwitchIn([this] { fiber_ = context::fiber(); });
    }
  }

  void Resume() {
    TROUPE_CHECK(!done_ && !running_, "a fiber that waits is resumed");
    started_ = true;
    SwitchIn([this] { fiber_ = std::move(fiber_).resume(); });
    if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
  }

  bool done() const { return done_; }

  void Yield() override {
    TROUPE_CHECK(running_, "a fiber yields from its own function");
    sanitizers_.Leave(/*last=*/false);
    // A destructor, since resume() may throw to unwind the fiber.
    struct Arrival {
      FiberSanitizers& sanitizers;
      ~Arrival() { sanitizers.Arrive(); }
    } arrival{sanitizers_};
    resumer_ = std::move(resumer_).resume();
  }

 private:
  // Reports the stack's location to the sanitizers.
  struct Stack {
    Impl* impl;
    context::protected_fixedsize_stack stack{kStackBytes};

    context::stack_context allocate() {
      context::stack_context made = stack.allocate();
      const std::size_t guard = static_cast<std::size_t>(getpagesize());
      impl->sanitizers_.SetStack(
          static_cast<char*>(made.sp) - made.size + guard, made.size - guard);
      return made;
    }
    void deallocate(context::stack_context& made) {
      impl->sanitizers_.DropStack();
      stack.deallocate(made);
    }
  };

  // The first frame of the fiber's stack. Returns the fiber to continue with.
  context::fiber Main(context::fiber&& resumer) {
    sanitizers_.Arrive();
    resumer_ = std::move(resumer);
    // A destructor, since the stack may be unwound: the last code to run on it.
    struct Departure {
      Impl* impl;
      ~Departure() {
        impl->done_ = true;
        impl->sanitizers_.Leave(/*last=*/true);
      }
    } departure{this};
    try {
      if (!abandoned_) body_(*this);
    } catch (const context::detail::forced_unwind&) {
      throw;  // thrown by Boost to unwind the stack
    } catch (...) {
      exception_ = std::current_exception();
    }
    return std::move(resumer_);
  }

  template <typename Switch>
  void SwitchIn(Switch switch_in) {
    running_ = true;
    exceptions_.SwapWithThread();
    sanitizers_.Enter();
    switch_in();
    sanitizers_.Return();
    exceptions_.SwapWithThread();
    running_ = false;
  }

  const std::function<void(Yielder&)> body_;
  FiberSanitizers sanitizers_;
  // The fiber's while it waits, otherwise the thread's.
  ExceptionState exceptions_;
  bool started_ = false;
  bool abandoned_ = false;
  bool running_ = false;
  bool done_ = false;
  std::exception_ptr exception_;
  context::fiber resumer_;
  context::fiber fiber_;
};

Fiber::Fiber(std::function<void(Yielder&)> body)
    : impl_(std::make_unique<Impl>(std::move(body))) {}

Fiber::~Fiber() = default;

void Fiber::Resume() { impl_->Resume(); }

bool Fiber::done() const { return impl_->done(); }

}  // namespace troupe::base
