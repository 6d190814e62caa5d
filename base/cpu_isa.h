// What vector instructions this CPU has, as Troupe compiles its loops for them:
// once for each, with the choice made when the program runs.
//
//   if (BestCpuIsa() >= CpuIsa::kAvx2) loops = &Avx2Loops();
//
// Threads: any.

#ifndef BASE_CPU_ISA_H_
#define BASE_CPU_ISA_H_

#include <cstdint>

namespace troupe::base {

// Each has the instructions of those before it. What they are is what the
// compiler is told in base/simd/isa.bzl.
enum class CpuIsa {
  kPlain,   // what every CPU of the architecture has
  kAvx2,    // AVX2, FMA and F16C
  kAvx512,  // AVX-512 F, BW, DQ and VL
};

// The best one of this CPU, whose registers the operating system saves.
CpuIsa BestCpuIsa();

// Whether this CPU multiplies pairs of bf16 in AVX-512 (AVX512-BF16: Zen 4,
// Cooper Lake, Sapphire Rapids and later). Bits of f32 do not depend on it.
bool CpuMultipliesBF16();

// Whether it multiplies tiles of bf16 besides (AMX-BF16: Sapphire Rapids and
// later), which a library then takes, with other last bits.
bool CpuMultipliesBF16Tiles();

// What an x86 CPU and the operating system say about themselves.
struct CpuidWords {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_edx = 0;
  std::uint32_t leaf7_1_eax = 0;  // the second page of leaf 7
  // Which registers the operating system saves: XGETBV(0), or 0 where there is
  // no such instruction (bit OSXSAVE of leaf1_ecx).
  std::uint64_t xcr0 = 0;
};

// The choice of BestCpuIsa(). Each feature is asked for by itself: a virtual
// machine may hide any of them.
CpuIsa CpuIsaOf(const CpuidWords& words);
bool MultipliesBF16(const CpuidWords& words);
bool MultipliesBF16Tiles(const CpuidWords& words);

}  // namespace troupe::base

#endif  // BASE_CPU_ISA_H_
