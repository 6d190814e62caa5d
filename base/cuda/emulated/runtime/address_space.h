// The address ranges of the emulated devices: reserved once per process, and
// inaccessible unless an operation runs.
//
//     AddressRange& range = AddressesOf(/*device=*/0);
//     bool open = IsOpen(/*device=*/0);
//
// Threads: under the runtime's lock; the fault handler reads without it.

#ifndef BASE_CUDA_EMULATED_RUNTIME_ADDRESS_SPACE_H_
#define BASE_CUDA_EMULATED_RUNTIME_ADDRESS_SPACE_H_

#include <cstddef>

namespace emulated_cuda {

struct AddressRange {
  // Size for each device, so that a world with few frees never runs out.
  static constexpr std::size_t kBytes = std::size_t{8} << 30;

  char* base = nullptr;
  // Number of bytes that this world uses; they contain poison or a block.
  std::size_t touched_bytes = 0;
};

// Reserves the range at the first call. Ends the program if that fails.
AddressRange& AddressesOf(int device);

// Returns whether the device's memory is accessible now.
bool IsOpen(int device);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_ADDRESS_SPACE_H_
