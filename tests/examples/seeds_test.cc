// Runs the examples with a counterpart of PyTorch in one thread, where a seed
// chooses how their ranks interleave. Each has a check of its own, and throws.
// pytorch_examples.h has their sources, each in a namespace of its own.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/examples/pytorch_examples.h"
#include "troupe/simulate.h"

namespace troupe_examples {
namespace {

class SeedsTest : public testing::Test {
 protected:
  // The programs write their files to the present folder.
  void SetUp() override { std::filesystem::current_path(testing::TempDir()); }

  static void ExpectRuns(const troupe::Program& program, int ranks, int seeds) {
    troupe::SpawnOptions options;
    options.ranks = ranks;
    for (int seed = 0; seed < seeds; ++seed) {
      const troupe::SimulatedRun run = troupe::Simulate(
          program, options, {static_cast<std::uint64_t>(seed)});
      EXPECT_TRUE(run.status.ok()) << "seed " << seed << ": " << run.status;
    }
  }

  // Set before the folder is another one.
  static const std::string runfiles_;
};
const std::string SeedsTest::runfiles_ = std::filesystem::current_path();

TEST_F(SeedsTest, Messages) {
  ExpectRuns(point_to_point::RunBlocking, 2, 20);
  ExpectRuns(point_to_point::RunNonblocking, 2, 20);
  ExpectRuns(collectives::Run, 4, 20);
}

TEST_F(SeedsTest, Gradients) {
  ExpectRuns(average_gradients::Run, 2, 1);
  ExpectRuns(ddp_toy::Run, 2, 20);
  ExpectRuns(elastic_ddp::Run, 4, 20);
  ExpectRuns(uneven_inputs::Run, 2, 20);
}

TEST_F(SeedsTest, LoopsOfTheirOwn) {
  ExpectRuns(gan::Run, 2, 1);
  ExpectRuns(gpt_loop::Run, 2, 1);
  ExpectRuns(policy_gradient::Run, 2, 1);
  ExpectRuns(deepspeed_engine::Run, 2, 1);
}

TEST_F(SeedsTest, Pipelines) {
  troupe::SpawnOptions options;
  options.ranks = 2;
  options.mesh = troupe::pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  const troupe::SimulatedRun run = troupe::Simulate(
      [](troupe::Rank& rank) { pipeline_resnet50::Run(rank, 64, 8); }, options,
      {/*seed=*/1});
  EXPECT_TRUE(run.status.ok()) << run.status;
  options.ranks = 4;
  options.mesh = troupe::pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const troupe::SimulatedRun hybrid =
        troupe::Simulate(hybrid_loop::Run, options, {seed});
    EXPECT_TRUE(hybrid.status.ok()) << "seed " << seed << ": " << hybrid.status;
  }
}

TEST_F(SeedsTest, Devices) {
  troupe::SpawnOptions options;
  options.devices = 4;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const troupe::SimulatedRun run =
        troupe::Simulate(data_parallel::Run, options, {seed});
    EXPECT_TRUE(run.status.ok()) << "seed " << seed << ": " << run.status;
  }
}

TEST_F(SeedsTest, Checkpoints) { ExpectRuns(ddp_checkpoint::Run, 2, 3); }

TEST_F(SeedsTest, Digits) {
  ExpectRuns([](troupe::Rank& rank) { ddp_mnist::Run(rank, /*folder=*/""); }, 2,
             2);
}

TEST_F(SeedsTest, Cifar) {
  const std::string folder = testing::TempDir() + "/cifar";
  std::filesystem::remove_all(folder);
  const std::string command = "python3 " + runfiles_ +
                              "/tests/examples/cifar_files.py " + folder +
                              " 64 100";
  ASSERT_EQ(std::system(command.c_str()), 0);
  ExpectRuns([&](troupe::Rank& rank) { ddp_cifar::Run(rank, folder); }, 2, 2);
}

}  // namespace
}  // namespace troupe_examples
