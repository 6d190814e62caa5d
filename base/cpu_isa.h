// Detects the vector instructions of this CPU. Troupe compiles its loops for
// each set, and chooses when the program runs.
//
//   if (BestCpuIsa() >= CpuIsa::kAvx2) loops = &Avx2Loops();
//
// Threads: any.

#ifndef BASE_CPU_ISA_H_
#define BASE_CPU_ISA_H_

#include <cstdint>

namespace troupe::base {

// Each set includes the instructions of those before it. The compiler's flags
// for each are in base/simd/isa.bzl.
enum class CpuIsa {
  kPlain,   // the base of the architecture, which every CPU has
  kAvx2,    // AVX2, FMA and F16C
  kAvx512,  // AVX-512 F, BW, DQ and VL
};

// Returns the best set of this CPU whose registers the operating system saves.
CpuIsa BestCpuIsa();

// Returns whether this CPU multiplies pairs of bf16 in AVX-512 (AVX512-BF16:
// Zen 4, Cooper Lake, Sapphire Rapids and later). Results in f32 do not depend
// on it.
bool CpuMultipliesBF16();

// Returns whether it also multiplies tiles of bf16 (AMX-BF16: Sapphire Rapids
// and later); a library then uses them, and differs in the last bits.
bool CpuMultipliesBF16Tiles();

// Feature bits of an x86 CPU and the operating system.
struct CpuidWords {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_edx = 0;
  std::uint32_t leaf7_1_eax = 0;  // the second page of leaf 7
  // Registers that the operating system saves: XGETBV(0), or 0 if that
  // instruction does not exist (bit OSXSAVE of leaf1_ecx).
  std::uint64_t xcr0 = 0;
};

// Makes the choice of BestCpuIsa(). Each feature is tested by itself: a virtual
// machine may hide any of them.
CpuIsa CpuIsaOf(const CpuidWords& words);
bool MultipliesBF16(const CpuidWords& words);
bool MultipliesBF16Tiles(const CpuidWords& words);

}  // namespace troupe::base

#endif  // BASE_CPU_ISA_H_
