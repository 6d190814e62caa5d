// An entry of a stream's queue.
//
//     Work work;
//     work.name = "cudaMemsetAsync";
//     work.site = call.site();
//     work.devices = DeviceBit(stream.device);
//     work.run = [=] { std::memset(to, value, bytes); };
//     return Enqueue(stream, std::move(work));  // scheduler.h
//
// Threads: all of it is used under the runtime's lock.

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

// An action that operations of several streams carry out together: a
// collective, or a send with its receive.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Returns whether `op`, which is the first of its stream and waits for no
  // event, can make progress.
  virtual bool CanAdvance(const Operation& op) const = 0;
  // Makes progress, with the memory of devices() open. Returns true when `op`
  // is complete.
  virtual bool Advance(Operation& op) = 0;
  // Removes `op`, which will never take part: its communicator or its device is
  // gone.
  virtual void Leave(const Operation& op) = 0;
  virtual DeviceMask devices() const = 0;
  // Returns why it cannot advance, such as "waits for its peers".
  virtual std::string State(const Operation& op) const = 0;
};

// The content of an operation, without a position in a stream; graphs store
// these.
struct Work {
  const char* name = "";
  // Source line of the launch, if the caller passed it.
  const char* file = nullptr;
  int line = 0;
  CallSite site;
  DeviceMask devices = 0;  // devices whose memory it may access
  // Whether it is user code, which runs on the stream's own stack, and may
  // throw.
  bool is_users = false;
  std::function<void()> run;
  // Called when the operation is enqueued, anew for each replay of a graph.
  std::function<std::shared_ptr<Exchange>(Operation&)> join;
};

struct Operation : std::enable_shared_from_this<Operation> {
  Work work;
  Stream* stream = nullptr;
  std::uint64_t number = 0;  // index on its stream
  std::vector<OperationPtr> after;
  std::shared_ptr<Exchange> exchange;
  bool done = false;
  std::uint64_t done_at_ns = 0;  // virtual
  // Edges from the host to the operation, and from the operation to waiters.
  Edge enqueued_edge = 0;
  Edge done_edge = 0;
};

struct Stream {
  int id = 0;
  int device = 0;
  int priority = 0;         // set by the user; orders nothing
  bool is_blocking = true;  // ordered with the null stream
  bool is_branch = false;   // belongs to a graph
  bool is_destroyed = false;
  std::deque<OperationPtr> queue;
  OperationPtr last;  // the newest enqueued operation
  std::uint64_t next_number = 0;
  // Priority drawn from the seed: the greatest runs first.
  std::uint64_t turn = 0;
  std::unique_ptr<StreamThread> thread;
  // Capture that it takes part in, 0 if none, and the nodes that its next
  // operation depends on.
  int capture = 0;
  std::vector<int> frontier;
};

std::string NameOf(const Stream& stream);
// Returns "Relu, launched at ops.cu:12" or "cudaMemsetAsync, in Train < main".
std::string Describe(const Work& work);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_OPERATION_H_
