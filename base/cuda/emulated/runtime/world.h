// All state of the emulated runtime, and the lock around it. The CUDA API has
// no object to hold it, so it is one global, replaced by Reset().
//
//     World& world = TheWorld();
//     if (world.random.OneIn(8)) Problem("bad luck");
//
// Threads: whoever holds an ApiCall or a WorldLock (api_call.h).

#ifndef BASE_CUDA_EMULATED_RUNTIME_WORLD_H_
#define BASE_CUDA_EMULATED_RUNTIME_WORLD_H_

#include <pthread.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/cuda/emulated/emulated_cuda.h"
#include "base/cuda/emulated/runtime/device_memory.h"
#include "base/cuda/emulated/runtime/operation.h"
#include "base/cuda/emulated/runtime/random.h"

namespace emulated_cuda {

struct Device {
  DeviceMemory memory;
  Stream* null_stream = nullptr;  // made when it is first used
  int in_machine = 0;             // its number before CUDA_VISIBLE_DEVICES
  cudaError_t broken = cudaSuccess;
  DeviceMask peers = 0;  // whose memory its kernels may touch
};

struct Event {
  int device = 0;
  bool has_timing = true;
  OperationPtr record;  // the newest; null: never recorded
  // Of a record that was captured.
  int capture = 0;
  std::vector<int> frontier;
};

struct Graph {
  std::vector<Work> nodes;
  std::vector<std::vector<int>> after;  // of each node
};

struct Capture {
  Graph graph;
  const Stream* origin = nullptr;
  pthread_t thread{};
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool is_invalid = false;
};

struct GraphExec {
  Graph graph;
  std::vector<int> branch_of;  // each node's
  std::vector<Stream*> branches;
  OperationPtr last_end;
};

// What the seed decides once.
struct Habits {
  // One choice of an operation in so many redraws the streams' turns: 1 is a
  // uniform choice, much lets a stream be lazy for long.
  std::uint64_t redraw_one_in = 1;
  // An operation of one device faults at another's memory.
  bool is_strict = false;
  Reuse reuse = Reuse::kNever;
  // 0: nothing runs before somebody waits; 1: a little does; 2: much.
  int eagerness = 0;
};

// Another library's part of the world (NCCL's).
class Extension {
 public:
  virtual ~Extension() = default;
  // What was never given back, one sentence each.
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
  std::set<Event*> events;
  std::set<Graph*> graphs;
  std::set<GraphExec*> execs;
  std::map<int, Capture> captures;
  int next_capture = 1;
  std::map<const char*, std::size_t> pinned;      // ours: begin, bytes
  std::map<const char*, std::size_t> registered;  // the user's
  std::unique_ptr<Extension> nccl;
  std::vector<std::string> problems;
  std::uint64_t now_ns = 0;  // virtual time
  std::uint64_t calls = 0;
  OperationCounts counts;
  std::uint64_t trace_hash = 0;
  std::string trace;
  // Operations enqueued and executed when a deadlock was found; nothing has
  // moved while it is their number.
  std::uint64_t stuck_at = ~std::uint64_t{0};
};

World& TheWorld();
// Ends it, if there is one, and begins another.
void ReplaceWorld(const Options& options);
bool HasWorld();

// What this host thread's calls mean.
struct HostThread {
  std::uint64_t world = 0;  // number of the world that the rest is about
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
};
HostThread& ThisThread();

// Remembers an error for cudaGetLastError() and returns it.
cudaError_t Fail(cudaError_t error);

// For Problems(); the first hundred are kept.
void Problem(const std::string& text);

// The device that this thread has chosen.
Device& CurrentDevice();
// The stream of a handle; null: there is none.
Stream* Lookup(cudaStream_t handle);
Event* Lookup(cudaEvent_t handle);
Stream* NewStream(int device, bool is_blocking, bool is_branch);

// The device whose memory `p` points into; -1: not device memory.
int DeviceOf(const void* p);
// Whether [p, p + bytes) lies in one live allocation of a device.
bool IsLiveOnDevice(const void* p, std::size_t bytes);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_WORLD_H_
