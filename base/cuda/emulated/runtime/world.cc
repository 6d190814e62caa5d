#include "base/cuda/emulated/runtime/world.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/cuda/emulated/executor.h"
#include "base/cuda/emulated/runtime/address_space.h"

namespace emulated_cuda {
namespace {

constexpr int kDevicesMax = 16;
constexpr std::size_t kProblemsMax = 100;

World* the_world = nullptr;
std::uint64_t world_number = 0;
// Edge from all that one world's streams did to the next world.
Edge between_worlds;

Habits Choose(SeededRandom& random) {
  constexpr std::uint64_t kRedraw[] = {1, 4, 32, 256};
  constexpr int kEagerness[] = {0, 0, 1, 2};
  constexpr Reuse kReuse[] = {Reuse::kNever, Reuse::kBySameStream,
                              Reuse::kByAnyStream};
  Habits habits;
  habits.redraw_one_in = kRedraw[random.Below(4)];
  habits.eagerness = kEagerness[random.Below(4)];
  habits.is_strict = random.OneIn(8);
  habits.reuse = kReuse[random.Below(3)];
  return habits;
}

// Sets the order of kernels' threads by the seed; races within a grid are left
// to the tests of kernels.
void ScheduleKernels(World& world) {
  constexpr Order kOrders[] = {Order::kForward, Order::kReverse,
                               Order::kRandom};
  Schedule schedule;
  schedule.order = kOrders[world.random.Below(3)];
  schedule.seed = world.options.seed;
  schedule.poison = world.options.poison;
  SetSchedule(schedule);
  SetRaceScope(RaceScope::kStreams);
}

// Makes the thread of an ended stream available to the next one.
void Retire(Stream& stream) {
  stream.thread->Call(CallSite(), [] { Release(between_worlds); });
  StreamThread::GiveBack(std::move(stream.thread));
}

void RetireDestroyedStreams(World& world) {
  auto& streams = world.streams;
  for (std::size_t i = 0; i < streams.size();) {
    if (streams[i]->is_destroyed && streams[i]->queue.empty()) {
      Retire(*streams[i]);
      streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

// Returns the machine's devices that the process sees, in its order.
std::vector<int> VisibleDevices(const Options& options) {
  std::vector<int> visible;
  if (!options.visible_devices.has_value()) {
    for (int d = 0; d < options.devices; ++d) visible.push_back(d);
    return visible;
  }
  std::istringstream list(*options.visible_devices);
  for (std::string entry; std::getline(list, entry, ',');) {
    char* end = nullptr;
    const long number = std::strtol(entry.c_str(), &end, 10);
    if (entry.empty() || *end != '\0' || number < 0 ||
        number >= options.devices) {
      break;
    }
    visible.push_back(static_cast<int>(number));
  }
  return visible;
}

}  // namespace

World::World(const Options& chosen)
    : options(chosen),
      random(chosen.seed),
      habits(Choose(random)),
      trace(chosen.trace) {
  if (options.devices < 0 || options.devices > kDevicesMax) std::abort();
  for (const int in_machine : VisibleDevices(options)) {
    const int d = static_cast<int>(devices.size());
    const DeviceMemory::Limits limits = {
        options.device_bytes,
        std::min(options.address_bytes, AddressRange::kBytes)};
    devices.push_back({DeviceMemory(d, limits, options.poison)});
    devices.back().in_machine = in_machine;
  }
}

World::~World() {
  // Operations that never ran refer to streams and communicators.
  for (auto& stream : streams) stream->queue.clear();
  nccl.reset();
  for (auto& stream : streams) Retire(*stream);
  pinned.allocated.Free();
}

World& TheWorld() { return *the_world; }
bool HasWorld() { return the_world != nullptr; }

void ReplaceWorld(const Options& options) {
  WatchForStrayAccesses();
  delete std::exchange(the_world, nullptr);
  Acquire(between_worlds);
  ++world_number;
  the_world = new World(options);
  ScheduleKernels(*the_world);
}

HostThread& ThisThread() {
  static thread_local HostThread thread;
  if (thread.world != world_number) {
    thread = HostThread();
    thread.world = world_number;
  }
  return thread;
}

cudaError_t Fail(cudaError_t error) {
  if (error != cudaSuccess) ThisThread().last_error = error;
  return error;
}

void Problem(const std::string& text) {
  auto& problems = the_world->problems;
  if (problems.size() < kProblemsMax) problems.push_back(text);
}

Device& CurrentDevice() {
  return the_world->devices[static_cast<std::size_t>(ThisThread().device)];
}

Stream* NewStream(int device, bool is_blocking, bool is_branch) {
  World& world = *the_world;
  RetireDestroyedStreams(world);
  auto stream = std::make_unique<Stream>();
  stream->id = world.next_stream_id++;
  stream->device = device;
  stream->is_blocking = is_blocking;
  stream->is_branch = is_branch;
  stream->turn = world.random.Below(1u << 30);
  stream->thread = StreamThread::Take(NameOf(*stream));
  world.streams.push_back(std::move(stream));
  return world.streams.back().get();
}

Stream* Lookup(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) {
    Device& device = CurrentDevice();
    if (device.null_stream == nullptr) {
      device.null_stream = NewStream(ThisThread().device, /*is_blocking=*/true,
                                     /*is_branch=*/false);
    }
    return device.null_stream;
  }
  for (auto& stream : the_world->streams) {
    if (stream.get() != reinterpret_cast<Stream*>(handle)) continue;
    return stream->is_destroyed || stream->is_branch ? nullptr : stream.get();
  }
  return nullptr;
}

Event* Lookup(cudaEvent_t handle) {
  return the_world->objects.events.Find(handle);
}

int DeviceOf(const void* p) {
  const auto& devices = the_world->devices;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].memory.Contains(p)) return static_cast<int>(d);
  }
  return -1;
}

bool IsLiveOnDevice(const void* p, std::size_t bytes) {
  const int device = DeviceOf(p);
  return device >= 0 &&
         the_world->devices[static_cast<std::size_t>(device)].memory.IsLive(
             p, bytes);
}

}  // namespace emulated_cuda
