// Memory of this process that other processes of the host can map: tensors in
// it are reduced without a copy (docs/collectives.md, "By reference").
//
//   auto memory = std::make_shared<SharedMemory>();
//   options.shared_memory = memory;                    // FabricOptions
//   TROUPE_ASSIGN_OR_RETURN(
//       nn::Tensor gradients,
//       nn::Tensor::Create({1 << 20}, nn::DType::kF32, memory->allocator()));
//
// It consists of sealed files (sealed_file.h), which links send to the
// processes at their other ends when a collective first needs them. These can
// read and write all of a file: blocks below 1 MiB share files of 4 MiB, so put
// here only data that processes of the job may see and change, such as
// gradients.
//
// Memory that is allocated elsewhere can be shared in place, in whole pages:
//
//   const std::shared_ptr<void> shared = memory->Share({pages});
//
// If the system has no memory of this kind, a block is ordinary memory:
// everything works, by copies, and `on_refused` reports why, once.
//
// Threads: any. Lifetime: storages may outlive it. Cost: that of a
// CachingAllocator; the pages of a file are allocated when it is made.

#ifndef COMM_SHM_SHARED_MEMORY_H_
#define COMM_SHM_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "comm/link.h"
#include "nn/tensor/allocator.h"

namespace troupe::comm {

class SharedMemory {
 public:
  struct Options {
    // Called in the thread that allocates.
    std::function<void(const absl::Status& why)> on_refused;
    // Limit on the bytes of files at one time; blocks beyond it are ordinary
    // memory.
    std::size_t bytes_max = std::size_t{1} << 40;
  };

  SharedMemory() : SharedMemory(Options{}) {}
  explicit SharedMemory(Options options);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  nn::Allocator& allocator();

  // Replaces whole pages of ordinary memory by those of one file, with the same
  // contents and at the same addresses, until the last copy of the result is
  // destroyed: then they are ordinary memory again, and keep their contents.
  // Nothing may write to them during either change. The pages must be private
  // and anonymous, and are never pages that are shared already. Returns null,
  // with no effect, if the system refuses; `on_refused` reports why.
  std::shared_ptr<void> Share(absl::Span<const absl::Span<char>> pages);

  // Returns the range that contains all of [data, data + bytes), and sets
  // `offset`, unless it is null, to their place in it; none if that is ordinary
  // memory. Bytes of Share() have other addresses in the range, too.
  std::optional<SharedRange> Find(const void* data, std::size_t bytes,
                                  std::uint64_t* offset = nullptr) const;

  // Appends to `ids` the numbers of the ranges removed since the last call with
  // this `cursor`, which begins with 0.
  void AddGone(std::size_t* cursor, std::vector<std::uint64_t>* ids) const;

  // Stops the reuse of memory after a peer was lost that has some of it mapped,
  // and may write to it at any time: blocks freed from now on are never handed
  // out again.
  void Spoil();

 private:
  class Source;
  class Renewable;

  const std::shared_ptr<Source> source_;
  const std::unique_ptr<Renewable> allocator_;
};

}  // namespace troupe::comm

#endif  // COMM_SHM_SHARED_MEMORY_H_
