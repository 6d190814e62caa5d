// Call stack of an API call: return addresses, for texts and for
// ThreadSanitizer's reports, which show where an operation was enqueued.
//
//     CallSite site = CallSite::Above(__builtin_frame_address(0));
//     std::string text = site.ToString();  // "Train < main"
//
// Builds without frame pointers give the innermost caller only, so the others
// are recorded under sanitizers only, whose builds have frame pointers.

#ifndef BASE_CUDA_EMULATED_RUNTIME_CALL_SITE_H_
#define BASE_CUDA_EMULATED_RUNTIME_CALL_SITE_H_

#include <array>
#include <string>

namespace emulated_cuda {

struct CallSite {
  static constexpr int kDepthMax = 8;

  std::array<void*, kDepthMax> return_addresses{};  // the innermost first
  int depth = 0;

  // `frame` is that of a function compiled with frame pointers.
  static CallSite Above(const void* frame);

  // Returns the names of the two innermost callers, if the linker exports them,
  // otherwise addresses for addr2line.
  std::string ToString() const;
};

// Returns the function that contains an address, in the same form.
std::string SymbolAt(const void* address);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_CALL_SITE_H_
