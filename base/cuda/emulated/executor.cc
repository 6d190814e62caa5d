#include "base/cuda/emulated/executor.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/cuda/emulated/block.h"
#include "base/cuda/emulated/ready_ring.h"
#include "base/cuda/emulated/report.h"
#include "base/cuda/emulated/sanitizer_hooks.h"
#include "base/cuda/emulated/schedules.h"
#include "base/cuda/emulated/thread_ops.h"

extern "C" {
// Bounds of all static __shared__ variables; defined in shared_memory.ld.
extern std::uint64_t __start_emulated_cuda_shared[] EMULATED_CUDA_WEAK;
extern std::uint64_t __stop_emulated_cuda_shared[] EMULATED_CUDA_WEAK;
}

namespace emulated_cuda {
namespace {

// Limit for a block on sm_90.
constexpr std::size_t kSharedBytesMax = 227 << 10;

// State that all grids share.
struct Executor {
  std::mutex mutex;  // held while a grid runs
  Block block;
  // Allocated with the exact size, so that AddressSanitizer guards its ends.
  std::unique_ptr<unsigned char[]> dynamic_shared;
  Schedule schedule;
  // The number of waits at which static shared memory was last poisoned, and
  // the poison.
  std::uint64_t poisoned_at = ~std::uint64_t{0};
  unsigned char poisoned_with = 0;
  RaceScope race_scope = RaceScope::kThreads;
};

// Never destroyed, and neither are its stacks. In static storage, since
// ThreadSanitizer would see which thread allocated it, but not the
// initialization check that orders each other thread after that.
Executor& TheExecutor() {
  alignas(Executor) static unsigned char storage[sizeof(Executor)];
  static Executor* const executor = new (storage) Executor;
  return *executor;
}

// Holds the mutex. Under kStreams it is hidden from ThreadSanitizer, since it
// would order the streams that the grids belong to.
class ScopedGrid {
 public:
  explicit ScopedGrid(Executor& executor) : executor_(executor) {
    // A nested launch would deadlock.
    if (launching_) {
      throw Error("emulated_cuda: a kernel cannot launch a kernel");
    }
    launching_ = true;
    HideFromTsan([&] { executor_.mutex.lock(); });
  }
  ScopedGrid(const ScopedGrid&) = delete;
  ScopedGrid& operator=(const ScopedGrid&) = delete;
  ~ScopedGrid() {
    executor_.dynamic_shared.reset();
    HideFromTsan([&] { executor_.mutex.unlock(); });
    launching_ = false;
  }

 private:
  template <typename Call>
  void HideFromTsan(Call call) {
    const bool hidden = executor_.race_scope == RaceScope::kStreams &&
                        AnnotateIgnoreSyncBegin != nullptr;
    if (hidden) AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    call();
    if (hidden) AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  }

  static thread_local bool launching_;
  Executor& executor_;
};

thread_local bool ScopedGrid::launching_ = false;

void PoisonShared(Executor& executor, std::size_t dynamic_bytes) {
  const unsigned char poison = executor.schedule.poison;
  if (dynamic_bytes > 0) {
    std::memset(executor.dynamic_shared.get(), poison, dynamic_bytes);
  }
  // The static variables of all kernels of the program are hundreds of
  // kilobytes, a fifth of the time of some tests (Schedule::poison).
  const std::uint64_t synchronised = executor.block.stats().waits;
  if (executor.poisoned_at == synchronised &&
      executor.poisoned_with == poison) {
    return;
  }
  executor.poisoned_at = synchronised;
  executor.poisoned_with = poison;
  // No memset: AddressSanitizer would report that it crosses the red zones
  // between the variables.
  std::uint64_t* begin = __start_emulated_cuda_shared;
  std::size_t words = __stop_emulated_cuda_shared - begin;
  asm volatile("rep stosq"
               : "+D"(begin), "+c"(words)
               : "a"(poison * 0x0101010101010101u)
               : "memory");
}

// Returns the numbers of the blocks in the order in which they run; empty for
// forward.
std::vector<std::uint32_t> BlockOrder(Order order, std::uint32_t count,
                                      Random& random) {
  std::vector<std::uint32_t> blocks;
  if (order == Order::kForward) return blocks;
  blocks.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) blocks[i] = count - 1 - i;
  if (order == Order::kReverse) return blocks;
  for (std::uint32_t i = count; i > 1; --i) {
    std::swap(blocks[i - 1], blocks[random.Below(i)]);
  }
  return blocks;
}

}  // namespace

std::string ToString(const Schedule& schedule) {
  static const char* const kNames[] = {"forward", "reverse", "random"};
  char poison[16];
  std::snprintf(poison, sizeof(poison), "0x%02x", schedule.poison);
  return std::string(kNames[static_cast<int>(schedule.order)]) +
         " order, seed " + std::to_string(schedule.seed) + ", poison " + poison;
}

void SetSchedule(const Schedule& schedule) {
  TheExecutor().schedule = schedule;
}

Schedule CurrentSchedule() { return TheExecutor().schedule; }

Stats TotalStats() { return TheExecutor().block.stats(); }

bool StaticSharedIsPoisoned() {
  std::uint64_t* const end = __stop_emulated_cuda_shared;
  return end > __start_emulated_cuda_shared;
}

void SetRaceScope(RaceScope scope) {
  TheExecutor().race_scope = scope;
  TheExecutor().block.SetRaceScope(scope);
  if (scope == RaceScope::kStreams && AnnotateBenignRaceSized != nullptr &&
      StaticSharedIsPoisoned()) {
    AnnotateBenignRaceSized(
        __FILE__, __LINE__, __start_emulated_cuda_shared,
        reinterpret_cast<char*>(__stop_emulated_cuda_shared) -
            reinterpret_cast<char*>(__start_emulated_cuda_shared),
        "__shared__ variables");
  }
}

std::string WhatIsWrong(const Grid& grid) {
  const dim3 b = grid.block;
  const dim3 g = grid.grid;
  const std::uint64_t threads = std::uint64_t{b.x} * b.y * b.z;
  if (threads == 0 || threads > kThreadsMax || b.x > kThreadsMax ||
      b.y > kThreadsMax || b.z > 64) {
    return "bad block size " + TextOf(b);
  }
  const std::uint64_t blocks = std::uint64_t{g.x} * g.y * g.z;
  if (blocks == 0 || g.x > 0x7FFFFFFFu || g.y > 65535 || g.z > 65535) {
    return "bad grid size " + TextOf(g);
  }
  if (blocks > 0x7FFFFFFFu) return "a grid too large to emulate " + TextOf(g);
  if (grid.shared_bytes > kSharedBytesMax) {
    return std::to_string(grid.shared_bytes) +
           " bytes of dynamic shared memory; at most " +
           std::to_string(kSharedBytesMax);
  }
  return "";
}

void RunGrid(const Grid& grid, const std::function<void()>& thread_body) {
  if (const std::string wrong = WhatIsWrong(grid); !wrong.empty()) {
    throw Error(ReportOf(wrong, grid, uint3{}));
  }
  Executor& executor = TheExecutor();
  const ScopedGrid scoped(executor);
  Random random(executor.schedule.seed);
  executor.block.BeginGrid(grid, thread_body, &random);
  if (grid.shared_bytes > 0) {
    executor.dynamic_shared.reset(new unsigned char[grid.shared_bytes]);
  }
  const dim3 g = grid.grid;
  const std::uint32_t blocks = g.x * g.y * g.z;
  const std::vector<std::uint32_t> order =
      BlockOrder(executor.schedule.order, blocks, random);
  for (std::uint32_t i = 0; i < blocks; ++i) {
    PoisonShared(executor, grid.shared_bytes);
    const std::uint32_t n = order.empty() ? i : order[i];
    const std::exception_ptr error =
        executor.block.Run({n % g.x, n / g.x % g.y, n / g.x / g.y});
    if (error) std::rethrow_exception(error);
  }
}

// Functions that the threads of a grid call.

int BlockOp(Op op, int predicate, CodeSite site) {
  return TheExecutor().block.BlockOp(op, predicate, site);
}

std::uint64_t WarpOp(const LaneCall& call, CodeSite site) {
  return TheExecutor().block.WarpOp(call, site);
}

void* DynamicSharedMemory() {
  Executor& executor = TheExecutor();
  executor.block.Running("DynamicShared");
  if (!executor.dynamic_shared) {
    throw executor.block.ErrorOf(
        "DynamicShared() in a launch without dynamic shared memory");
  }
  return executor.dynamic_shared.get();
}

void Trap(CodeSite site) { TheExecutor().block.Trap(site); }

}  // namespace emulated_cuda
