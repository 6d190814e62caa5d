// What holds the memory of a rank's device, for the error of a rank that has
// none left.
//
//   MemoryHolders holders(kernels.allocator().stats().bytes_in_use);
//   holders.AddArena(chunk.arena());
//   holders.ToString();
//   // "activations and all else 3.2 GiB, parameters 98 MiB, exp_avg 98 MiB"
//
// What no arena holds is a step's own: activations, gradients of activations,
// batches, and the kernels' work space.

#ifndef ACTORS_CHUNKS_MEMORY_HOLDERS_H_
#define ACTORS_CHUNKS_MEMORY_HOLDERS_H_

#include <cstddef>
#include <map>
#include <string>

#include "nn/arena/parameter_arena.h"

namespace troupe::actors {

class MemoryHolders {
 public:
  // `in_use`: bytes that tensors of the device hold.
  explicit MemoryHolders(std::size_t in_use) : in_use_(in_use) {}

  // Values, states and, where they lie on the same device, gradients.
  void AddArena(const nn::ParameterArena& arena);

  // The largest first.
  std::string ToString() const;

 private:
  const std::size_t in_use_;
  std::map<std::string, std::size_t> bytes_;  // of all arenas, by name
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_MEMORY_HOLDERS_H_
