#include "base/cuda/emulated/runtime/call_site.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/cuda/emulated/runtime/sanitizers.h"

namespace emulated_cuda {
namespace {

// Limit on the distance of a caller's frame: a word further away marks the end
// of the stack.
constexpr std::uintptr_t kFrameBytesMax = std::uintptr_t{1} << 18;
// The first page contains no code.
constexpr std::uintptr_t kFirstCode = 4096;

int DepthKnown() {
  return UnderThreadSanitizer() || UnderAddressSanitizer() ? CallSite::kDepthMax
                                                           : 1;
}

}  // namespace

CallSite CallSite::Above(const void* frame) {
  CallSite site;
  const int depth_max = DepthKnown();
  auto at = reinterpret_cast<std::uintptr_t>(frame);
  while (site.depth < depth_max) {
    // A function's prologue stores the caller's frame and the return address.
    const auto* const words = reinterpret_cast<const std::uintptr_t*>(at);
    const std::uintptr_t caller = words[0];
    if (words[1] < kFirstCode) break;
    site.return_addresses[site.depth++] = reinterpret_cast<void*>(words[1]);
    if (caller <= at || caller - at > kFrameBytesMax || caller % 8 != 0) break;
    at = caller;
  }
  return site;
}

std::string CallSite::ToString() const {
  std::string text;
  for (int i = 0; i < depth && i < 2; ++i) {
    if (i > 0) text += " < ";
    // The return address itself may belong to the next function.
    text += SymbolAt(static_cast<const char*>(return_addresses[i]) - 1);
  }
  return text.empty() ? "an unknown place" : text;
}

std::string SymbolAt(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0) return "?";
  if (info.dli_sname == nullptr) {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) -
                        reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    char text[40];
    std::snprintf(text, sizeof text, "program+0x%zx",
                  static_cast<std::size_t>(offset));
    return text;
  }
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr),
      std::free);
  return plain ? plain.get() : info.dli_sname;
}

}  // namespace emulated_cuda
