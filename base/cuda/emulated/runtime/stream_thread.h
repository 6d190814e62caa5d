// The thread that represents a stream for ThreadSanitizer: a fiber of the
// sanitizer, with its own clock, and a stack for user code that runs on it.
//
//     std::unique_ptr<StreamThread> thread = StreamThread::Take("stream 1");
//     thread->Call(site, [&] { std::memcpy(to, from, bytes); });
//     thread->CallOnOwnStack(site, [&] { kernel(); });
//     StreamThread::GiveBack(std::move(thread));
//
// Nothing runs concurrently: Call() returns when the function has returned.
// Switching orders nothing; Acquire() and Release() within the function do.
// User code needs its own stack, since on the caller's the sanitizer would see
// the stream and the host write to the same addresses.
//
// Threads: under the runtime's lock. Costs: 0.1 us per call on the own stack.

#ifndef BASE_CUDA_EMULATED_RUNTIME_STREAM_THREAD_H_
#define BASE_CUDA_EMULATED_RUNTIME_STREAM_THREAD_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/cuda/emulated/runtime/call_site.h"

namespace emulated_cuda {

class StreamThread {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{512} << 10;

  // Returns a thread that was given back, or a new one. The sanitizer supports
  // some 8,000 in the life of a process.
  static std::unique_ptr<StreamThread> Take(const std::string& name);
  static void GiveBack(std::unique_ptr<StreamThread> thread);

  StreamThread();
  StreamThread(const StreamThread&) = delete;
  StreamThread& operator=(const StreamThread&) = delete;
  ~StreamThread();

  // Calls `f` as this thread; reports show `site` above its frames. `f` must
  // not throw.
  void Call(const CallSite& site, const std::function<void()>& f);

  // Does the same on this thread's own stack; exceptions of `f` propagate.
  void CallOnOwnStack(const CallSite& site, const std::function<void()>& f);

 private:
  void OnStack(const std::function<void()>& f);

  void* fiber_ = nullptr;
  char* stack_ = nullptr;  // lowest byte; the page below is inaccessible
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_STREAM_THREAD_H_
