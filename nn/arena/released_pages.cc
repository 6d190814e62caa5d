#include "nn/arena/released_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace troupe::nn {

void ReleasePages(const Tensor& elems, bool poisons) {
  TROUPE_CHECK(elems.host_accessible(), "the host has pages of its own memory");
  if (elems.numel() == 0) return;
  if (poisons) {
    std::memset(elems.raw(), 0xff, elems.bytes());
    return;
  }
  static const std::uintptr_t page = sysconf(_SC_PAGESIZE);
  const auto begin = reinterpret_cast<std::uintptr_t>(elems.raw());
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + elems.bytes()) / page * page;
  if (last <= first) return;
  // A failure leaves the memory as it is, which costs memory alone.
  (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace troupe::nn
