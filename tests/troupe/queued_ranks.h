// Options of programs on queued devices (nn/kernels/queued), where the host
// runs ahead, and work runs later in an order that a seed chooses, in memory
// that the host may not access.
//
//   Spawn(program, QueuedRanks(/*ranks=*/2, /*seed=*/7));
//   Spawn(program, PlainRanks(/*ranks=*/2));    // on CPUs, with the same bits

#ifndef TESTS_TROUPE_QUEUED_RANKS_H_
#define TESTS_TROUPE_QUEUED_RANKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/queued/queued_kernels.h"
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

}  // namespace troupe

#endif  // TESTS_TROUPE_QUEUED_RANKS_H_
