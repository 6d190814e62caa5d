// A stackful coroutine: a function with a stack of its own, which returns the
// thread with Yield() and continues at the next Resume().
//
//   Fiber fiber([&](Fiber::Yielder& yielder) {
//     while (!mail.empty()) Handle(mail);
//     yielder.Yield();                       // Resume() returns here
//     Handle(mail);
//   });
//   while (!fiber.done()) {
//     fiber.Resume();                        // runs it to its next Yield()
//     Listen();                              // between its turns
//   }
//
// Errors: an exception that leaves the function is rethrown by the Resume()
// that ran it, and the fiber is done. The constructor throws std::bad_alloc if
// there is no address space for the stack.
//
// Lifetime: a fiber that is destroyed while it waits is unwound: the
// destructors of its frames run, by an exception that Yield() throws. So a
// catch(...) around a Yield() on a fiber must rethrow.
//
// Threads: one at a time. Code that keeps pointers to thread-local data across
// a Yield() needs all Resume() calls in one thread, so a strand's fiber stays
// with its strand. No lock is held across a Yield(). A fiber may resume others,
// and yield from within them: then all of them wait, and continue together;
// none of them may be destroyed before that.
//
// Limits: the stack has kStackBytes, mapped page by page on first access, and
// an unmapped page below it, so that a stack overflow ends the program there.
//
// Cost: about 7 ns per switch. Built on Boost.Context; AddressSanitizer and
// ThreadSanitizer are notified of each switch.

#ifndef BASE_FIBERS_FIBER_H_
#define BASE_FIBERS_FIBER_H_

#include <cstddef>
#include <functional>
#include <memory>

namespace troupe::base {

class Fiber {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{8} << 20;

  // Handle by which the function yields. Lives as long as the fiber.
  class Yielder {
   public:
    virtual void Yield() = 0;

   protected:
    ~Yielder() = default;
  };

  // `body` does not run before the first Resume().
  explicit Fiber(std::function<void(Yielder&)> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Runs the function until it yields or ends. Must not be called from the
  // fiber itself, nor once it is done.
  void Resume();
  bool done() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::base

#endif  // BASE_FIBERS_FIBER_H_
