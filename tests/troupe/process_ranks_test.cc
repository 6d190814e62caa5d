// The ranks of a Trainer that a process has, under every launcher.

#include "troupe/trainer/process_ranks.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/troupe/trainer_task.h"
#include "troupe/trainer.h"

namespace troupe {
namespace {

using Environment = std::vector<std::string>;

// Returns the ranks under a launcher that has set these variables, as in
// "global 2, local 0, node 1 of 4".
std::string RanksUnder(const Environment& environment, int devices,
                       int num_nodes = 1) {
  PlacementOptions options;
  options.devices = devices;
  options.num_nodes = num_nodes;
  std::vector<const char*> variables;
  for (const std::string& variable : environment) {
    variables.push_back(variable.c_str());
  }
  variables.push_back(nullptr);
  const ProcessRanks ranks = RanksOfProcess(options, variables.data());
  return absl::StrCat("global ", ranks.global_rank, ", local ",
                      ranks.local_rank, ", node ", ranks.node_rank, " of ",
                      ranks.world_size);
}

TEST(ProcessRanksTest, AProcessAloneHasAll) {
  EXPECT_EQ(RanksUnder({}, 1), "global 0, local 0, node 0 of 1");
  EXPECT_EQ(RanksUnder({}, 4), "global 0, local 0, node 0 of 4");
}

TEST(ProcessRanksTest, TroupesOwnLauncher) {
  const auto process = [](int number, int local, int node) {
    return Environment{absl::StrCat("TROUPE_PROCESS=", number),
                       "TROUPE_PROCESSES=4",
                       absl::StrCat("TROUPE_LOCAL_PROCESS=", local),
                       "TROUPE_LOCAL_PROCESSES=2",
                       absl::StrCat("TROUPE_NODE=", node),
                       "TROUPE_NODES=2",
                       "TROUPE_MASTER=n1:29400"};
  };
  EXPECT_EQ(RanksUnder(process(0, 0, 0), 2, 2),
            "global 0, local 0, node 0 of 4");
  EXPECT_EQ(RanksUnder(process(1, 1, 0), 2, 2),
            "global 1, local 1, node 0 of 4");
  // Three threads of a process, and another process's on the same node.
  EXPECT_EQ(RanksUnder(process(3, 1, 1), 6, 2),
            "global 9, local 3, node 1 of 12");
}

TEST(ProcessRanksTest, Torchrun) {
  const auto process = [](int rank) {
    return Environment{"TORCHELASTIC_RUN_ID=none",
                       "TORCHELASTIC_USE_AGENT_STORE=True",
                       "TORCHELASTIC_RESTART_COUNT=0",
                       "MASTER_ADDR=n1",
                       "MASTER_PORT=29500",
                       absl::StrCat("RANK=", rank),
                       "WORLD_SIZE=2",
                       absl::StrCat("LOCAL_RANK=", rank),
                       "LOCAL_WORLD_SIZE=2",
                       "GROUP_RANK=0",
                       "GROUP_WORLD_SIZE=1"};
  };
  EXPECT_EQ(RanksUnder(process(0), 2), "global 0, local 0, node 0 of 2");
  EXPECT_EQ(RanksUnder(process(1), 2), "global 1, local 1, node 0 of 2");
  // The first process has one more.
  EXPECT_EQ(RanksUnder(process(1), 3), "global 2, local 2, node 0 of 3");
}

// Tasks need not be numbered node by node.
TEST(ProcessRanksTest, Slurm) {
  EXPECT_EQ(RanksUnder({"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=2",
                        "SLURM_STEP_NUM_TASKS=4", "SLURM_NODEID=0",
                        "SLURM_STEP_NUM_NODES=2", "SLURM_LOCALID=1",
                        "SLURM_STEP_TASKS_PER_NODE=2(x2)",
                        "SLURM_STEP_NODELIST=n[1-2]"},
                       2, 2),
            "global 2, local 1, node 0 of 4");
}

TEST(ProcessRanksTest, OpenMpiDoesNotNumberNodes) {
  EXPECT_EQ(
      RanksUnder({"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
                  "OMPI_COMM_WORLD_LOCAL_RANK=0",
                  "OMPI_COMM_WORLD_LOCAL_SIZE=2", "TROUPE_MASTER=n1:29400"},
                 2, 2),
      "global 2, local 0, node 1 of 4");
}

// An environment that Fit() refuses is no reason to write nothing.
TEST(ProcessRanksTest, WhatFitRefusesIsAProcessAlone) {
  EXPECT_EQ(RanksUnder({"TROUPE_PROCESSES=2"}, 2),
            "global 0, local 0, node 0 of 2");
  EXPECT_EQ(RanksUnder({}, 0, -1), "global 0, local 0, node 0 of 1");
  TrainerOptions options = QuietTrainer();
  options.cluster = actors::ClusterOptions();
  options.cluster->processes = 0;
  EXPECT_TRUE(Trainer(options).is_global_zero());
}

TEST(ProcessRanksTest, OnlyRankZeroPrints) {
  for (const auto& [process, printed] :
       std::vector<std::pair<int, std::string>>{{0, "done\n"}, {1, ""}}) {
    TrainerOptions options = QuietTrainer();
    options.devices = 4;
    options.cluster = actors::ClusterOptions();
    options.cluster->process = process;
    options.cluster->processes = 2;
    const Trainer trainer(options);
    EXPECT_EQ(trainer.is_global_zero(), process == 0);
    EXPECT_EQ(trainer.global_rank(), 2 * process);
    EXPECT_EQ(trainer.local_rank(), 2 * process);
    testing::internal::CaptureStdout();
    trainer.Print("done");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), printed);
  }
}

}  // namespace
}  // namespace troupe
