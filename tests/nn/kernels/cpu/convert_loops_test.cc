// The conversions of every instruction set against those of base/half.h, bit
// for bit, NaN and its payload included.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/cpu_isa.h"
#include "base/half.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/loops.h"

namespace troupe::nn::cpu {
namespace {

using Halves = std::vector<std::uint16_t>;
using Floats = std::vector<float>;

std::vector<const Loops*> SetsHere() {
  std::vector<const Loops*> sets = {&PlainLoops()};
  if (base::BestCpuIsa() >= base::CpuIsa::kAvx2) sets.push_back(&Avx2Loops());
  if (base::BestCpuIsa() >= base::CpuIsa::kAvx512) {
    sets.push_back(&Avx512Loops());
  }
  return sets;
}

Halves AllHalves() {
  Halves halves(1 << 16);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    halves[i] = static_cast<std::uint16_t>(i);
  }
  return halves;
}

float FloatOf(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Returns every half of both types, the middle between it and the next, and the
// floats on both sides of either.
Floats EdgeFloats() {
  Floats edges;
  auto add_around = [&](float value) {
    edges.push_back(value);
    if (std::isnan(value)) return;
    edges.push_back(std::nextafter(value, INFINITY));
    edges.push_back(std::nextafter(value, -INFINITY));
  };
  for (std::uint16_t half : AllHalves()) {
    const auto next = static_cast<std::uint16_t>(half + 1);
    const float f16 = base::F32FromF16(half), bf16 = base::F32FromBF16(half);
    add_around(f16);
    add_around(bf16);
    add_around((f16 + base::F32FromF16(next)) / 2);
    add_around((bf16 / 2) + base::F32FromBF16(next) / 2);
    edges.push_back(FloatOf(half * 65537u));  // any bits below the upper ones
  }
  return edges;
}

template <typename T>
void ExpectSameBits(const std::vector<T>& got, const std::vector<T>& want,
                    const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(T)), 0)
        << what << ", element " << i << ": " << got[i] << " and not "
        << want[i];
  }
}

TEST(ConvertLoops, WidenAllHalvesAsBaseDoes) {
  const Halves halves = AllHalves();
  Floats f16, bf16, got(halves.size());
  for (std::uint16_t half : halves) {
    f16.push_back(base::F32FromF16(half));
    bf16.push_back(base::F32FromBF16(half));
  }
  for (const Loops* loops : SetsHere()) {
    loops->widen_f16(halves.size(), halves.data(), got.data());
    ExpectSameBits(got, f16, std::string(loops->name) + " f16");
    loops->widen_bf16(halves.size(), halves.data(), got.data());
    ExpectSameBits(got, bf16, std::string(loops->name) + " bf16");
  }
}

TEST(ConvertLoops, NarrowEdgeFloatsAsBaseDoes) {
  const Floats edges = EdgeFloats();
  Halves f16, bf16, got(edges.size());
  for (float value : edges) {
    f16.push_back(base::F16FromF32(value));
    bf16.push_back(base::BF16FromF32(value));
  }
  for (const Loops* loops : SetsHere()) {
    loops->narrow_f16(edges.size(), edges.data(), got.data());
    ExpectSameBits(got, f16, std::string(loops->name) + " f16");
    loops->narrow_bf16(edges.size(), edges.data(), got.data());
    ExpectSameBits(got, bf16, std::string(loops->name) + " bf16");
  }
}

// Less than a vector is left over: no memory beyond is written.
TEST(ConvertLoops, WriteWhatTheyShould) {
  const Floats x(40, 1.5f);
  const Halves h(40, 0x3e00);
  for (const Loops* loops : SetsHere()) {
    for (std::size_t n = 0; n < 40; ++n) {
      Halves narrow(40, 7);
      Floats wide(40, 7);
      loops->narrow_f16(n, x.data(), narrow.data());
      loops->widen_f16(n, h.data(), wide.data());
      for (std::size_t i = 0; i < 40; ++i) {
        ASSERT_EQ(narrow[i], i < n ? 0x3e00 : 7) << loops->name << " " << n;
        ASSERT_EQ(wide[i], i < n ? 1.5f : 7) << loops->name << " " << n;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::nn::cpu
