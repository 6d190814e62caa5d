// What stands in a stream's queue.
//
//     Work work;
//     work.name = "cudaMemsetAsync";
//     work.site = call.site();
//     work.devices = DeviceBit(stream.device);
//     work.run = [=] { std::memset(to, value, bytes); };
//     return Enqueue(stream, std::move(work));  // scheduler.h
//
// Threads: all of it under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_RUNTIME_OPERATION_H_
#define BASE_CUDA_EMULATED_RUNTIME_OPERATION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cuda/emulated/enqueue.h"
#include "base/cuda/emulated/runtime/call_site.h"
#include "base/cuda/emulated/runtime/sanitizers.h"
#include "base/cuda/emulated/runtime/stream_thread.h"

namespace emulated_cuda {

struct Operation;
struct Stream;
using OperationPtr = std::shared_ptr<Operation>;

// A set of devices: bit d is device d.
using DeviceMask = unsigned;
constexpr DeviceMask DeviceBit(int device) { return 1u << device; }

// Something that operations of several streams do together: a collective, a
// send with its receive.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Whether there is something to do for `op`, which is the first of its stream
  // and waits for no event.
  virtual bool CanAdvance(const Operation& op) const = 0;
  // Does it, with the memory of devices() open. True when `op` is complete.
  virtual bool Advance(Operation& op) = 0;
  // `op` will never take part: its communicator or its device is gone.
  virtual void Leave(const Operation& op) = 0;
  virtual DeviceMask devices() const = 0;
  // Why it cannot advance, such as "waits for its peers".
  virtual std::string State(const Operation& op) const = 0;
};

// What to do, without a place in a stream: a graph keeps these.
struct Work {
  const char* name = "";
  // Where it was launched, if the caller told.
  const char* file = nullptr;
  int line = 0;
  CallSite site;
  DeviceMask devices = 0;  // whose memory it may touch
  // The user's code: runs on the stream's own stack, and may throw.
  bool is_users = false;
  std::function<void()> run;
  // Called when the operation is enqueued, for each replay of a graph anew.
  std::function<std::shared_ptr<Exchange>(Operation&)> join;
};

struct Operation : std::enable_shared_from_this<Operation> {
  Work work;
  Stream* stream = nullptr;
  std::uint64_t number = 0;  // on its stream
  std::vector<OperationPtr> after;
  std::shared_ptr<Exchange> exchange;
  bool done = false;
  std::uint64_t done_at_ns = 0;  // virtual
  // Of the host with the operation, and of the operation with what waits.
  Edge enqueued_edge = 0;
  Edge done_edge = 0;
};

struct Stream {
  int id = 0;
  int device = 0;
  int priority = 0;         // the user's, which orders nothing
  bool is_blocking = true;  // ordered with the null stream
  bool is_branch = false;   // of a graph
  bool is_destroyed = false;
  std::deque<OperationPtr> queue;
  OperationPtr last;  // the newest that was enqueued
  std::uint64_t next_number = 0;
  std::uint64_t turn = 0;  // the seed's priority: the greatest runs first
  std::unique_ptr<StreamThread> thread;
  // The capture that it takes part in, 0 if none, and the nodes that its next
  // operation follows.
  int capture = 0;
  std::vector<int> frontier;
};

std::string NameOf(const Stream& stream);
// "Relu, launched at ops.cu:12" or "cudaMemsetAsync, in Train < main".
std::string Describe(const Work& work);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_OPERATION_H_
