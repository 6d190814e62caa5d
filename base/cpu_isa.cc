#include "base/cpu_isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace troupe::base {
namespace {

// Bits of CPUID and XCR0 (Intel SDM, volume 2, CPUID; volume 1, 13.3).
constexpr std::uint32_t kFma = 1u << 12, kOsXsave = 1u << 27;
constexpr std::uint32_t kAvx = 1u << 28, kF16c = 1u << 29;
constexpr std::uint32_t kAvx2 = 1u << 5, kAvx512F = 1u << 16;
constexpr std::uint32_t kAvx512Dq = 1u << 17, kAvx512Bw = 1u << 30;
constexpr std::uint32_t kAvx512Vl = 1u << 31;
constexpr std::uint32_t kAvx512BF16 = 1u << 5;
constexpr std::uint32_t kAmxBF16 = 1u << 22, kAmxTile = 1u << 24;
constexpr std::uint64_t kSavesYmm = 0x06;  // XMM and the upper halves
constexpr std::uint64_t kSavesZmm = 0xe6;  // masks, upper halves, 16 more
constexpr std::uint64_t kSavesTiles = 0x60000;

// Returns whether all of `bits` are set.
template <typename Word>
constexpr bool Has(Word word, Word bits) {
  return (word & bits) == bits;
}

CpuidWords AskTheCpu() {
  CpuidWords words;
#if defined(__x86_64__)
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) words.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    words.leaf7_ebx = ebx;
    words.leaf7_edx = edx;
    // EAX is the number of the last page.
    if (eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) {
      words.leaf7_1_eax = eax;
    }
  }
  if (Has(words.leaf1_ecx, kOsXsave)) {
    std::uint32_t low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.xcr0 = (static_cast<std::uint64_t>(high) << 32) | low;
  }
#endif
  return words;
}

}  // namespace

CpuIsa CpuIsaOf(const CpuidWords& words) {
  if (!Has(words.leaf1_ecx, kOsXsave | kAvx | kFma | kF16c) ||
      !Has(words.leaf7_ebx, kAvx2) || !Has(words.xcr0, kSavesYmm)) {
    return CpuIsa::kPlain;
  }
  if (!Has(words.leaf7_ebx, kAvx512F | kAvx512Dq | kAvx512Bw | kAvx512Vl) ||
      !Has(words.xcr0, kSavesZmm)) {
    return CpuIsa::kAvx2;
  }
  return CpuIsa::kAvx512;
}

bool MultipliesBF16(const CpuidWords& words) {
  return CpuIsaOf(words) >= CpuIsa::kAvx512 &&
         Has(words.leaf7_1_eax, kAvx512BF16);
}

bool MultipliesBF16Tiles(const CpuidWords& words) {
  return MultipliesBF16(words) && Has(words.leaf7_edx, kAmxBF16 | kAmxTile) &&
         Has(words.xcr0, kSavesTiles);
}

CpuIsa BestCpuIsa() {
  // CPUID takes microseconds in a virtual machine.
  static const CpuIsa best = CpuIsaOf(AskTheCpu());
  return best;
}

bool CpuMultipliesBF16() {
  static const bool multiplies = MultipliesBF16(AskTheCpu());
  return multiplies;
}

bool CpuMultipliesBF16Tiles() {
  static const bool multiplies = MultipliesBF16Tiles(AskTheCpu());
  return multiplies;
}

}  // namespace troupe::base
