// Options of programs on devices with queues. On queued devices
// (nn/kernels/queued) the host runs ahead, and work runs later in an order that
// a seed chooses, in memory that the host may not access. Emulated GPUs are
// base/cuda/emulated.
//
//   Spawn(program, QueuedRanks(/*ranks=*/2, /*seed=*/7));
//   const EmulatedWorld world(GpusOfThreads(2));
//   Spawn(program, GpuRanks(2, "cuda"));
//
// CPU kernels on which a program has the bits of queued devices:
// PlainKernels().

#ifndef TESTS_TROUPE_DEVICE_RANKS_H_
#define TESTS_TROUPE_DEVICE_RANKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "tests/actors/emulated_job.h"
#include "tests/troupe/ranks.h"
#include "troupe/program.h"

namespace troupe {

inline std::unique_ptr<nn::Kernels> PlainKernels() {
  nn::CpuKernelOptions options;
  options.onednn = false;
  return nn::CreateCpuKernels(options);
}

inline SpawnOptions PlainRanks(int ranks) {
  SpawnOptions options;
  options.ranks = ranks;
  options.kernels = PlainKernels;
  return options;
}

inline SpawnOptions QueuedRanks(int ranks, std::uint64_t seed) {
  SpawnOptions options;
  options.ranks = ranks;
  options.device = {nn::DeviceType::kQueued, 0};
  // Ranks open their devices in threads of their own.
  options.kernels =
      [memory = std::make_shared<nn::GuardedMemory>(std::size_t{64} << 20),
       next = std::make_shared<std::atomic<std::uint64_t>>(seed * 64)] {
        return nn::CreateQueuedKernels(PlainKernels(), memory, (*next)++);
      };
  return options;
}

inline SpawnOptions GpuRanks(int ranks, const std::string& device) {
  SpawnOptions options = Ranks(ranks);
  options.device = *nn::Device::Parse(device);
  return options;
}

// Returns GPUs for programs whose ranks have threads of their own.
inline emulated_cuda::Options GpusOfThreads(int gpus) {
  emulated_cuda::Options options = actors::EmulatedGpus(/*seed=*/1, gpus);
  options.stall_seconds = 60;  // another thread may be about to go on
  return options;
}

inline std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

}  // namespace troupe

#endif  // TESTS_TROUPE_DEVICE_RANKS_H_
