// The functions by which tests control the emulated world.

#include "base/cuda/emulated/emulated_cuda.h"
#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/scheduler.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

bool AnyIsBroken(const World& world) {
  for (const Device& device : world.devices) {
    if (device.broken != cudaSuccess) return true;
  }
  return false;
}

void ReportHandles(const World& world) {
  if (!world.pinned.allocated.empty()) Problem("pinned memory was never freed");
  if (!world.pinned.registered.empty()) {
    Problem("host memory was never unregistered");
  }
  if (!world.objects.events.empty()) Problem("events were never destroyed");
  if (!world.objects.graphs.empty()) Problem("graphs were never destroyed");
  if (!world.objects.execs.empty()) {
    Problem("executable graphs were never destroyed");
  }
  for (const auto& stream : world.streams) {
    const auto device = static_cast<std::size_t>(stream->device);
    if (stream->is_destroyed || stream->is_branch ||
        stream.get() == world.devices[device].null_stream) {
      continue;
    }
    Problem("streams were never destroyed");
    break;
  }
  if (world.nccl) {
    for (const std::string& leak : world.nccl->Leaks()) Problem(leak);
  }
}

}  // namespace

void Reset(const Options& options) {
  const WorldLock lock;
  CloseMemory();
  ReplaceWorld(options);
}

std::vector<std::string> Problems() {
  const WorldLock lock;
  const Recorded recorded;
  return TheWorld().problems;
}

std::vector<std::string> Finish() {
  const WorldLock lock;
  World& world = TheWorld();
  const bool broken = AnyIsBroken(world);
  const std::string pending = Pending();
  if (!pending.empty() && !broken) {
    Problem("operations never ran, since no host thread waited for them:" +
            pending);
  }
  for (Device& device : world.devices) device.memory.CheckAll(!broken);
  if (!broken) ReportHandles(world);
  const Recorded recorded;
  return world.problems;
}

void BreakDevice(int device, cudaError_t error) {
  const WorldLock lock;
  TheWorld().devices[static_cast<std::size_t>(device)].broken = error;
}

std::uint64_t TraceHash() {
  const WorldLock lock;
  return TheWorld().trace.hash();
}

std::string Trace() {
  const WorldLock lock;
  const Recorded recorded;
  return TheWorld().trace.text();
}

std::uint64_t CallCount() {
  const WorldLock lock;
  return TheWorld().calls;
}

OperationCounts Counts() {
  const WorldLock lock;
  return TheWorld().activity.counts;
}

}  // namespace emulated_cuda
