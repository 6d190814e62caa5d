#include "tools/bench/gpu_kernels/kernel_case.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(KernelCase, ALineSaysShapesWorkAndBytes) {
  const auto linear = ParseKernelCase("linear bw 8 16 32");
  ASSERT_TRUE(linear.ok()) << linear.status();
  EXPECT_EQ(linear->way, KernelWay::kBackwardWeight);
  EXPECT_EQ(linear->flops, 2.0 * 8 * 16 * 32);
  EXPECT_EQ(linear->Bytes(nn::DType::kF32), 4.0 * (8 * 16 + 32 * 16 + 8 * 32));

  const auto conv = ParseKernelCase("conv f 2 8 3 4 3 2 1");
  ASSERT_TRUE(conv.ok()) << conv.status();
  EXPECT_EQ(conv->P(), 4);
  EXPECT_EQ(conv->flops, 2.0 * (2 * 4 * 4 * 4) * (3 * 3 * 3));
  EXPECT_EQ(conv->Bytes(nn::DType::kBF16),
            2.0 * (2 * 8 * 8 * 3 + 4 * 3 * 3 * 3 + 2 * 4 * 4 * 4));
}

TEST(KernelCase, OtherLinesAreRefusedWithWhatIsRight) {
  for (const char* line :
       {"", "linear", "linear f 8 16", "linear x 8 16 32", "linear f 0 1 1",
        "linear f -1 1 1", "linear f 8 16 2000000", "conv f 2 8 3 4 3 0 1",
        "conv f 2 8 3 4 3 1 -1", "conv f 2 2 3 4 7 1 1", "pool f 1 2 3",
        "linear f 8 16 99999999999999999999"}) {
    const auto parsed = ParseKernelCase(line);
    EXPECT_FALSE(parsed.ok()) << line;
    EXPECT_THAT(parsed.status().message(), HasSubstr("linear f|bd|bw N K M"))
        << line;
  }
}

TEST(KernelCase, BothNetworksAreThereWithTheirWork) {
  std::set<std::string> names, lines;
  double gpt2_flops = 0;
  int resnet = 0;
  for (const KernelCase& c : KernelCases()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    EXPECT_TRUE(lines.insert(c.line).second) << c.line;
    if (c.name.rfind("gpt2", 0) == 0 && c.way == KernelWay::kForward) {
      gpt2_flops += c.flops;
    }
    if (c.name.rfind("resnet50", 0) == 0) ++resnet;
  }
  // The four products of a layer and the head have 7.08M and 38.6M weights.
  EXPECT_DOUBLE_EQ(gpt2_flops, 2.0 * 8192 * (12 * 768 * 768 + 768 * 50304));
  EXPECT_EQ(resnet, 3 * 23);  // its distinct convolutions, three ways
  EXPECT_THAT(TinyKernelCases().front().name, StartsWith("tiny"));
}

}  // namespace
}  // namespace troupe::bench
