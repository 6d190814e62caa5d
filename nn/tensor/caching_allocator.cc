#include "nn/tensor/caching_allocator.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "base/format_bytes.h"

namespace troupe::nn {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kLargeBytes = std::size_t{1} << 20;
constexpr std::size_t kLargeStep = std::size_t{64} << 10;
// Number of size classes: four per power of two up to kLargeBytes.
constexpr int kClasses = 4 * 21;

std::size_t RoundUp(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// Returns the class of a small block, and the bytes of a block of that class:
// sizes 2^p * {1, 1.25, 1.5, 1.75}, so at most a fifth is wasted.
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

// A lock that is held for a few instructions, several times in every op, nearly
// always uncontended: a rank allocates on one strand. It takes one exchange and
// one store, half the cost of a std::mutex; absl::Mutex as Debian builds it
// checks each lock for deadlocks, which takes ten times as long as the code it
// guards.
class ABSL_LOCKABLE SpinLock {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    while (held_.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    held_.store(false, std::memory_order_release);
  }

 private:
  std::atomic<bool> held_{false};
};

class ABSL_SCOPED_LOCKABLE SpinLockHolder {
 public:
  explicit SpinLockHolder(SpinLock* lock) ABSL_EXCLUSIVE_LOCK_FUNCTION(lock)
      : lock_(lock) {
    lock_->Lock();
  }
  ~SpinLockHolder() ABSL_UNLOCK_FUNCTION() { lock_->Unlock(); }
  SpinLockHolder(const SpinLockHolder&) = delete;
  SpinLockHolder& operator=(const SpinLockHolder&) = delete;

 private:
  SpinLock* const lock_;
};

// A list through Storage::next, last in, first out.
class Shelf {
 public:
  Storage* Pop() {
    Storage* const top = top_;
    if (top != nullptr) top_ = top->next;
    return top;
  }
  void Push(Storage* storage) {
    storage->next = top_;
    top_ = storage;
  }

 private:
  Storage* top_ = nullptr;
};

}  // namespace

class AllocatorState final : public StorageOwner {
 public:
  explicit AllocatorState(CachingAllocator::Options options)
      : cached_bytes_max_(options.cached_bytes_max),
        cached_of_peak_max_(options.cached_of_peak_max),
        device_(options.device),
        source_(std::move(options.source)) {}

  absl::StatusOr<StoragePtr> Allocate(std::size_t bytes)
      ABSL_LOCKS_EXCLUDED(lock_) {
    std::size_t block_bytes;
    {
      SpinLockHolder holder(&lock_);
      Storage* const cached = ShelfOf(bytes, &block_bytes).Pop();
      ++stats_.allocations;
      ++live_;
      stats_.bytes_in_use += block_bytes;
      if (cached != nullptr) {
        stats_.bytes_cached -= block_bytes;
        return StoragePtr(cached->HandOut(bytes));
      }
      ++stats_.system_allocations;
    }
    void* block = source_->Allocate(block_bytes);
    if (block == nullptr) {
      ReleaseCached();
      block = source_->Allocate(block_bytes);
    }
    if (block == nullptr) return Exhausted(bytes, block_bytes);
    Storage* const storage =
        new Storage(this, block, block_bytes, source_->host_accessible());
    return StoragePtr(storage->HandOut(bytes));
  }

  void Recycle(Storage* storage) override ABSL_LOCKS_EXCLUDED(lock_) {
    const std::size_t block_bytes = storage->block_bytes();
    bool last;
    {
      SpinLockHolder holder(&lock_);
      // Only here do the bytes in use shrink, so a peak can only end here.
      stats_.bytes_in_use_peak =
          std::max(stats_.bytes_in_use_peak, stats_.bytes_in_use);
      stats_.bytes_in_use -= block_bytes;
      if (!abandoned_ && MayCache(stats_.bytes_cached + block_bytes)) {
        std::size_t same;
        ShelfOf(block_bytes, &same).Push(storage);
        stats_.bytes_cached += block_bytes;
        storage = nullptr;
      }
      last = --live_ == 0 && abandoned_;
    }
    if (storage != nullptr) Free(storage);
    if (last) delete this;
  }

  // Called when the allocator is destroyed; the last storage frees this state.
  void Abandon() ABSL_LOCKS_EXCLUDED(lock_) {
    bool last;
    {
      SpinLockHolder holder(&lock_);
      FreeShelves();
      abandoned_ = true;
      last = live_ == 0;
    }
    if (last) delete this;
  }

  void ReleaseCached() ABSL_LOCKS_EXCLUDED(lock_) {
    SpinLockHolder holder(&lock_);
    FreeShelves();
  }

  Allocator::Stats stats() const ABSL_LOCKS_EXCLUDED(lock_) {
    SpinLockHolder holder(&lock_);
    Allocator::Stats stats = stats_;
    stats.bytes_in_use_peak =
        std::max(stats.bytes_in_use_peak, stats.bytes_in_use);
    return stats;
  }

 private:
  void Free(Storage* storage) {
    source_->Free(storage->data(), storage->block_bytes());
    delete storage;
  }

  void FreeAll(Shelf& shelf) {
    while (Storage* storage = shelf.Pop()) Free(storage);
  }

  void FreeShelves() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    for (Shelf& shelf : small_) FreeAll(shelf);
    for (auto& [bytes, shelf] : large_) FreeAll(shelf);
    stats_.bytes_cached = 0;
  }

  bool MayCache(std::size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    return bytes <= cached_bytes_max_ ||
           static_cast<double>(bytes) <=
               cached_of_peak_max_ *
                   static_cast<double>(stats_.bytes_in_use_peak);
  }

  // Undoes the counts of a failed Allocate(), and returns its error.
  absl::Status Exhausted(std::size_t bytes, std::size_t block_bytes)
      ABSL_LOCKS_EXCLUDED(lock_) {
    std::size_t held;
    {
      SpinLockHolder holder(&lock_);
      stats_.bytes_in_use -= block_bytes;
      --live_;
      held = stats_.bytes_in_use;
    }
    const std::optional<std::size_t> left = source_->bytes_free();
    return absl::ResourceExhaustedError(absl::StrCat(
        device_.ToString(), " has no memory for ", base::FormatBytes(bytes),
        ": tensors hold ", base::FormatBytes(held), " of it",
        left ? absl::StrCat(", ", base::FormatBytes(*left), " are free") : "",
        ", nothing is cached"));
  }

  // Returns the shelf for blocks of `wanted` bytes; sets `block_bytes` to the
  // rounded size.
  Shelf& ShelfOf(std::size_t wanted, std::size_t* block_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_) {
    if (wanted <= kLargeBytes) {
      const auto [index, rounded] = ClassOf(wanted);
      *block_bytes = rounded;
      return small_[index];
    }
    *block_bytes = RoundUp(wanted, kLargeStep);
    return large_[*block_bytes];
  }

  const std::size_t cached_bytes_max_;
  const double cached_of_peak_max_;
  const Device device_;
  const std::shared_ptr<MemorySource> source_;
  mutable SpinLock lock_;
  // Unreferenced blocks, each with its header.
  Shelf small_[kClasses] ABSL_GUARDED_BY(lock_);
  absl::flat_hash_map<std::size_t, Shelf> large_ ABSL_GUARDED_BY(lock_);
  Allocator::Stats stats_ ABSL_GUARDED_BY(lock_);
  std::int64_t live_ ABSL_GUARDED_BY(lock_) = 0;
  bool abandoned_ ABSL_GUARDED_BY(lock_) = false;
};

}  // namespace internal

namespace {

CachingAllocator::Options WithSource(CachingAllocator::Options options) {
  if (options.source == nullptr) options.source = HostMemory();
  return options;
}

}  // namespace

CachingAllocator::CachingAllocator(Options options)
    : device_(options.device),
      state_(new internal::AllocatorState(WithSource(std::move(options)))) {}

CachingAllocator::~CachingAllocator() { state_->Abandon(); }

absl::StatusOr<StoragePtr> CachingAllocator::Allocate(std::size_t bytes) {
  return state_->Allocate(bytes);
}

void CachingAllocator::ReleaseCached() { state_->ReleaseCached(); }

Allocator::Stats CachingAllocator::stats() const { return state_->stats(); }

}  // namespace troupe::nn
