// The memory of one emulated device: a range of addresses that host code may
// not touch, filled with poison wherever nothing lives.
//
//     OperationPtr after;  // what the memory's new owner waits for
//     void* p = memory.Allocate({bytes, stream, site}, reuse, random, &after);
//     const OpenMemory open(DeviceBit(0));
//     memory.Poison(p, bytes);
//
// Between allocations lie kGapBytes of poison; a block keeps its place and its
// rounded size for ever, and writes beyond its end or after its free are found
// when it is freed, handed out again, or at the end.
//
// The addresses of device d are the same in every world of a process.
//
// Errors: what is found goes to Problem(). Threads: under the runtime's lock,
// but memory is open to all threads while an operation runs.

#ifndef BASE_CUDA_EMULATED_RUNTIME_DEVICE_MEMORY_H_
#define BASE_CUDA_EMULATED_RUNTIME_DEVICE_MEMORY_H_

#include <cstddef>
#include <map>

#include "base/cuda/emulated/runtime/operation.h"
#include "base/cuda/emulated/runtime/random.h"

namespace emulated_cuda {

struct MemoryBlock {
  std::size_t bytes = 0;  // as asked for
  std::size_t room = 0;   // bytes, rounded up
  bool is_live = false;
  // Of a block freed in stream order: the operation, and its stream's id.
  OperationPtr freed_by;
  int freed_on = -1;
  CallSite allocated_at;
};

// When memory that was freed in stream order is handed out again.
enum class Reuse { kNever, kBySameStream, kByAnyStream };

class DeviceMemory {
 public:
  static constexpr std::size_t kAlignBytes = 256;
  static constexpr std::size_t kGapBytes = 256;

  DeviceMemory(int device, std::size_t bytes_max, unsigned char poison);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  // Poisons all of it for the next world.
  ~DeviceMemory();

  struct Request {
    std::size_t bytes = 0;
    const Stream* stream = nullptr;  // null: not in stream order
    CallSite site;
  };
  // The memory for `request`, still poison, or null when there is none. Whoever
  // uses it waits for `*after` first, unless that is null.
  void* Allocate(const Request& request, Reuse reuse, SeededRandom& random,
                 OperationPtr* after);

  // The live block that begins at `p`; null if there is none.
  MemoryBlock* Find(const void* p);
  // Marks the block as free; the caller poisons it, now or in stream order.
  void Free(const void* p, OperationPtr freed_by, int freed_on);

  bool Contains(const void* p) const;
  // Whether all of it lies in one live block.
  bool IsLive(const void* p, std::size_t bytes) const;
  std::size_t bytes_free() const { return bytes_max_ - bytes_live_; }
  std::size_t bytes_max() const { return bytes_max_; }

  // Fills with poison. The first two are for open memory.
  void Poison(void* p, std::size_t bytes);
  void PoisonAndForbid(void* p, std::size_t bytes);

  // Looks at the block at `p` for writes beyond its end.
  void CheckEnd(const void* p);
  // At the end of a world: all blocks' ends, freed memory, and leaks if asked.
  void CheckAll(bool leaks);

  // mprotect() of all that was ever used.
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
  const std::size_t bytes_max_;
  const unsigned char poison_;
  char* base_;
  std::size_t bytes_live_ = 0;
  std::size_t end_ = kGapBytes;                // of what was handed out
  std::map<std::size_t, MemoryBlock> blocks_;  // by offset
};

// Opens the memory of some devices to this process, until CloseMemory(), which
// the end of a call of the API does. mprotect() is by far the dearest thing
// here, so other devices' memory stays open with most seeds.
class OpenMemory {
 public:
  explicit OpenMemory(DeviceMask devices);
};
void CloseMemory();

// Fault handler: a stray access to device memory ends the program with a
// message that names the function. Called once.
void WatchForStrayAccesses();

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_DEVICE_MEMORY_H_
