// Memory of a device that exists only in tests: the host may not access it. It
// is mapped without access rights, and opened while the device's own work runs.
//
//   auto memory = std::make_shared<GuardedMemory>(/*bytes_max=*/64 << 20);
//   void* block = memory->Allocate(4096);
//   {
//     GuardedMemory::Opened opened(*memory);
//     std::memset(block, 0, 4096);              // as the device
//   }
//   std::memset(block, 0, 4096);                // SIGSEGV: as the host
//
// Several devices may share one, as ranks of one process do if their
// collectives read each other's memory. Threads: any; while one thread has it
// open, all threads have access.

#ifndef NN_KERNELS_QUEUED_GUARDED_MEMORY_H_
#define NN_KERNELS_QUEUED_GUARDED_MEMORY_H_

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "nn/tensor/memory_source.h"

namespace troupe::nn {

class GuardedMemory final : public MemorySource {
 public:
  explicit GuardedMemory(std::size_t bytes_max);
  ~GuardedMemory() override;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  void* Allocate(std::size_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Free(void* block, std::size_t bytes) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool host_accessible() const override { return false; }
  std::optional<std::size_t> bytes_free() const override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Opens the memory during its lifetime.
  class Opened {
   public:
    explicit Opened(GuardedMemory& memory) : memory_(memory) { memory_.Open(); }
    ~Opened() { memory_.Close(); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    GuardedMemory& memory_;
  };

 private:
  void Open() ABSL_LOCKS_EXCLUDED(mutex_);
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);
  void Protect(int rights) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t bytes_max_;
  char* const begin_;
  mutable absl::Mutex mutex_;
  std::size_t used_ ABSL_GUARDED_BY(mutex_) = 0;   // bytes from begin_ on
  std::size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes that are not freed
  std::map<std::size_t, std::vector<void*>> freed_ ABSL_GUARDED_BY(mutex_);
  int opened_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_QUEUED_GUARDED_MEMORY_H_
