// What vector instructions this CPU has, as Troupe compiles its loops for them:
// once for each, with the choice made when the program runs.
//
//   if (BestCpuIsa() >= CpuIsa::kAvx2) loops = &Avx2Loops();
//
// Threads: any.

#ifndef BASE_CPU_ISA_H_
#define BASE_CPU_ISA_H_

namespace troupe::base {

// Each has the instructions of those before it.
enum class CpuIsa {
  kPlain,   // what every CPU of the architecture has
  kAvx2,    // and FMA and F16C
  kAvx512,  // F, BW, DQ and VL
};

// The best one of this CPU.
CpuIsa BestCpuIsa();

}  // namespace troupe::base

#endif  // BASE_CPU_ISA_H_
