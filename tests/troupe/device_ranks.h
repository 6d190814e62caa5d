// Options of programs on devices with queues: those of queued_ranks.h, and
// emulated GPUs (base/cuda/emulated).
//
//   const EmulatedWorld world(GpusOfThreads(2));
//   Spawn(program, GpuRanks(2, "cuda"));

#ifndef TESTS_TROUPE_DEVICE_RANKS_H_
#define TESTS_TROUPE_DEVICE_RANKS_H_

#include <string>

#include "absl/status/status.h"
#include "tests/actors/emulated_job.h"
#include "tests/troupe/queued_ranks.h"
#include "tests/troupe/ranks.h"
#include "troupe/program.h"

namespace troupe {

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
