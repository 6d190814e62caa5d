#include "base/cpu_isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace troupe::base {
namespace {

#if defined(__x86_64__)
// GCC 12's __builtin_cpu_supports() does not know F16C: CPUID leaf 1, ECX.
bool HasF16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

CpuIsa AskTheCpu() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("fma") && HasF16c();
  if (avx2 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq")) {
    return CpuIsa::kAvx512;
  }
  if (avx2) return CpuIsa::kAvx2;
#endif
  return CpuIsa::kPlain;
}

}  // namespace

CpuIsa BestCpuIsa() {
  // Asking takes microseconds in a virtual machine.
  static const CpuIsa best = AskTheCpu();
  return best;
}

}  // namespace troupe::base
