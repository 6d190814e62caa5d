// A function that can wait in the middle of a call: it runs on a stack of its
// own, gives the thread back with Yield() and goes on at the next Resume().
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
// Errors: an exception that leaves the function leaves through the Resume()
// that ran it, and the fiber is done. The constructor throws std::bad_alloc
// where there is no address space for the stack.
//
// Lifetime: a fiber that is destroyed while it waits is unwound: destructors of
// its frames run, by an exception that Yield() throws. Code on a fiber may
// therefore catch(...) around a Yield() only to rethrow.
//
// Threads: one at a time. Code that keeps pointers to thread-local data across
// a Yield() needs all Resume() calls in one thread, so a strand's fiber stays
// with its strand. No lock is held across a Yield(). A fiber may resume others,
// and yield from within them: all of them wait then, and go on together; until
// then none of them may be destroyed.
//
// Limits: the stack has kStackBytes, mapped page by page as it is touched, and
// an unmapped page below it, so that too deep a call ends the program there.
//
// Cost: about 7 ns a switch. Built on Boost.Context; AddressSanitizer and
// ThreadSanitizer are told of each switch.

#ifndef BASE_FIBER_H_
#define BASE_FIBER_H_

#include <cstddef>
#include <functional>
#include <memory>

namespace troupe::base {

class Fiber {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{8} << 20;

  // How the function gives the thread back. Lives as long as the fiber.
  class Yielder {
   public:
    virtual void Yield() = 0;

   protected:
    ~Yielder() = default;
  };

  // Nothing of `body` runs before the first Resume().
  explicit Fiber(std::function<void(Yielder&)> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Runs the function until it yields or ends. Not from the fiber itself, nor
  // when it is done.
  void Resume();
  bool done() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::base

#endif  // BASE_FIBER_H_
