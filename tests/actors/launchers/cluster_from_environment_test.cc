#include "actors/launchers/cluster_from_environment.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

using Environment = std::vector<const char*>;

// Variables that `trainer launch` sets in process 1 of 2.
const Environment kLaunched = {"PATH=/bin",
                               "TROUPE_PROCESS=1",
                               "TROUPE_PROCESSES=2",
                               "TROUPE_NODE=0",
                               "TROUPE_LOCAL_PROCESS=1",
                               "TROUPE_LOCAL_PROCESSES=2",
                               "TROUPE_NODES=1",
                               "TROUPE_MASTER=n1:29400",
                               "TROUPE_CERT_FDS=5,6,7",
                               "RANK=1",
                               "WORLD_SIZE=2",
                               "LOCAL_RANK=1",
                               "LOCAL_WORLD_SIZE=2",
                               "MASTER_ADDR=n1",
                               "MASTER_PORT=29400"};

// Variables that a user sets by hand.
const Environment kByHand = {"RANK=0", "WORLD_SIZE=3", "MASTER_ADDR=n1",
                             "MASTER_PORT=29400"};

absl::StatusOr<std::optional<ClusterOptions>> Read(
    int ranks, Environment environment, const Environment& more = {},
    ControlNetwork network = ControlNetwork::kTls) {
  environment.insert(environment.end(), more.begin(), more.end());
  environment.push_back(nullptr);
  return ClusterFromEnvironment(ranks, network, environment.data());
}

std::string ErrorOf(int ranks, const Environment& environment,
                    const Environment& more = {}) {
  const absl::Status status = Read(ranks, environment, more).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(ClusterFromEnvironmentTest, OneProcessHasNone) {
  const auto alone = Read(/*ranks=*/4, {"PATH=/bin"});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_FALSE(alone->has_value());
}

TEST(ClusterFromEnvironmentTest, ALaunchedProcess) {
  const auto cluster = Read(/*ranks=*/3, kLaunched);
  ASSERT_TRUE(cluster.ok() && cluster->has_value()) << cluster.status();
  EXPECT_EQ((*cluster)->process, 1);
  EXPECT_EQ((*cluster)->processes, 2);
  EXPECT_EQ((*cluster)->ranks, 1);  // process 0 has two of the three
  EXPECT_EQ((*cluster)->master_host, "n1");
  EXPECT_EQ((*cluster)->master_port, 29400);
  EXPECT_EQ((*cluster)->certificates.authority, "/proc/self/fd/5");
  EXPECT_EQ((*cluster)->certificates.certificate, "/proc/self/fd/6");
  EXPECT_EQ((*cluster)->certificates.key, "/proc/self/fd/7");
  EXPECT_FALSE((*cluster)->insecure);
  EXPECT_EQ((*cluster)->on_listening, nullptr);
}

TEST(ClusterFromEnvironmentTest, RanksAreSpreadOverTheProcesses) {
  std::vector<int> ranks;
  for (int process = 0; process < 3; ++process) {
    Placement placement;
    placement.process = process;
    placement.processes = 3;
    const auto cluster = ClusterOf(placement, 8, ControlNetwork::kInsecure);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    ranks.push_back((*cluster)->ranks);
  }
  EXPECT_EQ(ranks, (std::vector<int>{3, 3, 2}));
}

TEST(ClusterFromEnvironmentTest, AUsersVariables) {
  const auto cluster = Read(/*ranks=*/3, kByHand, {"TROUPE_CERTS=certs/n1"});
  ASSERT_TRUE(cluster.ok() && cluster->has_value()) << cluster.status();
  EXPECT_EQ((*cluster)->process, 0);
  EXPECT_EQ((*cluster)->certificates.key, "certs/n1/node.key");
  const auto open = Read(/*ranks=*/3, kByHand, {}, ControlNetwork::kInsecure);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_TRUE((*open)->insecure);
}

TEST(ClusterFromEnvironmentTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(ErrorOf(2, kByHand, {"TROUPE_CERTS=certs"}),
            "the job has 2 ranks, fewer than the 3 processes; start fewer, or "
            "give the job more ranks");
  EXPECT_EQ(ErrorOf(3, kLaunched, {"TROUPE_RANKS_PER_PROCESS=2"}),
            "TROUPE_RANKS_PER_PROCESS=2 in 2 processes contradicts the job's 3 "
            "ranks; unset it, or make the job of 4");
  EXPECT_EQ(ErrorOf(3, kByHand),
            "launched by RANK and WORLD_SIZE: process 0 of 3 on node 0 of 3, "
            "and processes speak to each other by TLS, for which this one has "
            "no certificate; make some by \"trainer certs --dir=certs\" and "
            "set TROUPE_CERTS=certs/node in each process");
}

// A program of a user has no options of the trainer's.
TEST(ClusterFromEnvironmentTest, ErrorsNameVariables) {
  EXPECT_EQ(ErrorOf(2, {"FLUX_TASK_RANK=0", "FLUX_JOB_SIZE=2"}),
            "2 processes, and no address where they meet; Flux, which set "
            "FLUX_TASK_RANK=0, names no address: set TROUPE_MASTER=host:port "
            "with the host of process 0 and a free port there");
  EXPECT_EQ(ErrorOf(2, {"TROUPE_PROCESSES=2"}),
            "TROUPE_PROCESSES=2 is set, but not which of them this is; set "
            "RANK and WORLD_SIZE in its place, or let a launcher start it");
  EXPECT_EQ(ErrorOf(2, {"PMIX_RANK=0"}),
            "PMIX_RANK=0 is set, but not how many processes there are; set "
            "TROUPE_PROCESSES (1: each process trains by itself)");
}

TEST(ClusterFromEnvironmentTest, TheProgramsOwnEnvironmentIsTheDefault) {
  const absl::StatusOr<Placement> placement = PlacementFromEnvironment();
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_EQ(placement->processes, 1);
}

}  // namespace
}  // namespace troupe::actors
