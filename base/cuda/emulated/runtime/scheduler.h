// Chooses, by the seed, which operation runs next, and runs it.
//
//     Enqueue(stream, std::move(work));
//     WaitUntil([&] { return op->done; }, [] { return "an event"; });
//     Hear(op);
//
// Threads: under the runtime's lock, which WaitUntil() lets others have.

#ifndef BASE_CUDA_EMULATED_RUNTIME_SCHEDULER_H_
#define BASE_CUDA_EMULATED_RUNTIME_SCHEDULER_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "base/cuda/emulated/runtime/operation.h"

namespace emulated_cuda {

// Puts `work` at the end of the stream's queue, or into the graph that the
// stream is captured for. Errors are remembered for cudaGetLastError().
cudaError_t Enqueue(Stream& stream, Work work);

// Past capture: the operation, which runs after `after` as well.
OperationPtr Push(Stream& stream, Work work, std::vector<OperationPtr> after);

// Whether every operation before `op` that it waits for is done.
bool WaitsForNothing(const Operation& op);

// Runs one operation, or a part of one. False: nothing can run.
bool Step();
// A few steps, by the seed: at the end of any call, or of one that asks.
void RunSome();
void RunBeforeAnswer();

// Runs operations, and lets other host threads in, until `done` says so. False
// when nothing has moved for Options::stall_seconds, which is reported.
bool WaitUntil(const std::function<bool()>& done,
               const std::function<std::string()>& what);
// The same for one operation (null: done), and the host has seen it done then:
// cudaErrorLaunchTimeout if that did not come to be.
cudaError_t WaitFor(const OperationPtr& op, const std::string& what);

// Calls `f` as the stream of `op`, which is allowed to run: what the sanitizer
// sees of `f` happens after all that `op` waits for.
void CallAs(Operation& op, const std::function<void()>& f);

// The host has seen that `op` is done; null: nothing.
void Hear(const OperationPtr& op);

// All streams' first operations, for a report; empty if none waits.
std::string Pending();

// Whether this host thread runs an operation now.
bool RunsAnOperation();

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_SCHEDULER_H_
