#include "comm/shm/shared_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "comm/shm/sealed_file.h"
#include "nn/tensor/caching_allocator.h"
#include "nn/tensor/memory_source.h"

namespace troupe::comm {
namespace {

// Blocks from this size on get files of their own; smaller ones share one.
constexpr std::size_t kOwnFileBytes = std::size_t{1} << 20;
constexpr std::size_t kCommonFileBytes = std::size_t{4} << 20;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLineBytes = 64;

std::size_t RoundUp(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

void* MapPrivate(void* at, std::size_t bytes, int flags) {
  return ::mmap(at, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

// Replaces pages of a file by private ones with the same contents. If the
// system has no memory for a copy, they are zeros.
void MakePrivate(absl::Span<char> pages) {
  void* const copy = MapPrivate(nullptr, pages.size(), 0);
  if (copy != MAP_FAILED) {
    std::memcpy(copy, pages.data(), pages.size());
    if (::mremap(copy, pages.size(), pages.size(),
                 MREMAP_MAYMOVE | MREMAP_FIXED, pages.data()) != MAP_FAILED) {
      return;
    }
    ::munmap(copy, pages.size());
  }
  TROUPE_CHECK(
      MapPrivate(pages.data(), pages.size(), MAP_FIXED) == pages.data(),
      "the process can map memory in place of a file");
}

// Replaces pages by those of the file from `offset` on, with the same contents.
absl::Status MakeShared(absl::Span<char> pages, const SealedFile& file,
                        std::size_t offset) {
  std::memcpy(file.data() + offset, pages.data(), pages.size());
  void* const mapped =
      ::mmap(pages.data(), pages.size(), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED | MAP_POPULATE, file.fd(),
             static_cast<off_t>(offset));
  return mapped == pages.data()
             ? absl::OkStatus()
             : absl::ErrnoToStatus(errno, "cannot map shared memory in place");
}

}  // namespace

class SharedMemory::Source final : public nn::MemorySource {
 public:
  explicit Source(Options options)
      : options_(std::move(options)), ordinary_(nn::HostMemory()) {}

  void* Allocate(std::size_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::Status refused;
    {
      absl::MutexLock lock(&mutex_);
      const absl::StatusOr<char*> block =
          bytes >= kOwnFileBytes ? OwnFile(RoundUp(bytes, kPageBytes))
                                 : CutBlock(RoundUp(bytes, kLineBytes));
      if (block.ok()) return *block;
      refused = Refuse(block.status());
    }
    if (!refused.ok() && options_.on_refused) options_.on_refused(refused);
    return ordinary_->Allocate(bytes);
  }

  // Returns whether the pages are shared.
  bool Share(absl::Span<const absl::Span<char>> pages)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::size_t bytes = 0;
    for (const absl::Span<char>& part : pages) bytes += part.size();
    if (bytes == 0) return false;
    absl::Status refused;
    {
      absl::MutexLock lock(&mutex_);
      const absl::Status status = ShareInFile(pages, bytes);
      if (status.ok()) return true;
      refused = Refuse(status);
    }
    if (!refused.ok() && options_.on_refused) options_.on_refused(refused);
    return false;
  }

  // Undoes Share().
  void EndShare(absl::Span<const absl::Span<char>> pages)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    SealedFile gone;
    absl::MutexLock lock(&mutex_);
    const char* const file = places_.at(pages[0].data()).file;
    for (const absl::Span<char>& part : pages) {
      MakePrivate(part);
      places_.erase(part.data());
    }
    gone = Remove(files_.find(file));
  }

  void Free(void* block, std::size_t bytes) override
      ABSL_LOCKS_EXCLUDED(mutex_) {
    SealedFile gone;  // unmapped after the lock is released
    absl::MutexLock lock(&mutex_);
    const auto holder = HolderOf(static_cast<char*>(block), bytes);
    if (holder == files_.end()) return ordinary_->Free(block, bytes);
    if (--holder->second.blocks > 0) return;
    if (holder->first == common_) {  // kept, though empty
      cut_bytes_ = 0;
      return;
    }
    gone = Remove(holder);
  }

  // Stops cutting blocks from the current common file.
  void LeaveCommonFile() ABSL_LOCKS_EXCLUDED(mutex_) {
    SealedFile gone;
    absl::MutexLock lock(&mutex_);
    const auto holder = files_.find(std::exchange(common_, nullptr));
    if (holder != files_.end() && holder->second.blocks == 0) {
      gone = Remove(holder);
    }
  }

  std::optional<SharedRange> Find(const void* data, std::size_t bytes,
                                  std::uint64_t* offset)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const char* const in_file = InFile(static_cast<const char*>(data), bytes);
    const auto holder = HolderOf(in_file, bytes);
    if (holder == files_.end()) return std::nullopt;
    const SealedFile& file = holder->second.file;
    if (offset != nullptr) {
      *offset = static_cast<std::uint64_t>(in_file - file.data());
    }
    return SharedRange{holder->second.id, file.data(), file.bytes(), file.fd()};
  }

  void AddGone(std::size_t* cursor, std::vector<std::uint64_t>* ids)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ids->insert(ids->end(), gone_.begin() + *cursor, gone_.end());
    *cursor = gone_.size();
  }

 private:
  struct Holder {
    std::uint64_t id = 0;
    SealedFile file;
    int blocks = 0;  // number handed out
  };
  using Files = std::map<const char*, Holder>;  // sorted by address
  // Pages of Share().
  struct Place {
    const char* file = nullptr;  // its first address in files_
    std::size_t offset = 0;      // place of the pages in the file
    std::size_t bytes = 0;
  };

  // Returns the error if it is the first one, which is reported.
  absl::Status Refuse(const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::exchange(refused_, true) ? absl::OkStatus() : why;
  }

  absl::Status ShareInFile(absl::Span<const absl::Span<char>> pages,
                           std::size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    TROUPE_ASSIGN_OR_RETURN(const Files::iterator made, AddFile(bytes));
    const SealedFile& file = made->second.file;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      const absl::Status status = MakeShared(pages[i], file, offset);
      if (!status.ok()) {
        for (std::size_t k = 0; k < i; ++k) {
          MakePrivate(pages[k]);
          places_.erase(pages[k].data());
        }
        const SealedFile gone = Remove(made);
        return status;
      }
      places_[pages[i].data()] = {made->first, offset, pages[i].size()};
      offset += pages[i].size();
    }
    // The pages stay in the file; at these addresses they would count twice as
    // memory of the process.
    (void)::madvise(file.data(), bytes, MADV_DONTNEED);
    return absl::OkStatus();
  }

  // Returns the address within files_ of bytes that are in pages of Share(),
  // else `data`.
  const char* InFile(const char* data, std::size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto behind = places_.upper_bound(data);
    if (behind == places_.begin()) return data;
    const auto& [begin, place] = *--behind;
    const auto at = static_cast<std::size_t>(data - begin);
    const bool inside = at <= place.bytes && bytes <= place.bytes - at;
    return inside ? place.file + place.offset + at : data;
  }

  SealedFile Remove(Files::iterator holder)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    SealedFile file = std::move(holder->second.file);
    held_bytes_ -= file.bytes();
    gone_.push_back(holder->second.id);
    files_.erase(holder);
    return file;
  }

  absl::StatusOr<Files::iterator> AddFile(std::size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (bytes > options_.bytes_max - held_bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrCat(bytes, " bytes of shared memory beside ", held_bytes_,
                       "; the limit is ", options_.bytes_max));
    }
    TROUPE_ASSIGN_OR_RETURN(SealedFile file,
                            SealedFile::Create("troupe-tensors", bytes));
    // Takes effect only if the system has huge pages for shared memory.
    (void)::madvise(file.data(), bytes, MADV_HUGEPAGE);
    held_bytes_ += bytes;
    const char* const at = file.data();
    return files_.emplace(at, Holder{++last_id_, std::move(file), 0}).first;
  }

  absl::StatusOr<char*> OwnFile(std::size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    TROUPE_ASSIGN_OR_RETURN(const Files::iterator made, AddFile(bytes));
    made->second.blocks = 1;
    return made->second.file.data();
  }

  absl::StatusOr<char*> CutBlock(std::size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (common_ == nullptr || cut_bytes_ + bytes > kCommonFileBytes) {
      // The old file is removed with its last block.
      TROUPE_ASSIGN_OR_RETURN(const Files::iterator made,
                              AddFile(kCommonFileBytes));
      common_ = made->first;
      cut_bytes_ = 0;
    }
    Holder& holder = files_.find(common_)->second;
    ++holder.blocks;
    return holder.file.data() + std::exchange(cut_bytes_, cut_bytes_ + bytes);
  }

  // Returns the file that contains all of these bytes.
  Files::iterator HolderOf(const char* data, std::size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto behind = files_.upper_bound(data);
    if (behind == files_.begin()) return files_.end();
    const auto holder = --behind;
    const auto offset = static_cast<std::size_t>(data - holder->first);
    const std::size_t size = holder->second.file.bytes();
    return offset <= size && bytes <= size - offset ? holder : files_.end();
  }

  const Options options_;
  const std::shared_ptr<nn::MemorySource> ordinary_;
  absl::Mutex mutex_;
  Files files_ ABSL_GUARDED_BY(mutex_);
  std::map<const char*, Place> places_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The file that small blocks are cut from, and the bytes cut so far.
  const char* common_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::size_t cut_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::uint64_t> gone_ ABSL_GUARDED_BY(mutex_);
  bool refused_ ABSL_GUARDED_BY(mutex_) = false;
};

// A CachingAllocator that Spoil() replaces with a new one: blocks of the old
// one return to the source when they are freed.
class SharedMemory::Renewable final : public nn::Allocator {
 public:
  explicit Renewable(std::shared_ptr<Source> source)
      : source_(std::move(source)), now_(Fresh()) {}

  nn::Device device() const override { return nn::Device(); }
  absl::StatusOr<nn::StoragePtr> Allocate(std::size_t bytes) override {
    return now()->Allocate(bytes);
  }
  void ReleaseCached() override { now()->ReleaseCached(); }
  Stats stats() const override { return now()->stats(); }

  void Renew() ABSL_LOCKS_EXCLUDED(mutex_) {
    source_->LeaveCommonFile();
    std::shared_ptr<nn::CachingAllocator> old = Fresh();
    absl::MutexLock lock(&mutex_);
    now_.swap(old);
  }

 private:
  std::shared_ptr<nn::CachingAllocator> Fresh() const {
    return std::make_shared<nn::CachingAllocator>(nn::CachingAllocator::Options{
        /*cached_bytes_max=*/std::size_t{1} << 30, nn::Device(), source_});
  }
  std::shared_ptr<nn::CachingAllocator> now() const
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return now_;
  }

  const std::shared_ptr<Source> source_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<nn::CachingAllocator> now_ ABSL_GUARDED_BY(mutex_);
};

SharedMemory::SharedMemory(Options options)
    : source_(std::make_shared<Source>(std::move(options))),
      allocator_(std::make_unique<Renewable>(source_)) {}

SharedMemory::~SharedMemory() = default;

nn::Allocator& SharedMemory::allocator() { return *allocator_; }

std::shared_ptr<void> SharedMemory::Share(
    absl::Span<const absl::Span<char>> pages) {
  if (!source_->Share(pages)) return nullptr;
  using Parts = std::vector<absl::Span<char>>;
  return std::shared_ptr<Parts>(new Parts(pages.begin(), pages.end()),
                                [source = source_](Parts* parts) {
                                  source->EndShare(*parts);
                                  delete parts;
                                });
}

std::optional<SharedRange> SharedMemory::Find(const void* data,
                                              std::size_t bytes,
                                              std::uint64_t* offset) const {
  return source_->Find(data, bytes, offset);
}

void SharedMemory::AddGone(std::size_t* cursor,
                           std::vector<std::uint64_t>* ids) const {
  source_->AddGone(cursor, ids);
}

void SharedMemory::Spoil() { allocator_->Renew(); }

}  // namespace troupe::comm
