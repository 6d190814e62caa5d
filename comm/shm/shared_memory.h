// Memory of this process that other processes of the host can map: what lives
// in it is reduced without a copy (docs/collectives.md, "By reference").
//
//   auto memory = std::make_shared<SharedMemory>();
//   options.shared_memory = memory;                    // of a Fabric
//   TROUPE_ASSIGN_OR_RETURN(
//       nn::Tensor gradients,
//       nn::Tensor::Create({1 << 20}, nn::DType::kF32, memory->allocator()));
//
// It is made of sealed files (sealed_file.h), which links hand to the processes
// at their other ends when a collective first needs them. Those can read and
// write all of a file: blocks below 1 MiB share files of 4 MiB, so keep here
// only what processes of the job may see and change, such as gradients.
//
// Where the system has no such memory, a block is ordinary memory: everything
// works, by copies, and `on_refused` says why, once.
//
// Threads: any. Lifetime: storages may outlive it. Cost: that of a
// CachingAllocator; the pages of a file are there when it is made.

#ifndef COMM_SHM_SHARED_MEMORY_H_
#define COMM_SHM_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "comm/link.h"
#include "nn/tensor/allocator.h"

namespace troupe::comm {

class SharedMemory {
 public:
  struct Options {
    // Called in the thread that allocates.
    std::function<void(const absl::Status& why)> on_refused;
    // Bytes of files at one time; what is asked for beyond is ordinary memory.
    std::size_t bytes_max = std::size_t{1} << 40;
  };

  SharedMemory() : SharedMemory(Options{}) {}
  explicit SharedMemory(Options options);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  nn::Allocator& allocator();

  // The range that holds all of [data, data + bytes); nothing where that is
  // ordinary memory.
  std::optional<SharedRange> Find(const void* data, std::size_t bytes) const;

  // Adds to `ids` the numbers of the ranges that are gone since the last call
  // with this `cursor`, which begins with 0.
  void AddGone(std::size_t* cursor, std::vector<std::uint64_t>* ids) const;

  // A process that has some of it mapped may write to it at any time: what is
  // freed from now on is never handed out again.
  void Spoil();

 private:
  class Source;
  class Renewable;

  const std::shared_ptr<Source> source_;
  const std::unique_ptr<Renewable> allocator_;
};

}  // namespace troupe::comm

#endif  // COMM_SHM_SHARED_MEMORY_H_
