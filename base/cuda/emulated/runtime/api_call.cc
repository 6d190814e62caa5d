#include "base/cuda/emulated/runtime/api_call.h"

#include <sched.h>

#include <atomic>
#include <string>

#include "base/cuda/emulated/runtime/scheduler.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

// A spin lock: ThreadSanitizer would treat a mutex's edges as the program's.
std::atomic_flag locked = ATOMIC_FLAG_INIT;

void Lock() {
  while (locked.test_and_set(std::memory_order_acquire)) sched_yield();
}
void Unlock() { locked.clear(std::memory_order_release); }

}  // namespace

WorldLock::WorldLock() {
  Lock();
  if (!HasWorld()) ReplaceWorld(Options());
}

WorldLock::~WorldLock() {
  CloseMemory();
  Unlock();
}

void WorldLock::LetOthersIn() {
  CloseMemory();
  Unlock();
  sched_yield();
  Lock();
}

ApiCall::ApiCall(const char* function, const void* frame, OnBroken on_broken) {
  if (RunsAnOperation()) {
    Problem(std::string(function) + " was called inside an operation");
    refused_ = cudaErrorNotPermitted;
    return;
  }
  lock_.emplace();
  site_ = CallSite::Above(frame);
  refused_ = Fail(Refusal(function, on_broken));
}

ApiCall::~ApiCall() {
  if (lock_) RunSome();
}

cudaError_t ApiCall::Refusal(const char* function, OnBroken on_broken) const {
  World& world = TheWorld();
  const FailingCall& fail = world.options.fail;
  const bool counts = fail.function.empty() || fail.function == function;
  if (counts) ++world.calls;
  const bool has_device = !world.devices.empty();
  if (fail.number != 0 && counts && world.calls == fail.number) {
    if (fail.sticky && has_device) CurrentDevice().broken = fail.error;
    return fail.error;
  }
  if (!has_device) {
    return on_broken == OnBroken::kFails ? cudaErrorNoDevice : cudaSuccess;
  }
  return on_broken == OnBroken::kFails ? CurrentDevice().broken : cudaSuccess;
}

}  // namespace emulated_cuda
