// The memory of one emulated device: an address range that host code may not
// access, filled with poison outside of live blocks.
//
//     OperationPtr after;  // the memory's new owner waits for it
//     void* p = memory.Allocate({bytes, stream, site}, reuse, random, &after);
//     const OpenMemory open(DeviceBit(0));
//     memory.Poison(p, bytes);
//
// Allocations are separated by kGapBytes of poison. A block keeps its address
// and its rounded size for ever; writes beyond its end or after its free are
// found when it is freed, reused, or at the end.
//
// The addresses of device d are the same in every world of a process.
//
// Errors: findings are reported by Problem(). Threads: under the runtime's
// lock, but memory is accessible to all threads while an operation runs.

#ifndef BASE_CUDA_EMULATED_RUNTIME_DEVICE_MEMORY_H_
#define BASE_CUDA_EMULATED_RUNTIME_DEVICE_MEMORY_H_

#include <cstddef>
#include <map>

#include "base/cuda/emulated/runtime/operation.h"
#include "base/cuda/emulated/runtime/random.h"

namespace emulated_cuda {

struct MemoryBlock {
  std::size_t bytes = 0;  // requested size
  std::size_t room = 0;   // size, rounded up
  bool is_live = false;
  // For a block freed in stream order: the operation, and its stream's id.
  OperationPtr freed_by;
  int freed_on = -1;
  CallSite allocated_at;
};

// Policy for the reuse of memory that was freed in stream order.
enum class Reuse { kNever, kBySameStream, kByAnyStream };

class DeviceMemory {
 public:
  static constexpr std::size_t kAlignBytes = 256;
  static constexpr std::size_t kGapBytes = 256;

  struct Limits {
    std::size_t bytes_max = 0;  // limit on live memory
    std::size_t address_bytes_max = 0;
  };
  DeviceMemory(int device, const Limits& limits, unsigned char poison);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  // Poisons all of it for the next world.
  ~DeviceMemory();

  struct Request {
    std::size_t bytes = 0;
    const Stream* stream = nullptr;  // null: not in stream order
    CallSite site;
  };
  // Returns memory for `request`, still poisoned, or null if there is none. The
  // user must wait for `*after` first, unless that is null.
  void* Allocate(const Request& request, Reuse reuse, SeededRandom& random,
                 OperationPtr* after);

  // Returns the live block that begins at `p`; null if there is none.
  MemoryBlock* Find(const void* p);
  // Marks the block as free; the caller poisons it, now or in stream order.
  void Free(const void* p, OperationPtr freed_by, int freed_on);

  bool Contains(const void* p) const;
  // Returns whether all of it lies in one live block.
  bool IsLive(const void* p, std::size_t bytes) const;
  std::size_t bytes_free() const { return limits_.bytes_max - bytes_live_; }
  std::size_t bytes_max() const { return limits_.bytes_max; }

  // Fill with poison; the memory must be open.
  void Poison(void* p, std::size_t bytes);
  void PoisonAndForbid(void* p, std::size_t bytes);

  // Checks the block at `p` for writes beyond its end.
  void CheckEnd(const void* p);
  // Checks all blocks' ends and freed memory, at the end of a world, and leaks
  // if requested.
  void CheckAll(bool leaks);

  // Calls mprotect() on all memory that was ever used.
  void Protect(int protection);

 private:
  void* Recycle(const Request& request, Reuse reuse, SeededRandom& random,
                OperationPtr* after);
  void* Fresh(const Request& request);
  bool MayRecycle(const MemoryBlock& block, const Request& request,
                  Reuse reuse) const;
  void Grow(std::size_t end);
  bool IsPoison(std::size_t begin, std::size_t bytes) const;
  void CheckFreed(std::size_t offset, const MemoryBlock& block);
  std::size_t OffsetOf(const void* p) const {
    return static_cast<std::size_t>(static_cast<const char*>(p) - base_);
  }

  const int device_;
  const Limits limits_;
  const unsigned char poison_;
  char* base_;
  std::size_t bytes_live_ = 0;
  std::size_t end_ = kGapBytes;                // end of the used addresses
  std::map<std::size_t, MemoryBlock> blocks_;  // key: offset
};

// Makes the memory of some devices accessible to this process, until
// CloseMemory(), which the end of an API call calls. mprotect() is by far the
// most expensive step, so other devices' memory stays accessible with most
// seeds.
class OpenMemory {
 public:
  explicit OpenMemory(DeviceMask devices);
};
void CloseMemory();

// Installs the fault handler: a stray access to device memory ends the program
// with a message that names the function. Called once.
void WatchForStrayAccesses();

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_DEVICE_MEMORY_H_
