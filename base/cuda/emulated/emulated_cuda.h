// Knobs of the emulated CUDA runtime, for tests. It defines the functions of
// <cuda_runtime_api.h> (and :nccl those of <nccl.h>) on the CPU, so that host
// code written for a GPU runs unchanged, without one, in an order that a seed
// chooses.
//
//   for (std::uint64_t seed : Seeds(500)) {
//     emulated_cuda::Options options;
//     options.seed = seed;
//     emulated_cuda::Reset(options);
//     EXPECT_EQ(TrainOneStep(), expected) << ReplayCommand(seed);
//     EXPECT_THAT(emulated_cuda::Finish(), testing::IsEmpty());
//   }
//
// A stream is a queue: nothing runs when it is enqueued. Host calls that wait
// or ask, and with some seeds any call, run operations, one at a time, in one
// of the orders that streams and events permit. Device memory is closed
// (PROT_NONE) while host code runs; a stray access ends the program with a
// message. Fresh and freed memory is poison. Under ThreadSanitizer a stream is
// a thread of its own, ordered with others and with the host by nothing but
// events, waits and collectives: a wait that is missing is reported, with the
// lines that enqueued both operations.
//
// Stricter than a GPU on purpose: cudaFree() never waits; memory freed in
// stream order comes back never, to the same stream, or to any stream with the
// edge that a driver would insert, as the seed decides.
//
// Not there: nodes of memory in graphs, managed memory, IPC, textures, streams
// per thread. A call that is missing does not link.
//
// Threads: host code may use several; with one alone, a seed gives one order.
// Reset(), Finish() and BreakDevice() are called while no other thread uses the
// API. Costs: 0.2 to 1 us an operation.

#ifndef BASE_CUDA_EMULATED_EMULATED_CUDA_H_
#define BASE_CUDA_EMULATED_EMULATED_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace emulated_cuda {

// One call of the API that fails, without doing anything.
struct FailingCall {
  // Which one, counted from 1 since Reset(); 0: none. CallCount() tells how
  // many a run makes.
  std::uint64_t number = 0;
  // Only calls of this function count, such as "cudaMalloc"; empty: all do.
  std::string function;
  cudaError_t error = cudaErrorMemoryAllocation;
  // The error stays with the device that is current then, as an illegal address
  // does: every later call for it fails, and what is queued never runs.
  bool sticky = false;
};

struct Options {
  std::uint64_t seed = 1;
  // At most 16, in the machine.
  int devices = 2;
  // Those that the process sees, and in which order, as CUDA_VISIBLE_DEVICES
  // says it: "1,0"; the first number that is none ends the list. Unset: all.
  std::optional<std::string> visible_devices;
  // Memory of each device.
  std::size_t device_bytes = std::size_t{256} << 20;
  // Whether cudaDeviceCanAccessPeer() says yes.
  bool peer_access = true;
  // Fills fresh and freed memory; the default is a NaN in every floating type.
  unsigned char poison = 0xFF;
  // A host wait during which nothing at all happens for so long is a deadlock:
  // it is reported, and the call answers cudaErrorLaunchTimeout. 0, for tests
  // with one host thread: as soon as nothing can run.
  double stall_seconds = 20;
  // Keeps the text of Trace().
  bool trace = false;
  FailingCall fail;
};

// Ends the emulated world (its handles and device pointers become invalid) and
// begins a new one. Without it the first call begins a world of defaults.
void Reset(const Options& options);

// What hardware would answer with garbage, a hang or a crash, one sentence
// each. Empty for right host code.
std::vector<std::string> Problems();

// Problems(), and what is found at the end: writes beyond an allocation or
// after its free, leaks, operations that never ran. Leaks are not counted once
// a device is broken.
std::vector<std::string> Finish();

// From now on `device` answers `error` to every call, as after an illegal
// address; what is queued there never runs.
void BreakDevice(int device, cudaError_t error);

// Hash of the order in which operations ran; equal for equal orders.
std::uint64_t TraceHash();

// One line per operation that ran, such as "stream 1 of device 0 #3 memset";
// empty without Options::trace.
std::string Trace();

// Calls of the API since Reset() that FailingCall::number counts.
std::uint64_t CallCount();

struct OperationCounts {
  std::uint64_t enqueued = 0;
  std::uint64_t executed = 0;
  // Calls that take memory from, or give it back to, the system: cudaMalloc,
  // cudaFree, cudaMallocHost and their like, but not the asynchronous ones.
  std::uint64_t system_allocations = 0;
};
OperationCounts Counts();

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_EMULATED_CUDA_H_
