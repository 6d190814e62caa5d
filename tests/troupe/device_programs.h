// Programs and jobs on devices, and what they give, for tests of several kinds
// of groups.
//
//   EXPECT_TRUE(Spawn(Collectives, GpuRanks(/*ranks=*/2, "cuda")).ok());
//   job_losses = GpuJobLosses(DigitsJob(Rule::kSgd, 2), "cuda", "tree");

#ifndef TESTS_TROUPE_DEVICE_PROGRAMS_H_
#define TESTS_TROUPE_DEVICE_PROGRAMS_H_

#include <string>
#include <vector>

#include "actors/sim/simulation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actors/emulated_job.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"
#include "tests/troupe/digits_loop.h"
#include "troupe/troupe.h"

namespace troupe {

// Calls all collectives, and checks their results.
inline void Collectives(Rank& rank) {
  Group& world = rank.world();
  const auto own = static_cast<float>(rank.number());
  Var sum = rank.Full({3}, own);
  world.AllReduce(sum);
  EXPECT_THAT(ValuesOn(rank, sum), testing::ElementsAre(1, 1, 1));
  Var most = rank.Full({1}, own);
  Work work = world.StartAllReduce(most, ReduceOp::kMax);
  Var beside = rank.Full({1}, own);
  Work second = world.StartBroadcast(beside, /*root=*/1);
  second.Wait();
  work.Wait();
  EXPECT_EQ(most.item(), 1);
  EXPECT_EQ(beside.item(), 1);
  world.Reduce(sum, /*root=*/0);
  if (rank.number() == 0) {
    EXPECT_THAT(ValuesOn(rank, sum), testing::ElementsAre(2, 2, 2));
  }
  const Var all = world.AllGather(rank.Full({2}, own + 5));
  EXPECT_THAT(ValuesOn(rank, all), testing::ElementsAre(5, 5, 6, 6));
  const Var gathered = world.Gather(rank.Full({1}, own), /*root=*/1);
  if (rank.number() == 1) {
    EXPECT_THAT(ValuesOn(rank, gathered), testing::ElementsAre(0, 1));
  }
  Var row = rank.Zeros({1});
  world.Scatter(rank.Arange(3, 5).View({2, 1}), row, /*root=*/0);
  EXPECT_EQ(row.item(), 3 + own);
  const Var part = world.ReduceScatter(rank.Arange(0, 2).View({2, 1}));
  EXPECT_EQ(part.item(), 2 * own);
  const Var swapped = world.AllToAll(rank.Full({2, 1}, own));
  EXPECT_THAT(ValuesOn(rank, swapped), testing::ElementsAre(0, 1));
  world.Barrier();
}

// Returns the losses of the job in one thread, with sums in this order.
inline std::vector<double> GpuJobLosses(actors::JobSpec spec,
                                        const std::string& device,
                                        const std::string& order) {
  const nn::cuda::EmulatedWorld world(
      actors::EmulatedGpus(/*seed=*/0, spec.plan.mesh.size()));
  spec.device = *nn::Device::Parse(device);
  spec.plan.reduction_order = order;
  actors::Reports reports;
  const absl::Status status =
      actors::Simulation(spec, {}).Run(&reports).status();
  EXPECT_TRUE(status.ok()) << status;
  return reports.losses();
}

}  // namespace troupe

#endif  // TESTS_TROUPE_DEVICE_PROGRAMS_H_
