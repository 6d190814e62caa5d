#include "actors/setup/roster.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

Member MemberWith(int process, int ranks) {
  Member member;
  member.process = process;
  member.ranks = ranks;
  member.host = "node" + std::to_string(process);
  member.pid = 100 + process;
  return member;
}

TEST(RosterTest, RanksAreNumberedThroughTheProcesses) {
  const Roster roster({MemberWith(0, 2), MemberWith(1, 1), MemberWith(2, 3)});
  EXPECT_EQ(roster.processes(), 3);
  EXPECT_EQ(roster.ranks(), 6);
  EXPECT_EQ(roster.ProcessesOfRanks(), (std::vector<int>{0, 0, 1, 2, 2, 2}));
  for (int rank = 0; rank < roster.ranks(); ++rank) {
    const int process = roster.ProcessOf(rank);
    EXPECT_EQ(process, roster.ProcessesOfRanks()[rank]) << rank;
    EXPECT_LE(roster.FirstRankOf(process), rank);
    EXPECT_LT(rank, roster.FirstRankOf(process + 1));
  }
  EXPECT_EQ(roster.FirstRankOf(3), 6);
}

TEST(RosterTest, AProcessIsDescribedByAllThatFindsIt) {
  const Roster roster({MemberWith(0, 1), MemberWith(1, 2)});
  EXPECT_EQ(roster.Describe(0), "process 0 (node0, pid 100, rank 0)");
  EXPECT_EQ(roster.Describe(1), "process 1 (node1, pid 101, ranks 1 to 2)");
}

}  // namespace
}  // namespace troupe::actors
