// Chooses the next operation by the seed, and runs it.
//
//     Enqueue(stream, std::move(work));
//     WaitUntil([&] { return op->done; }, [] { return "an event"; });
//     Hear(op);
//
// Threads: under the runtime's lock, which WaitUntil() releases in between.

#ifndef BASE_CUDA_EMULATED_RUNTIME_SCHEDULER_H_
#define BASE_CUDA_EMULATED_RUNTIME_SCHEDULER_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "base/cuda/emulated/runtime/operation.h"

namespace emulated_cuda {

// Appends `work` to the stream's queue, or adds it to the graph that the stream
// is captured into. Errors are stored for cudaGetLastError().
cudaError_t Enqueue(Stream& stream, Work work);

// Enqueues without regard to capture. The operation also waits for `after`.
OperationPtr Push(Stream& stream, Work work, std::vector<OperationPtr> after);

// Returns whether all operations that `op` waits for are complete.
bool WaitsForNothing(const Operation& op);

// Runs one operation, or a part of one. Returns false if nothing can run.
bool Step();
// Run a few steps, by the seed: at the end of any call, or of a query.
void RunSome();
void RunBeforeAnswer();

// Runs operations, and lets other host threads run, until `done` returns true.
// Returns false after Options::stall_seconds without progress, which is
// reported.
bool WaitUntil(const std::function<bool()>& done,
               const std::function<std::string()>& what);
// Waits for one operation (null: none), and orders the host after it; returns
// cudaErrorLaunchTimeout if it did not complete.
cudaError_t WaitFor(const OperationPtr& op, const std::string& what);

// Calls `f` as the stream of `op`, which may run: for the sanitizer, `f`
// happens after all that `op` waits for.
void CallAs(Operation& op, const std::function<void()>& f);

// Orders the host after `op`, which is complete; null: no effect.
void Hear(const OperationPtr& op);

// Returns all streams' first operations, for a report; empty if none waits.
std::string Pending();

// Returns whether this host thread is running an operation.
bool RunsAnOperation();

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_SCHEDULER_H_
