// Pool of buffers for data in transit.
//
//   StagingPool pool(/*kept_bytes_max=*/64 << 20);
//   StagingBuffer buffer = pool.Take(bytes);      // buffer.data(), aligned
//   // returns to the pool when the buffer is destroyed
//
// Callers bound the memory that is taken at one time, the pool the memory that
// it keeps for reuse. Outlives its buffers. Threads: any.

#ifndef COMM_SPANNING_FRAMES_STAGING_H_
#define COMM_SPANNING_FRAMES_STAGING_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace troupe::comm::internal {

class StagingPool;

class StagingBuffer {
 public:
  StagingBuffer() = default;
  StagingBuffer(StagingBuffer&& other) noexcept { *this = std::move(other); }
  StagingBuffer& operator=(StagingBuffer&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~StagingBuffer();

  char* data() const { return data_.get(); }

 private:
  friend class StagingPool;
  struct Free {
    void operator()(char* data) const;
  };
  using Memory = std::unique_ptr<char, Free>;

  StagingPool* pool_ = nullptr;
  Memory data_;
  std::size_t bytes_ = 0;
};

class StagingPool {
 public:
  explicit StagingPool(std::size_t kept_bytes_max)
      : kept_bytes_max_(kept_bytes_max) {}

  StagingBuffer Take(std::size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class StagingBuffer;
  struct Kept {
    std::size_t bytes;
    StagingBuffer::Memory data;
  };

  void GiveBack(std::size_t bytes, StagingBuffer::Memory data)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::size_t kept_bytes_max_;
  absl::Mutex mutex_;
  std::size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_FRAMES_STAGING_H_
