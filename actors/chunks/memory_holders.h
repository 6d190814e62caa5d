// Lists the uses of a rank's device memory, for the error that it is exhausted.
//
//   MemoryHolders holders(kernels.allocator().stats().bytes_in_use);
//   holders.AddArena(chunk.arena());
//   holders.ToString();
//   // "activations and all else 3.2 GiB, parameters 98 MiB, exp_avg 98 MiB"
//
// Memory outside of arenas belongs to a step: activations, gradients of
// activations, batches, and the kernels' work space.

#ifndef ACTORS_CHUNKS_MEMORY_HOLDERS_H_
#define ACTORS_CHUNKS_MEMORY_HOLDERS_H_

#include <cstddef>
#include <map>
#include <string>

#include "nn/arena/parameter_arena.h"

namespace troupe::actors {

class MemoryHolders {
 public:
  // `in_use`: number of bytes in use by tensors of the device.
  explicit MemoryHolders(std::size_t in_use) : in_use_(in_use) {}

  // Adds values, states and, if they are on the same device, gradients.
  void AddArena(const nn::ParameterArena& arena);

  // Returns the uses, the largest first.
  std::string ToString() const;

 private:
  const std::size_t in_use_;
  std::map<std::string, std::size_t> bytes_;  // sums over arenas, by name
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_MEMORY_HOLDERS_H_
