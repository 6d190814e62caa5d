#include "tools/bench/cpu_info.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::bench {
namespace {

// Number of independent sums: enough to hide the latency of a multiply-add on
// two ports.
constexpr int kSums = 12;
constexpr std::int64_t kSteps = 40000;
constexpr int kTries = 7;

// The loops return a value that depends on all sums, so that the compiler does
// not remove any.

float PlainLoop() {
  float sums[kSums] = {};
  volatile float start = 0.5f;
  const float x = start;
  for (std::int64_t i = 0; i < kSteps; ++i) {
    for (float& sum : sums) sum = sum * x + x;
  }
  float all = 0;
  for (float sum : sums) all += sum;
  return all;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float Avx2Loop() {
  __m256 sums[kSums];
  volatile float start = 0.5f;
  const __m256 x = _mm256_set1_ps(start);
  for (__m256& sum : sums) sum = x;
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (int s = 0; s < kSums; ++s) sums[s] = _mm256_fmadd_ps(sums[s], x, x);
  }
  __m256 all = x;
  for (const __m256& sum : sums) all = _mm256_add_ps(all, sum);
  return _mm256_cvtss_f32(all);
}

__attribute__((target("avx512f"))) float Avx512Loop() {
  __m512 sums[kSums];
  volatile float start = 0.5f;
  const __m512 x = _mm512_set1_ps(start);
  for (__m512& sum : sums) sum = x;
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (int s = 0; s < kSums; ++s) sums[s] = _mm512_fmadd_ps(sums[s], x, x);
  }
  __m512 all = x;
  for (const __m512& sum : sums) all = _mm512_add_ps(all, sum);
  return _mm512_cvtss_f32(all);
}

__attribute__((target("avx512f,avx512bf16"))) float Bf16Loop() {
  __m512 sums[kSums];
  volatile int start = 0x3f003f00;  // two bf16 of 0.5
  const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(start));
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (int s = 0; s < kSums; ++s) sums[s] = _mm512_dpbf16_ps(sums[s], x, x);
  }
  __m512 all = _mm512_setzero_ps();
  for (const __m512& sum : sums) all = _mm512_add_ps(all, sum);
  return _mm512_cvtss_f32(all);
}
#endif

// Returns the best rate of kTries runs of the loop, each of whose instructions
// counts as `operations`.
double Gflops(float (*loop)(), int operations) {
  double best = 0;
  volatile float sink = 0;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    sink = loop();
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    best = std::max(best, kSums * kSteps * operations / seconds.count() / 1e9);
  }
  static_cast<void>(sink);
  return best;
}

}  // namespace

std::string CpuName() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (!absl::StartsWith(line, "model name")) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) break;
    return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "unknown CPU";
}

int CpuCores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

double F32PeakGflops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return Gflops(Avx512Loop, 32);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return Gflops(Avx2Loop, 16);
  }
#endif
  return Gflops(PlainLoop, 2);
}

std::optional<double> Bf16PeakGflops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) return Gflops(Bf16Loop, 64);
#endif
  return std::nullopt;
}

std::string DescribeCpu() {
  const std::optional<double> bf16 = Bf16PeakGflops();
  return absl::StrFormat(
      "%s, %d cores; f32 peak %.0f GFLOP/s a core, bf16 peak %s", CpuName(),
      CpuCores(), F32PeakGflops(),
      bf16 ? absl::StrFormat("%.0f GFLOP/s", *bf16) : "none");
}

}  // namespace troupe::bench
