#include "nn/tensor/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/numeric/bits.h"
#include "base/check.h"

namespace troupe::nn {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kLargeBytes = std::size_t{1} << 20;
constexpr std::size_t kLargeStep = std::size_t{64} << 10;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Four classes per power of two up to kLargeBytes.
constexpr int kClasses = 4 * 21;

std::size_t RoundUp(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// The class of a small block, and the bytes a block of that class has: sizes
// 2^p * {1, 1.25, 1.5, 1.75}, so at most a fifth is wasted.
std::pair<int, std::size_t> ClassOf(std::size_t bytes) {
  bytes = std::max(bytes, 4 * kLine);
  const int power = absl::bit_width(bytes - 1) - 1;  // 2^power < bytes
  const std::size_t step = std::size_t{1} << (power - 2);
  const std::size_t rounded = RoundUp(bytes, step);
  const int quarter =
      static_cast<int>((rounded - (std::size_t{1} << power)) / step);  // 1..4
  return {4 * power + quarter - 1, rounded};
}

}  // namespace

namespace internal {
namespace {

// A std::mutex that the thread safety analysis knows. Not absl::Mutex: as
// Debian builds it, each lock looks for deadlocks, which takes ten times as
// long as what it guards here (45 ns against 4), several times in every op.
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

}  // namespace

class AllocatorState {
 public:
  explicit AllocatorState(std::size_t cached_bytes_max)
      : cached_bytes_max_(cached_bytes_max) {}

  Storage* Allocate(std::size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    const std::size_t wanted = bytes + sizeof(Storage);
    std::size_t block_bytes;
    void* block = nullptr;
    {
      MutexLock lock(&mutex_);
      std::vector<void*>& shelf = ShelfOf(wanted, &block_bytes);
      if (!shelf.empty()) {
        block = shelf.back();
        shelf.pop_back();
        stats_.bytes_cached -= block_bytes;
      } else {
        ++stats_.system_allocations;
      }
      ++stats_.allocations;
      ++live_;
      stats_.bytes_in_use += block_bytes;
      stats_.bytes_in_use_peak =
          std::max(stats_.bytes_in_use_peak, stats_.bytes_in_use);
    }
    if (block == nullptr) block = FromSystem(block_bytes);
    return new (block) Storage(this, bytes, block_bytes);
  }

  void Release(Storage* storage) ABSL_LOCKS_EXCLUDED(mutex_) {
    const std::size_t block_bytes = storage->block_bytes_;
    storage->~Storage();
    void* block = storage;
    bool last;
    {
      MutexLock lock(&mutex_);
      stats_.bytes_in_use -= block_bytes;
      if (!abandoned_ &&
          stats_.bytes_cached + block_bytes <= cached_bytes_max_) {
        std::size_t same;
        ShelfOf(block_bytes, &same).push_back(block);
        stats_.bytes_cached += block_bytes;
        block = nullptr;
      }
      last = --live_ == 0 && abandoned_;
    }
    std::free(block);
    if (last) delete this;
  }

  // The allocator is gone; the last storage takes this state with it.
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_) {
    bool last;
    {
      MutexLock lock(&mutex_);
      FreeShelves();
      abandoned_ = true;
      last = live_ == 0;
    }
    if (last) delete this;
  }

  void ReleaseCached() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    FreeShelves();
  }

  CachingAllocator::Stats stats() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return stats_;
  }

 private:
  static void FreeAll(std::vector<void*>& shelf) {
    for (void* block : shelf) std::free(block);
    shelf.clear();
  }

  void FreeShelves() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (std::vector<void*>& shelf : small_) FreeAll(shelf);
    for (auto& [bytes, shelf] : large_) FreeAll(shelf);
    stats_.bytes_cached = 0;
  }

  static void* FromSystem(std::size_t bytes) {
    const std::size_t alignment = bytes >= kHugePage ? kHugePage : kLine;
    void* block = std::aligned_alloc(alignment, RoundUp(bytes, alignment));
    TROUPE_CHECK(block != nullptr, "the system has no memory left");
    if (bytes >= kHugePage) madvise(block, bytes, MADV_HUGEPAGE);
    return block;
  }

  // The shelf for blocks of `wanted` bytes; rounds up into `block_bytes`.
  std::vector<void*>& ShelfOf(std::size_t wanted, std::size_t* block_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (wanted <= kLargeBytes) {
      const auto [index, rounded] = ClassOf(wanted);
      *block_bytes = rounded;
      return small_[index];
    }
    *block_bytes = RoundUp(wanted, kLargeStep);
    return large_[*block_bytes];
  }

  const std::size_t cached_bytes_max_;
  mutable Mutex mutex_;
  std::vector<void*> small_[kClasses] ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::size_t, std::vector<void*>> large_
      ABSL_GUARDED_BY(mutex_);
  CachingAllocator::Stats stats_ ABSL_GUARDED_BY(mutex_);
  std::int64_t live_ ABSL_GUARDED_BY(mutex_) = 0;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace internal

void Storage::Release(Storage* storage) { storage->owner_->Release(storage); }

CachingAllocator::CachingAllocator(Options options)
    : device_(options.device),
      state_(new internal::AllocatorState(options.cached_bytes_max)) {}

CachingAllocator::~CachingAllocator() { state_->Abandon(); }

StoragePtr CachingAllocator::Allocate(std::size_t bytes) {
  return StoragePtr(state_->Allocate(bytes));
}

void CachingAllocator::ReleaseCached() { state_->ReleaseCached(); }

CachingAllocator::Stats CachingAllocator::stats() const {
  return state_->stats();
}

}  // namespace troupe::nn
