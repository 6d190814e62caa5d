#include "tools/bench/ops/op_bench_case.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"

namespace troupe::bench {
namespace {

TEST(OpBenchCaseTest, SmallDefaultCasesRunHereAndInOneDnn) {
  const auto kernels = nn::CreateCpuKernels({});
  int ran = 0;
  for (const std::string& line : DefaultOpBenchLines()) {
    if (absl::StrContains(line, "2236") || absl::StrContains(line, "25m") ||
        absl::StrContains(line, "24998480")) {
      continue;  // hundreds of megabytes
    }
    absl::StatusOr<OpBenchCase> ours = MakeOpBenchCase(line, *kernels);
    ASSERT_TRUE(ours.ok()) << line << ": " << ours.status();
    EXPECT_GT(ours->flops + ours->bytes, 0) << line;
    EXPECT_TRUE(ours->run().ok()) << line;
    absl::StatusOr<OpBenchCase> onednn = MakeOneDnnCase(line, *kernels);
    ASSERT_TRUE(onednn.ok()) << line << ": " << onednn.status();
    if (onednn->run) {
      EXPECT_TRUE(onednn->run().ok()) << line;
    }
    ++ran;
  }
  EXPECT_GT(ran, 50);
}

TEST(OpBenchCaseTest, AnUnknownCaseIsNamed) {
  const auto kernels = nn::CreateCpuKernels({});
  for (const char* line : {"", "linear f 1 2", "dance 3", "step giant"}) {
    const absl::Status status = MakeOpBenchCase(line, *kernels).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_TRUE(absl::StrContains(status.message(), line)) << status;
  }
}

}  // namespace
}  // namespace troupe::bench
