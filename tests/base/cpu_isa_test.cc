#include "base/cpu_isa.h"

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

// CPUID words of an Intel Emerald Rapids under Linux.
constexpr CpuidWords kServer = {0xfffab223, 0xf1bfbfab, 0xffdd4432, 0x1c30,
                                0x602e7};

TEST(CpuIsa, OfACpuThatHasAll) {
  EXPECT_EQ(CpuIsaOf(kServer), CpuIsa::kAvx512);
  EXPECT_EQ(CpuIsaOf(CpuidWords()), CpuIsa::kPlain);
}

CpuIsa Without(std::uint32_t leaf1_ecx, std::uint32_t leaf7_ebx,
               std::uint64_t xcr0) {
  CpuidWords words = kServer;
  words.leaf1_ecx &= ~leaf1_ecx;
  words.leaf7_ebx &= ~leaf7_ebx;
  words.xcr0 &= ~xcr0;
  return CpuIsaOf(words);
}

// A virtual machine may hide any one feature.
TEST(CpuIsa, EachFeatureOfAvx2IsAskedFor) {
  for (int bit : {12, 27, 28, 29}) {  // FMA, OSXSAVE, AVX, F16C
    EXPECT_EQ(Without(1u << bit, 0, 0), CpuIsa::kPlain) << bit;
  }
  EXPECT_EQ(Without(0, 1u << 5, 0), CpuIsa::kPlain);
}

TEST(CpuIsa, EachFeatureOfAvx512IsAskedFor) {
  for (int bit : {16, 17, 30, 31}) {  // F, DQ, BW, VL
    EXPECT_EQ(Without(0, 1u << bit, 0), CpuIsa::kAvx2) << bit;
  }
}

TEST(CpuIsa, RegistersThatTheSystemDoesNotSaveAreNotUsed) {
  for (int bit : {1, 2}) {  // XMM, YMM
    EXPECT_EQ(Without(0, 0, 1u << bit), CpuIsa::kPlain) << bit;
  }
  for (int bit : {5, 6, 7}) {  // masks, ZMM
    EXPECT_EQ(Without(0, 0, 1u << bit), CpuIsa::kAvx2) << bit;
  }
}

TEST(CpuIsa, ProductsOfBF16AreAskedForByThemselves) {
  EXPECT_TRUE(MultipliesBF16(kServer));
  CpuidWords words = kServer;
  words.leaf7_1_eax &= ~(1u << 5);
  EXPECT_FALSE(MultipliesBF16(words));
  EXPECT_EQ(CpuIsaOf(words), CpuIsa::kAvx512);
  words = kServer;
  words.leaf7_ebx &= ~(1u << 16);  // AVX512F hidden
  EXPECT_FALSE(MultipliesBF16(words));
}

TEST(CpuIsa, TilesAreAskedForByThemselves) {
  EXPECT_TRUE(MultipliesBF16Tiles(kServer));
  CpuidWords words = kServer;
  words.leaf7_edx &= ~(1u << 22);  // AMX-BF16 hidden
  EXPECT_FALSE(MultipliesBF16Tiles(words));
  EXPECT_TRUE(MultipliesBF16(words));
  words = kServer;
  words.xcr0 &= ~std::uint64_t{0x40000};  // tiles are not saved
  EXPECT_FALSE(MultipliesBF16Tiles(words));
  words = kServer;
  words.leaf7_1_eax = 0;
  EXPECT_FALSE(MultipliesBF16Tiles(words));
}

#if defined(__x86_64__)
TEST(CpuIsa, OfThisCpuIsWhatTheCompilersLibrarySays) {
  __builtin_cpu_init();
  if (BestCpuIsa() >= CpuIsa::kAvx2) {
    EXPECT_TRUE(__builtin_cpu_supports("avx2"));
    EXPECT_TRUE(__builtin_cpu_supports("fma"));
  }
  EXPECT_EQ(BestCpuIsa() == CpuIsa::kAvx512,
            __builtin_cpu_supports("avx512f") &&
                __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl"));
  EXPECT_EQ(CpuMultipliesBF16(), BestCpuIsa() == CpuIsa::kAvx512 &&
                                     __builtin_cpu_supports("avx512bf16"));
}
#endif

}  // namespace
}  // namespace troupe::base
