#include "base/cuda/emulated/runtime/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/cuda/emulated/runtime/address_space.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

std::size_t RoundUp(std::size_t bytes) {
  constexpr std::size_t kAlign = DeviceMemory::kAlignBytes;
  return std::max(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
}

std::string Text(const MemoryBlock& block) {
  return std::to_string(block.bytes) + " bytes of device memory allocated in " +
         block.allocated_at.ToString();
}

}  // namespace

DeviceMemory::DeviceMemory(int device, const Limits& limits,
                           unsigned char poison)
    : device_(device),
      limits_(limits),
      poison_(poison),
      base_(AddressesOf(device).base) {}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : device_(other.device_),
      limits_(other.limits_),
      poison_(other.poison_),
      base_(std::exchange(other.base_, nullptr)),
      bytes_live_(other.bytes_live_),
      end_(other.end_),
      blocks_(std::move(other.blocks_)) {}

DeviceMemory::~DeviceMemory() {
  if (base_ == nullptr) return;
  AddressRange& range = AddressesOf(device_);
  if (range.touched_bytes == 0) return;
  // Returns the pages to the system; the next world fills those that it uses.
  mprotect(base_, range.touched_bytes, PROT_NONE);
  madvise(base_, range.touched_bytes, MADV_DONTNEED);
  Forbid(base_, range.touched_bytes);
  range.touched_bytes = 0;
}

void DeviceMemory::Protect(int protection) {
  const std::size_t bytes = AddressesOf(device_).touched_bytes;
  if (bytes != 0) mprotect(base_, bytes, protection);
}

void DeviceMemory::Grow(std::size_t end) {
  constexpr std::size_t kChunkBytes = std::size_t{1} << 16;
  AddressRange& range = AddressesOf(device_);
  while (range.touched_bytes < end) {
    char* const begin = base_ + range.touched_bytes;
    mprotect(begin, kChunkBytes, PROT_READ | PROT_WRITE);
    PoisonAndForbid(begin, kChunkBytes);
    if (!IsOpen(device_)) mprotect(begin, kChunkBytes, PROT_NONE);
    range.touched_bytes += kChunkBytes;
  }
}

void DeviceMemory::Poison(void* p, std::size_t bytes) {
  Allow(p, bytes);
  std::memset(p, poison_, bytes);
}

void DeviceMemory::PoisonAndForbid(void* p, std::size_t bytes) {
  Poison(p, bytes);
  Forbid(p, bytes);
}

void* DeviceMemory::Allocate(const Request& request, Reuse reuse,
                             SeededRandom& random, OperationPtr* after) {
  after->reset();
  if (request.bytes > bytes_free()) return nullptr;
  const bool recycles = reuse != Reuse::kNever && !random.OneIn(4);
  void* p = recycles ? Recycle(request, reuse, random, after) : nullptr;
  if (p == nullptr) p = Fresh(request);
  // No address is left: recycle even with a seed that usually does not.
  if (p == nullptr) p = Recycle(request, Reuse::kByAnyStream, random, after);
  if (p != nullptr) bytes_live_ += request.bytes;
  return p;
}

// Returns whether `block` may serve `request`. A block freed in stream order
// may be reused by the stream that freed it, or by another with the edge that a
// driver would see or insert; by a request out of stream order once the free
// has run.
bool DeviceMemory::MayRecycle(const MemoryBlock& block, const Request& request,
                              Reuse reuse) const {
  if (block.is_live || block.room != RoundUp(request.bytes)) return false;
  const bool is_free = block.freed_by == nullptr || block.freed_by->done;
  if (request.stream == nullptr) return is_free;
  return block.freed_by == nullptr || reuse == Reuse::kByAnyStream ||
         block.freed_on == request.stream->id;
}

void* DeviceMemory::Recycle(const Request& request, Reuse reuse,
                            SeededRandom& random, OperationPtr* after) {
  std::vector<std::size_t> fitting;
  for (const auto& [offset, block] : blocks_) {
    if (MayRecycle(block, request, reuse)) fitting.push_back(offset);
  }
  if (fitting.empty()) return nullptr;
  const std::size_t offset = fitting[random.Below(fitting.size())];
  MemoryBlock& block = blocks_[offset];
  *after = block.freed_by;
  if (!block.freed_by || block.freed_by->done) CheckFreed(offset, block);
  block = MemoryBlock{request.bytes, block.room, /*is_live=*/true,
                      nullptr,       -1,         request.site};
  return base_ + offset;
}

void* DeviceMemory::Fresh(const Request& request) {
  const std::size_t room = RoundUp(request.bytes);
  if (end_ + room + kGapBytes > limits_.address_bytes_max) return nullptr;
  const std::size_t offset = end_;
  end_ += room + kGapBytes;
  Grow(end_);
  blocks_[offset] = MemoryBlock{request.bytes, room, /*is_live=*/true,
                                nullptr,       -1,   request.site};
  return base_ + offset;
}

MemoryBlock* DeviceMemory::Find(const void* p) {
  if (!Contains(p)) return nullptr;
  const auto found = blocks_.find(OffsetOf(p));
  if (found == blocks_.end() || !found->second.is_live) return nullptr;
  return &found->second;
}

void DeviceMemory::Free(const void* p, OperationPtr freed_by, int freed_on) {
  MemoryBlock& block = blocks_[OffsetOf(p)];
  block.is_live = false;
  block.freed_by = std::move(freed_by);
  block.freed_on = freed_on;
  bytes_live_ -= block.bytes;
}

bool DeviceMemory::Contains(const void* p) const {
  return p >= base_ && p < base_ + AddressRange::kBytes;
}

bool DeviceMemory::IsLive(const void* p, std::size_t bytes) const {
  if (!Contains(p)) return false;
  const std::size_t offset = OffsetOf(p);
  auto block = blocks_.upper_bound(offset);
  if (block == blocks_.begin()) return false;
  --block;
  return block->second.is_live &&
         offset + bytes <= block->first + block->second.bytes;
}

bool DeviceMemory::IsPoison(std::size_t begin, std::size_t bytes) const {
  // A loop of its own, since AddressSanitizer would check a library function.
  const auto* const at = reinterpret_cast<unsigned char*>(base_) + begin;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] != poison_) return false;
  }
  return true;
}

void DeviceMemory::CheckFreed(std::size_t offset, const MemoryBlock& block) {
  const OpenMemory open(DeviceBit(device_));
  if (IsPoison(offset, block.room)) return;
  Problem("device memory was written after it was freed: " + Text(block));
}

void DeviceMemory::CheckEnd(const void* p) {
  const OpenMemory open(DeviceBit(device_));
  const std::size_t offset = OffsetOf(p);
  const MemoryBlock& block = blocks_[offset];
  if (IsPoison(offset + block.bytes, block.room - block.bytes + kGapBytes)) {
    return;
  }
  Problem("device memory was written beyond an end: " + Text(block));
}

void DeviceMemory::CheckAll(bool leaks) {
  const OpenMemory open(DeviceBit(device_));
  if (end_ > kGapBytes && !IsPoison(0, kGapBytes)) {
    Problem("device memory was written before the first allocation");
  }
  for (const auto& [offset, block] : blocks_) {
    if (block.is_live) {
      CheckEnd(base_ + offset);
      if (leaks) Problem(Text(block) + " were never freed");
    } else if (!block.freed_by || block.freed_by->done) {
      CheckFreed(offset, block);
      if (!IsPoison(offset + block.room, kGapBytes)) {
        Problem("device memory was written beyond an end: " + Text(block));
      }
    }
  }
}

}  // namespace emulated_cuda
