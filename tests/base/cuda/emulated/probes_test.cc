// Tests the semantics of the device language, with the same expectations on the
// emulation and on a GPU.

#include "tests/base/cuda/emulated/probes.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "tests/base/cuda/emulated/test_device.h"

namespace emulated_cuda_test {
namespace {

class ProbesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!WhyNoDevice().empty()) GTEST_SKIP() << WhyNoDevice();
  }
};

void ExpectOk(const absl::Status& launched) {
  const absl::Status status = WaitFor(launched);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ProbesTest, Shuffles) {
  EXPECT_EQ(CompareRuns([] {
              auto out = Poisoned<unsigned>(kShuffleProbes * 32);
              ExpectOk(ProbeShuffles(out.data()));
              for (unsigned lane = 0; lane < 32; ++lane) {
                const unsigned want[kShuffleProbes] = {
                    105, 100 + (lane + 1) % 32, 100 + lane / 8 * 8 + 3,
                    100 + (lane < 3 ? lane : lane - 3),
                    100 + (lane % 16 < 3 ? lane : lane - 3),
                    100 + (lane > 28 ? lane : lane + 3),
                    100 + (lane % 16 > 12 ? lane : lane + 3), 100 + (lane ^ 16),
                    // Only earlier segments can be read.
                    100 + ((lane ^ 12) / 8 > lane / 8 ? lane : lane ^ 12),
                    lane ^ 3, lane ^ 1};
                for (unsigned row = 0; row < kShuffleProbes; ++row) {
                  EXPECT_EQ(out[row * 32 + lane], want[row])
                      << "row " << row << ", lane " << lane;
                }
              }
              return out;
            }),
            "");
}

TEST_F(ProbesTest, VotesAndReductions) {
  EXPECT_EQ(CompareRuns([] {
              auto out = Poisoned<unsigned>(kVoteProbes * 32);
              ExpectOk(ProbeVotes(out.data()));
              for (unsigned lane = 0; lane < 32; ++lane) {
                const unsigned want[kVoteProbes] = {
                    0x49249249u,
                    1,
                    0,
                    1,
                    0,
                    100 * 32 + 496,
                    static_cast<unsigned>(5 - 31),
                    0xFFFFFFFFu,
                    0xF0u,
                    31,
                    0xFFFFFFFFu,
                    lane < 10   ? 0x3FFu
                    : lane < 20 ? 0xFFC00u
                    : lane < 30 ? 0x3FF00000u
                                : 0xC0000000u};
                for (unsigned row = 0; row < kVoteProbes; ++row) {
                  EXPECT_EQ(out[row * 32 + lane], want[row])
                      << "row " << row << ", lane " << lane;
                }
              }
              return out;
            }),
            "");
}

TEST_F(ProbesTest, PartialMasks) {
  EXPECT_EQ(CompareRuns([] {
              auto out = Poisoned<int>(64);
              ExpectOk(ProbePartialMasks(out.data()));
              for (int t = 0; t < 64; ++t) {
                const int lane = t % 32;
                EXPECT_EQ(out[static_cast<std::size_t>(t)],
                          120000 + (lane < 16 ? 120 : 2 + (lane & ~3)))
                    << t;
              }
              return out;
            }),
            "");
}

TEST_F(ProbesTest, ThreadsThatReturnCountAsArrived) {
  for (const int living : {256, 200, 33, 32, 1}) {
    EXPECT_EQ(CompareRuns([&] {
                DeviceVector<int> out(256, -1);
                ExpectOk(ProbeEarlyExit(living, out.data()));
                for (int t = 0; t < 256; ++t) {
                  EXPECT_EQ(out[static_cast<std::size_t>(t)],
                            t < living ? living : -1);
                }
                return out;
              }),
              "")
        << living;
  }
}

TEST_F(ProbesTest, BlockVotes) {
  for (const int true_count : {0, 100, 256}) {
    EXPECT_EQ(CompareRuns([&] {
                auto out = Poisoned<int>(3);
                ExpectOk(ProbeBlockVotes(true_count, out.data()));
                EXPECT_EQ(out, (DeviceVector<int>{true_count, true_count == 256,
                                                  true_count > 0}));
                return out;
              }),
              "");
  }
}

TEST_F(ProbesTest, Indices) {
  auto out = Poisoned<int>(12 * 24);
  ExpectOk(ProbeIndices(out.data()));
  for (int i = 0; i < 12 * 24; ++i) {
    EXPECT_EQ(out[static_cast<std::size_t>(i)], i / 24 * 1000 + i % 24);
  }
}

TEST_F(ProbesTest, Numbers) {
  auto out = Poisoned<float>(kNumberProbes);
  ExpectOk(ProbeNumbers(out.data()));
  const float want[kNumberProbes] = {1,
                                     -2.5f,
                                     0.0999755859375f,
                                     65504,
                                     1.5f,
                                     0.5f,
                                     7,
                                     1.00000012f,
                                     1.25f,
                                     11,
                                     0.00048828125f,
                                     0.00048834085f,
                                     5.55111512e-17f,
                                     0.333333343f,
                                     0.833333373f,
                                     1,
                                     1.41421354f,
                                     1};
  for (std::size_t i = 0; i < kNumberProbes; ++i) {
    EXPECT_EQ(out[i], want[i]) << i;
  }
}

TEST_F(ProbesTest, Integers) {
  auto out = Poisoned<long long>(kIntegerProbes);
  ExpectOk(ProbeIntegers(out.data()));
  const long long want[kIntegerProbes] = {16,
                                          3132,
                                          6364,
                                          400,
                                          34,
                                          3,
                                          3,
                                          204,
                                          -2,
                                          2147483647,
                                          -9223372036854775807 - 1,
                                          0x3FF0000000000000};
  for (std::size_t i = 0; i < kIntegerProbes; ++i) {
    EXPECT_EQ(out[i], want[i]) << i;
  }
}

TEST_F(ProbesTest, KernelsTakeFunctionObjects) {
  DeviceVector<float> x(100, 3.0f);
  ExpectOk(ProbeFunctor(100, 2.0f, x.data()));
  EXPECT_EQ(x, DeviceVector<float>(100, 6.0f));
}

TEST_F(ProbesTest, IntegerAtomicsAndDynamicSharedMemory) {
  DeviceVector<int> keys(1000);
  DeviceVector<unsigned> want(16, 0);
  for (int i = 0; i < 1000; ++i) {
    const int key = i * i % 13;
    keys[static_cast<std::size_t>(i)] = key;
    ++want[static_cast<std::size_t>(key)];
  }
  EXPECT_EQ(CompareRuns([&] {
              DeviceVector<unsigned> bins(16, 0);
              DeviceVector<int> largest(1, -1);
              ExpectOk(ProbeHistogram(1000, keys.data(), bins.data(),
                                      largest.data()));
              EXPECT_EQ(largest[0], 12);
              EXPECT_EQ(bins, want);
              return bins;
            }),
            "");
}

TEST_F(ProbesTest, TheLastBlockAddsUp) {
  DeviceVector<float> x(3000);
  std::iota(x.begin(), x.end(), 0.0f);
  EXPECT_EQ(CompareRuns([&] {
              auto partial = Poisoned<float>(8);
              auto sum = Poisoned<float>(1);
              DeviceVector<unsigned> ticket(1, 0);
              ExpectOk(ProbeLastBlock(3000, x.data(), partial.data(),
                                      ticket.data(), sum.data()));
              EXPECT_EQ(sum[0], 3000.0f * 2999 / 2);
              return sum;
            }),
            "");
}

}  // namespace
}  // namespace emulated_cuda_test
