// Tells ThreadSanitizer about Abseil's locks. Debian's libabsl_*.a is not
// instrumented, so that the sanitizer would see no order between two holders of
// an absl::Mutex and report a race on each variable it guards.
//
// The linker sends every call of a function below to its wrapper (BUILD has the
// list, --wrap is the option). The wrapper calls the original and says what it
// ordered: giving a mutex up releases its address, taking it acquires it.

#include <cstdint>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);

// The table of error texts is made once, under a lock within Abseil.
const char* __tsan_default_suppressions() {
  return "race:absl::debian3::base_internal::StrError\n";
}
}

namespace {

using absl::BlockingCounter;
using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Notification;
using absl::Time;

// Abseil's graph of which mutex is held while another is taken changes under
// such a lock as well. The other builds look for deadlocks.
[[maybe_unused]] const bool kNoGraph = [] {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return true;
}();

// Abseil evaluates the conditions of waiters while it locks and unlocks, under
// a lock that the sanitizer does not see.
struct IgnoreAccesses {
  IgnoreAccesses() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~IgnoreAccesses() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
};

// Around a call that begins by giving the mutex up.
struct Gives {
  explicit Gives(void* mu) { __tsan_release(mu); }
  IgnoreAccesses ignore;
};

// Around a call that ends with the mutex taken. A TryLock that fails orders too
// much, which can hide a race but not invent one.
struct Takes {
  explicit Takes(void* mu) : acquire{mu} {}
  struct Acquire {
    void* mu;
    ~Acquire() { __tsan_acquire(mu); }
  } acquire;
  IgnoreAccesses ignore;
};

}  // namespace

// Declares Real<Name>, the original, and Wrap<Name>, to be defined below.
#define WRAPPED(Result, Name, symbol, ...) \
  WRAPPED_SYMBOL(Result, Name, "_ZN4absl7debian3" symbol, __VA_ARGS__)
#define WRAPPED_CONST(Result, Name, symbol, ...) \
  WRAPPED_SYMBOL(Result, Name, "_ZNK4absl7debian3" symbol, __VA_ARGS__)
#define WRAPPED_SYMBOL(Result, Name, symbol, ...)       \
  Result Real##Name(__VA_ARGS__) asm("__real_" symbol); \
  Result Wrap##Name(__VA_ARGS__) asm("__wrap_" symbol); \
  Result Wrap##Name(__VA_ARGS__)

WRAPPED(void, Lock, "5Mutex4LockEv", Mutex* mu) {
  Takes takes(mu);
  RealLock(mu);
}

WRAPPED(void, Unlock, "5Mutex6UnlockEv", Mutex* mu) {
  Gives gives(mu);
  RealUnlock(mu);
}

WRAPPED(bool, TryLock, "5Mutex7TryLockEv", Mutex* mu) {
  Takes takes(mu);
  return RealTryLock(mu);
}

WRAPPED(void, ReaderLock, "5Mutex10ReaderLockEv", Mutex* mu) {
  Takes takes(mu);
  RealReaderLock(mu);
}

WRAPPED(void, ReaderUnlock, "5Mutex12ReaderUnlockEv", Mutex* mu) {
  Gives gives(mu);
  RealReaderUnlock(mu);
}

WRAPPED(bool, ReaderTryLock, "5Mutex13ReaderTryLockEv", Mutex* mu) {
  Takes takes(mu);
  return RealReaderTryLock(mu);
}

WRAPPED(void, Await, "5Mutex5AwaitERKNS0_9ConditionE", Mutex* mu,
        const Condition& condition) {
  Gives gives(mu);
  Takes takes(mu);
  RealAwait(mu, condition);
}

WRAPPED(bool, AwaitWithTimeout,
        "5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE", Mutex* mu,
        const Condition& condition, Duration timeout) {
  Gives gives(mu);
  Takes takes(mu);
  return RealAwaitWithTimeout(mu, condition, timeout);
}

WRAPPED(bool, AwaitWithDeadline,
        "5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE", Mutex* mu,
        const Condition& condition, Time deadline) {
  Gives gives(mu);
  Takes takes(mu);
  return RealAwaitWithDeadline(mu, condition, deadline);
}

WRAPPED(void, LockWhen, "5Mutex8LockWhenERKNS0_9ConditionE", Mutex* mu,
        const Condition& condition) {
  Takes takes(mu);
  RealLockWhen(mu, condition);
}

WRAPPED(bool, LockWhenWithTimeout,
        "5Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE",
        Mutex* mu, const Condition& condition, Duration timeout) {
  Takes takes(mu);
  return RealLockWhenWithTimeout(mu, condition, timeout);
}

WRAPPED(bool, LockWhenWithDeadline,
        "5Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE", Mutex* mu,
        const Condition& condition, Time deadline) {
  Takes takes(mu);
  return RealLockWhenWithDeadline(mu, condition, deadline);
}

WRAPPED(void, Wait, "7CondVar4WaitEPNS0_5MutexE", CondVar* cv, Mutex* mu) {
  Gives gives(mu);
  Takes takes(mu);
  RealWait(cv, mu);
}

WRAPPED(bool, WaitWithTimeout,
        "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE", CondVar* cv,
        Mutex* mu, Duration timeout) {
  Gives gives(mu);
  Takes takes(mu);
  return RealWaitWithTimeout(cv, mu, timeout);
}

WRAPPED(bool, WaitWithDeadline,
        "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE", CondVar* cv,
        Mutex* mu, Time deadline) {
  Gives gives(mu);
  Takes takes(mu);
  return RealWaitWithDeadline(cv, mu, deadline);
}

// The functions below also use atomics inside the archive, of which the
// sanitizer sees neither end, or only one.

// HasBeenNotified() is inline: it acquires the flag, which follows the mutex.
void* FlagOf(const Notification* notification) {
  return const_cast<char*>(reinterpret_cast<const char*>(notification)) +
         sizeof(Mutex);
}

WRAPPED(void, Notify, "12Notification6NotifyEv", Notification* notification) {
  Gives gives(FlagOf(notification));
  RealNotify(notification);
}

WRAPPED_CONST(void, WaitForNotification,
              "12Notification19WaitForNotificationEv",
              const Notification* notification) {
  Takes takes(FlagOf(notification));
  RealWaitForNotification(notification);
}

WRAPPED_CONST(bool, WaitForNotificationWithTimeout,
              "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE",
              const Notification* notification, Duration timeout) {
  Takes takes(FlagOf(notification));
  return RealWaitForNotificationWithTimeout(notification, timeout);
}

WRAPPED_CONST(bool, WaitForNotificationWithDeadline,
              "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE",
              const Notification* notification, Time deadline) {
  Takes takes(FlagOf(notification));
  return RealWaitForNotificationWithDeadline(notification, deadline);
}

WRAPPED(bool, DecrementCount, "15BlockingCounter14DecrementCountEv",
        BlockingCounter* counter) {
  Gives gives(counter);
  return RealDecrementCount(counter);
}

WRAPPED(void, WaitForZero, "15BlockingCounter4WaitEv",
        BlockingCounter* counter) {
  Takes takes(counter);
  RealWaitForZero(counter);
}

// The last reference to an absl::Status frees it, ordered by an atomic count.
WRAPPED(void, UnrefNonInlined, "6Status15UnrefNonInlinedEm",
        std::uintptr_t rep) {
  IgnoreAccesses ignore;
  RealUnrefNonInlined(rep);
}
