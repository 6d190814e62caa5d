// Who called the API: return addresses, for texts and for ThreadSanitizer's
// reports, which show where an operation was enqueued.
//
//     CallSite site = CallSite::Above(__builtin_frame_address(0));
//     std::string text = site.ToString();  // "Train < main"
//
// Only the innermost caller is known in builds without frame pointers, so the
// others are looked for under sanitizers only, whose builds have them.

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

  // The names of the two innermost callers, where the linker exports them, else
  // addresses for addr2line.
  std::string ToString() const;
};

// The function that an address belongs to, as above.
std::string SymbolAt(const void* address);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_CALL_SITE_H_
