// All state of the emulated runtime, and the lock around it. The CUDA API has
// no object that could contain it, so it is one global, replaced by Reset().
//
//     World& world = TheWorld();
//     if (world.random.OneIn(8)) Problem("bad luck");
//
// Threads: one that holds an ApiCall or a WorldLock (api_call.h).

#ifndef BASE_CUDA_EMULATED_RUNTIME_WORLD_H_
#define BASE_CUDA_EMULATED_RUNTIME_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cuda/emulated/emulated_cuda.h"
#include "base/cuda/emulated/runtime/activity.h"
#include "base/cuda/emulated/runtime/captures.h"
#include "base/cuda/emulated/runtime/device_memory.h"
#include "base/cuda/emulated/runtime/execution_trace.h"
#include "base/cuda/emulated/runtime/handles.h"
#include "base/cuda/emulated/runtime/host_memory.h"
#include "base/cuda/emulated/runtime/operation.h"
#include "base/cuda/emulated/runtime/random.h"

namespace emulated_cuda {

struct Device {
  DeviceMemory memory;
  Stream* null_stream = nullptr;  // made on first use
  int in_machine = 0;             // number before CUDA_VISIBLE_DEVICES
  cudaError_t broken = cudaSuccess;
  DeviceMask peers = 0;  // devices whose memory its kernels may access
};

struct Event {
  int device = 0;
  bool has_timing = true;
  OperationPtr record;  // the newest; null: never recorded
  // For a record that was captured.
  int capture = 0;
  std::vector<int> frontier;
};

struct GraphExec {
  Graph graph;
  std::vector<int> branch_of;  // index: node
  std::vector<Stream*> branches;
  OperationPtr last_end;
};

// Live objects of the API, which the world owns.
struct Objects {
  Handles<Event> events;
  Handles<Graph> graphs;
  Handles<GraphExec> execs;
};

// Choices that the seed makes once.
struct Habits {
  // Rate at which choices of an operation redraw the streams' turns, one in
  // this number: 1 is a uniform choice, a large number keeps some streams idle
  // for long.
  std::uint64_t redraw_one_in = 1;
  // Whether an operation of one device faults on access to another's memory.
  bool is_strict = false;
  Reuse reuse = Reuse::kNever;
  // Eagerness: 0: nothing runs before a wait; 1: a few operations do; 2: many
  // do.
  int eagerness = 0;
};

// State of another library in the world (NCCL's).
class Extension {
 public:
  virtual ~Extension() = default;
  // Returns what was never freed, one sentence each.
  virtual std::vector<std::string> Leaks() const = 0;
};

struct World {
  explicit World(const Options& options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  Options options;
  SeededRandom random;
  Habits habits;
  std::vector<Device> devices;
  std::vector<std::unique_ptr<Stream>> streams;
  int next_stream_id = 0;
  Objects objects;
  Captures captures;
  PinnedHostMemory pinned;
  std::unique_ptr<Extension> nccl;
  std::vector<std::string> problems;
  std::uint64_t now_ns = 0;  // virtual time
  std::uint64_t calls = 0;
  Activity activity;
  ExecutionTrace trace;
};

World& TheWorld();
// Ends the world, if there is one, and begins another.
void ReplaceWorld(const Options& options);
bool HasWorld();

// State of a host thread.
struct HostThread {
  std::uint64_t world = 0;  // number of the world that the fields refer to
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
};
HostThread& ThisThread();

// Stores an error for cudaGetLastError() and returns it.
cudaError_t Fail(cudaError_t error);

// Adds to Problems(); the first hundred are kept.
void Problem(const std::string& text);

// Returns the device that this thread has selected.
Device& CurrentDevice();
// Returns the object of a handle; null: there is none.
Stream* Lookup(cudaStream_t handle);
Event* Lookup(cudaEvent_t handle);
Stream* NewStream(int device, bool is_blocking, bool is_branch);

// Returns the device whose memory `p` points into; -1: not device memory.
int DeviceOf(const void* p);
// Returns whether [p, p + bytes) lies in one live allocation of a device.
bool IsLiveOnDevice(const void* p, std::size_t bytes);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_WORLD_H_
