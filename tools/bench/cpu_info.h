// The CPU that a benchmark runs on: its name and the peak rate of one core.
//
//   std::cout << DescribeCpu();
//   // "AMD EPYC, 2 cores; f32 peak 235 GFLOP/s a core, bf16 peak 470 GFLOP/s"
//   double peak = F32PeakGflops();
//
// A peak is measured in about 5 ms in the caller's thread: fused multiply-adds
// in registers, with the widest instructions of the CPU (AVX-512, AVX2, plain).

#ifndef TOOLS_BENCH_CPU_INFO_H_
#define TOOLS_BENCH_CPU_INFO_H_

#include <optional>
#include <string>

namespace troupe::bench {

// Returns the CPU's name in /proc/cpuinfo, or "unknown CPU" if it has none.
std::string CpuName();
int CpuCores();

// Measures the peak of one core, in 1e9 operations per second; a multiply-add
// counts as two.
double F32PeakGflops();
// Measures the same with vdpbf16ps; none if the CPU lacks that instruction.
std::optional<double> Bf16PeakGflops();

std::string DescribeCpu();

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_CPU_INFO_H_
