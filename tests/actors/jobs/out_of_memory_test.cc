// A job whose device runs out of memory ends with that error, whatever the
// memory was for.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "actors/job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "tests/actors/test_job.h"
#include "tests/nn/testing/limited_memory.h"

namespace troupe::actors {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// Returns LeNet with tensors from `memory`; it evaluates and saves checkpoints.
JobSpec LeNetIn(std::shared_ptr<nn::LimitedMemory> memory,
                const std::string& folder) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/2);
  spec.checkpoint.dir = FreshFolder(folder);
  spec.kernels = [memory] {
    nn::CpuKernelOptions options;
    options.memory = memory;
    return nn::CreateCpuKernels(options);
  };
  return spec;
}

TEST(OutOfMemoryTest, EveryBlockThatIsMissingEndsTheJobWithThatError) {
  auto enough = std::make_shared<nn::LimitedMemory>();
  ASSERT_TRUE(RunJob(LeNetIn(enough, "enough")).ok());
  const std::int64_t blocks = enough->blocks();
  ASSERT_GT(blocks, 30);
  std::set<std::string> seen;
  for (std::int64_t k = 0; k < blocks; ++k) {
    auto memory = std::make_shared<nn::LimitedMemory>();
    memory->blocks_max = k;
    const absl::Status status = RunJob(LeNetIn(memory, "short")).status();
    // If the writer of the checkpoint frees a block in time, that is reused,
    // and no allocation fails.
    if (memory->refusals() == 0) {
      EXPECT_TRUE(status.ok()) << k << ": " << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted)
        << k << " of " << blocks << " blocks: " << status;
    const std::string message(status.message());
    EXPECT_THAT(message,
                ContainsRegex("rank 0, compute: .*cpu:0 has no memory for"));
    seen.insert(message.substr(0, message.find(": cpu:0")));
  }
  EXPECT_GT(seen.size(), 10u);
  // Allocations of all kinds have failed; these are some of them.
  const std::string all = testing::PrintToString(seen);
  EXPECT_THAT(all, HasSubstr("parameters: f32"));
  EXPECT_THAT(all, HasSubstr("momentum_buffer: f32"));
  EXPECT_THAT(all, HasSubstr("in module 0: conv2d: f32"));
  EXPECT_THAT(all, HasSubstr("backward of "));
  EXPECT_THAT(all, HasSubstr("a copy of "));
}

TEST(OutOfMemoryTest, TheErrorNamesWhatHoldsTheMemory) {
  auto enough = std::make_shared<nn::LimitedMemory>();
  ASSERT_TRUE(RunJob(LeNetIn(enough, "enough")).ok());
  auto memory = std::make_shared<nn::LimitedMemory>();
  memory->bytes_max = enough->bytes_peak() / 2;
  const absl::Status status = RunJob(LeNetIn(memory, "half")).status();
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex("micro-batch 0: .*The rank's memory: .*activations "
                            "and all else [0-9.]+ [KM]iB.*momentum_buffer "));
}

TEST(OutOfMemoryTest, WhatIsCachedIsGivenBackFirst) {
  // No checkpoints: their writer frees its blocks on another thread, so that
  // the peak would differ from run to run.
  const auto lenet_in = [](std::shared_ptr<nn::LimitedMemory> memory) {
    JobSpec spec = LeNetIn(std::move(memory), "unused");
    spec.checkpoint = CheckpointOptions();
    return spec;
  };
  auto enough = std::make_shared<nn::LimitedMemory>();
  ASSERT_TRUE(RunJob(lenet_in(enough)).ok());
  // The memory holds all blocks that are in use at one time, but not all that
  // are cached as well.
  auto memory = std::make_shared<nn::LimitedMemory>();
  memory->bytes_max = enough->bytes_peak() - 1;
  const absl::StatusOr<JobResult> result = RunJob(lenet_in(memory));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(memory->refusals(), 0);
}

}  // namespace
}  // namespace troupe::actors
