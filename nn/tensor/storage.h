// One block of a device's memory and its reference count. The count lies beside
// the block, not in it: the host cannot access the memory of every device.
//
//   StoragePtr block = *allocator.Allocate(4096);
//   StoragePtr same = block;                      // counts two
//   block->data();                                // its address
//   block->host_accessible();                     // for the host, or not
//
// Threads: copying and dropping a StoragePtr is safe in any thread.

#ifndef NN_TENSOR_STORAGE_H_
#define NN_TENSOR_STORAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe::nn {

class Storage;

// Takes back a storage whose reference count has reached zero.
class StorageOwner {
 public:
  virtual void Recycle(Storage* storage) = 0;

 protected:
  ~StorageOwner() = default;
};

// The header of a block. Its owner creates it, and may reuse it for the same
// block, so that handing out a cached block needs no heap allocation.
class alignas(64) Storage {
 public:
  Storage(StorageOwner* owner, void* data, std::size_t block_bytes,
          bool host_accessible)
      : data_(data),
        owner_(owner),
        block_bytes_(block_bytes),
        host_accessible_(host_accessible) {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Returns the block's address on its device.
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }  // bytes requested
  std::size_t block_bytes() const { return block_bytes_; }
  bool host_accessible() const { return host_accessible_; }
  const StorageOwner* owner() const { return owner_; }

  // For the owner: starts to count one reference, to `bytes` of the block.
  Storage* HandOut(std::size_t bytes) {
    bytes_ = bytes;
    count_.store(1, std::memory_order_relaxed);
    return this;
  }
  // For the owner: link of its list of unreferenced headers.
  Storage* next = nullptr;

 private:
  friend class StoragePtr;

  void* const data_;
  StorageOwner* const owner_;
  std::size_t bytes_ = 0;
  const std::size_t block_bytes_;
  std::atomic<std::int32_t> count_{0};
  const bool host_accessible_;
};

// A counted reference to a Storage; null by default.
class StoragePtr {
 public:
  StoragePtr() = default;
  // Takes over one count that the caller holds.
  explicit StoragePtr(Storage* counted) : storage_(counted) {}
  StoragePtr(const StoragePtr& other) : storage_(other.storage_) {
    if (storage_) storage_->count_.fetch_add(1, std::memory_order_relaxed);
  }
  StoragePtr(StoragePtr&& other) noexcept : storage_(other.storage_) {
    other.storage_ = nullptr;
  }
  StoragePtr& operator=(StoragePtr other) noexcept {
    Storage* mine = storage_;
    storage_ = other.storage_;
    other.storage_ = mine;
    return *this;
  }
  ~StoragePtr() { reset(); }

  void reset() {
    if (storage_ &&
        storage_->count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      storage_->owner_->Recycle(storage_);
    }
    storage_ = nullptr;
  }
  Storage* get() const { return storage_; }
  // Whether this is the only reference; false if it is null.
  bool unique() const {
    return storage_ && storage_->count_.load(std::memory_order_acquire) == 1;
  }
  Storage* operator->() const { return storage_; }
  explicit operator bool() const { return storage_ != nullptr; }

 private:
  Storage* storage_ = nullptr;
};

}  // namespace troupe::nn

#endif  // NN_TENSOR_STORAGE_H_
