#include "actors/cluster/join_round.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

Join JoinOf(int process, int processes = 2) {
  Join join;
  join.member.process = process;
  join.member.host = absl::StrCat("node", process);
  join.member.pid = 100 + process;
  join.processes = processes;
  join.version = "0.1";
  join.agreement = "data.batch = 64\ntrain.lr = 0.1\ntrain.steps = 7\n";
  return join;
}

std::string ErrorOf(JoinRound& round, const Join& join) {
  return std::string(round.Add(join).message());
}

TEST(JoinRoundTest, IsCompleteWhenAllAreThere) {
  JoinRound round(3);
  EXPECT_EQ(round.DescribeMissing(),
            "process 0, process 1, process 2 did not join");
  EXPECT_TRUE(round.Add(JoinOf(2, 3)).ok());
  EXPECT_TRUE(round.Add(JoinOf(0, 3)).ok());
  EXPECT_FALSE(round.complete());
  EXPECT_TRUE(round.HasJoined(2));
  EXPECT_FALSE(round.HasJoined(1));
  EXPECT_EQ(round.DescribeMissing(), "process 1 did not join");
  EXPECT_TRUE(round.Add(JoinOf(1, 3)).ok());
  EXPECT_TRUE(round.complete());
  const std::vector<Member> members = round.Members();
  ASSERT_EQ(members.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(members[i].process, i);
}

TEST(JoinRoundTest, OneProcessIsAJob) {
  JoinRound round(1);
  EXPECT_FALSE(round.complete());
  EXPECT_TRUE(round.Add(JoinOf(0, 1)).ok());
  EXPECT_TRUE(round.complete());
}

TEST(JoinRoundTest, TwoWithOneNumberAreBothNamed) {
  JoinRound round(2);
  Join again = JoinOf(1);
  again.member.host = "other";
  EXPECT_TRUE(round.Add(JoinOf(1)).ok());
  EXPECT_EQ(ErrorOf(round, again),
            "two processes come with number 1: process 1 (node1, pid 101) and "
            "process 1 (other, pid 101); give each its own");
}

TEST(JoinRoundTest, WrongCountsAndNumbersAreNamed) {
  const Join wrong[] = {JoinOf(1, 3), JoinOf(1, 0), JoinOf(2), JoinOf(-1)};
  for (const Join& join : wrong) {
    JoinRound round(2);
    const absl::Status status = round.Add(join);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(
        status.message(),
        absl::StrCat("process ", join.member.process, " (node",
                     join.member.process, ", pid ", join.member.pid,
                     ") comes as one of ", join.processes,
                     " processes, and process 0 waits for 2, numbered from "
                     "0; start all with one number of processes"));
  }
}

TEST(JoinRoundTest, AProcessWithoutRanksIsNamed) {
  for (const int ranks : {0, -1, kRanksMax + 1}) {
    JoinRound round(2);
    Join join = JoinOf(1);
    join.member.ranks = ranks;
    EXPECT_EQ(ErrorOf(round, join),
              absl::StrCat("process 1 (node1, pid 101) has ", ranks,
                           " ranks; must be 1 to ", kRanksMax));
  }
}

std::vector<Member> TwoMembers() {
  return {JoinOf(0).member, JoinOf(1).member};
}

std::string MembersError(const std::vector<Member>& members) {
  const absl::Status status = CheckMembers(members, /*processes=*/2);
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  const std::string message(status.message());
  const std::string begin =
      "process 0 sent a wrong list of the job's processes: ";
  const std::string end = "; run the same build of Troupe in all processes";
  EXPECT_TRUE(absl::StartsWith(message, begin)) << message;
  EXPECT_TRUE(absl::EndsWith(message, end)) << message;
  return message.substr(begin.size(),
                        message.size() - begin.size() - end.size());
}

TEST(JoinRoundTest, AWrongListOfMembersIsAnError) {
  EXPECT_EQ(MembersError(TwoMembers()), "");
  EXPECT_EQ(MembersError({}), "it has 0 of 2 processes");
  std::vector<Member> members = TwoMembers();
  members.push_back(JoinOf(2).member);
  EXPECT_EQ(MembersError(members), "it has 3 of 2 processes");
  members = TwoMembers();
  std::swap(members[0], members[1]);
  EXPECT_EQ(MembersError(members),
            "process 1 (node1, pid 101) is in the place of process 0");
  for (const int ranks : {0, -1, kRanksMax + 1}) {
    members = TwoMembers();
    members[0].ranks = ranks;
    EXPECT_EQ(MembersError(members),
              absl::StrCat("process 0 (node0, pid 100) has ", ranks, " ranks"));
  }
}

TEST(JoinRoundTest, VersionsMustAgree) {
  JoinRound round(2);
  Join other = JoinOf(1);
  other.version = "0.2";
  EXPECT_TRUE(round.Add(JoinOf(0)).ok());
  const absl::Status status = round.Add(other);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "the processes of a job must agree, but the version is 0.1 in "
            "process 0 (node0, pid 100) and 0.2 in process 1 (node1, pid 101)");
}

// Every line of the agreement, changed, left out, and added.
TEST(JoinRoundTest, EveryDifferenceIsNamed) {
  struct Case {
    const char* agreement;
    const char* difference;
  };
  const Case cases[] = {
      {"data.batch = 32\ntrain.lr = 0.1\ntrain.steps = 7\n",
       "data.batch is 64 in A and 32 in B"},
      {"data.batch = 64\ntrain.lr = 0.2\ntrain.steps = 7\n",
       "train.lr is 0.1 in A and 0.2 in B"},
      {"data.batch = 64\ntrain.lr = 0.1\ntrain.steps = 8\n",
       "train.steps is 7 in A and 8 in B"},
      {"train.lr = 0.1\ntrain.steps = 7\n",
       "data.batch is 64 in A and not set in B"},
      {"data.batch = 64\ntrain.lr = 0.1\ntrain.steps = 7\nx = 1 = 2\n",
       "x is not set in A and 1 = 2 in B"},
      {"data.batch = 32\ntrain.lr = 0.2\ntrain.steps = 8\n",
       "data.batch is 64 in A and 32 in B"},
      {"train.lr = 0.1\ndata.batch = 64\ntrain.steps = 7\n",
       "the order of settings differs between A and B"},
      {"", "data.batch is 64 in A and not set in B"},
      {"data.batch = 64\ntrain.lr = 0.1\ntrain.steps = 7\n", ""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(FirstDifference(JoinOf(0).agreement, "A", c.agreement, "B"),
              c.difference);
    JoinRound round(2);
    Join other = JoinOf(1);
    other.agreement = c.agreement;
    ASSERT_TRUE(round.Add(JoinOf(0)).ok());
    EXPECT_EQ(round.Add(other).ok(), *c.difference == '\0') << c.difference;
  }
}

TEST(JoinRoundTest, WhoeverIsRefusedLeavesItsPlaceFree) {
  JoinRound round(2);
  Join other = JoinOf(1);
  other.version = "0.2";
  EXPECT_TRUE(round.Add(JoinOf(0)).ok());
  EXPECT_FALSE(round.Add(other).ok());
  EXPECT_FALSE(round.complete());
  EXPECT_FALSE(round.HasJoined(1));
}

}  // namespace
}  // namespace troupe::actors
