// The CPU that a benchmark runs on: its name and what one core can do at most.
//
//   std::cout << DescribeCpu();
//   // "AMD EPYC, 2 cores; f32 peak 235 GFLOP/s a core, bf16 peak 470 GFLOP/s"
//   double peak = F32PeakGflops();
//
// Peaks are measured, 5 ms or so each: fused multiply-adds in registers, by the
// widest instructions there are (AVX-512, AVX2, plain), in the caller's thread.

#ifndef TOOLS_BENCH_CPU_INFO_H_
#define TOOLS_BENCH_CPU_INFO_H_

#include <optional>
#include <string>

namespace troupe::bench {

// The CPU's name in /proc/cpuinfo; "unknown CPU" where it has none.
std::string CpuName();
int CpuCores();

// 1e9 operations a second of one core; a multiply-add counts as two.
double F32PeakGflops();
// Measured with vdpbf16ps, where the CPU has that instruction.
std::optional<double> Bf16PeakGflops();

std::string DescribeCpu();

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_CPU_INFO_H_
