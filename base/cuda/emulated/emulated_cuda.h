// Controls of the emulated CUDA runtime, for tests. It implements the functions
// of <cuda_runtime_api.h> (and :nccl those of <nccl.h>) on the CPU, so that
// host code written for a GPU runs unchanged, without one, in an order that a
// seed determines.
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
// or query, and with some seeds any call, run operations, one at a time, in one
// of the orders that streams and events permit. Device memory is inaccessible
// (PROT_NONE) while host code runs; a stray access ends the program with a
// message. Fresh and freed memory is filled with poison. Under ThreadSanitizer
// a stream is a thread of its own, ordered with others and with the host by
// events, waits and collectives alone: a missing wait is reported, with the
// lines that enqueued both operations.
//
// Stricter than a GPU on purpose: cudaFree() never waits. Memory freed in
// stream order is, as the seed decides, never reused, reused by the same
// stream, or by any stream with the edge that a driver would insert.
//
// Not supported: nodes of memory in graphs, managed memory, IPC, textures,
// streams per thread. A program that calls a missing function does not link.
//
// Threads: host code may use several; with a single one, a seed determines the
// order. Reset(), Finish() and BreakDevice() are called while no other thread
// uses the API. Costs: 0.2 to 1 us per operation.

#ifndef BASE_CUDA_EMULATED_EMULATED_CUDA_H_
#define BASE_CUDA_EMULATED_EMULATED_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace emulated_cuda {

// Makes one call of the API fail, without any effect.
struct FailingCall {
  // Number of the call, counted from 1 since Reset(); 0: none. CallCount()
  // returns how many a run makes.
  std::uint64_t number = 0;
  // Counts only calls of this function, such as "cudaMalloc"; empty: all.
  std::string function;
  cudaError_t error = cudaErrorMemoryAllocation;
  // Whether the error stays with the device that is current then, as after an
  // illegal address: every later call for it fails, and queued work never runs.
  bool sticky = false;
};

struct Options {
  std::uint64_t seed = 1;
  // Number of devices in the machine, at most 16.
  int devices = 2;
  // The visible devices and their order, in the syntax of CUDA_VISIBLE_DEVICES:
  // "1,0"; the list ends before the first invalid number. Unset: all.
  std::optional<std::string> visible_devices;
  // Memory of each device.
  std::size_t device_bytes = std::size_t{256} << 20;
  // Size of each device's address range, at most the default. Once it is used
  // up, freed memory is reused whatever the seed.
  std::size_t address_bytes = std::size_t{8} << 30;
  // Result of cudaDeviceCanAccessPeer().
  bool peer_access = true;
  // Byte that fills fresh and freed memory; the default gives a NaN in every
  // floating-point type.
  unsigned char poison = 0xFF;
  // Time without any progress after which a host wait counts as a deadlock: it
  // is reported, and the call returns cudaErrorLaunchTimeout. 0, for tests with
  // one host thread: as soon as nothing can run.
  double stall_seconds = 20;
  // Whether to keep the text of Trace().
  bool trace = false;
  FailingCall fail;
};

// Ends the emulated world (its handles and device pointers become invalid) and
// begins a new one. Without Reset() the first call begins a world with default
// options.
void Reset(const Options& options);

// Returns errors that hardware would turn into garbage, a hang or a crash, one
// sentence each. Empty for correct host code.
std::vector<std::string> Problems();

// Returns Problems(), and those that are found at the end: writes beyond an
// allocation or after its free, leaks, operations that never ran. Leaks are not
// reported once a device is broken.
std::vector<std::string> Finish();

// Makes `device` return `error` for every call from now on, as after an illegal
// address; its queued work never runs.
void BreakDevice(int device, cudaError_t error);

// Returns a hash of the order in which operations ran; equal for equal orders.
std::uint64_t TraceHash();

// Returns one line per operation that ran, such as "stream 1 of device 0 #3
// memset"; empty without Options::trace.
std::string Trace();

// Returns the number of API calls since Reset() that FailingCall::number
// counts.
std::uint64_t CallCount();

struct OperationCounts {
  std::uint64_t enqueued = 0;
  std::uint64_t executed = 0;
  // Number of calls that allocate from, or return memory to, the system:
  // cudaMalloc, cudaFree, cudaMallocHost and their like, but not the
  // asynchronous ones.
  std::uint64_t system_allocations = 0;
};
OperationCounts Counts();

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_EMULATED_CUDA_H_
