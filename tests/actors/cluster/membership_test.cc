#include "actors/cluster/membership.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "caf/scoped_actor.hpp"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

// Two processes; `agent_` is the agent of process 1.
class MembershipTest : public testing::Test {
 protected:
  Join JoinWith(int process, caf::strong_actor_ptr agent) const {
    Join join;
    join.member.process = process;
    join.member.host = absl::StrCat("node", process);
    join.member.pid = 17;
    join.processes = 2;
    join.nonce = 100 + process;
    join.agent = std::move(agent);
    return join;
  }
  // Has both processes join, and makes the decisions of generation 3.
  void JoinAll() {
    ASSERT_TRUE(members_.Add(JoinWith(0, nullptr), nullptr).ok());
    const Join join = JoinWith(1, agent_);
    ASSERT_TRUE(members_.Add(join, sender_).ok());
    ASSERT_TRUE(members_.Admit(join));
    Welcome offer;
    offer.generation = 3;
    members_.SetOffer(offer);
  }

  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  caf::scoped_actor one_{system_}, other_{system_};
  const caf::strong_actor_ptr agent_ =
      caf::actor_cast<caf::strong_actor_ptr>(one_.address());
  const caf::strong_actor_ptr sender_ =
      caf::actor_cast<caf::strong_actor_ptr>(other_.address());
  Membership members_{2};
};

TEST_F(MembershipTest, WelcomesAgentsAndSendersOnce) {
  JoinAll();
  EXPECT_TRUE(members_.has_all());
  EXPECT_FALSE(members_.roster().has_value());
  std::vector<std::string> welcomes;
  for (const auto& [to, welcome] : members_.TakeWelcomes()) {
    ASSERT_EQ(welcome.members.size(), 2u);
    welcomes.push_back(absl::StrCat(to == agent_    ? "agent "
                                    : to == sender_ ? "sender "
                                                    : "none ",
                                    welcome.nonce, " ", welcome.generation));
  }
  EXPECT_EQ(welcomes, std::vector<std::string>(
                          {"none 100 3", "agent 101 3", "sender 101 3"}));
  EXPECT_TRUE(members_.roster().has_value());
  EXPECT_TRUE(members_.TakeWelcomes().empty());
  for (const auto& each : members_.TakeJoining()) EXPECT_EQ(each, nullptr);
}

TEST_F(MembershipTest, NoneIsWelcomeBeforeTheDecisionsAndTheLast) {
  ASSERT_TRUE(members_.Add(JoinWith(1, agent_), sender_).ok());
  members_.SetOffer(Welcome());
  EXPECT_TRUE(members_.TakeWelcomes().empty());
  EXPECT_EQ(members_.DescribeMissing(), "process 0 did not join");
  EXPECT_EQ(members_.TakeJoining()[1], sender_);
  EXPECT_EQ(members_.TakeJoining()[1], nullptr) << "it was taken";
}

TEST_F(MembershipTest, ASecondAgentIsNotAdmitted) {
  JoinAll();
  EXPECT_FALSE(members_.Admit(JoinWith(1, sender_)));
  EXPECT_FALSE(members_.Admit(JoinWith(0, sender_))) << "the coordinator's own";
  EXPECT_FALSE(members_.Admit(JoinWith(2, sender_))) << "none of the job";
  EXPECT_EQ(members_.agent(1), agent_);
}

TEST_F(MembershipTest, APeerIsTheAgentOfItsNumberAndGeneration) {
  JoinAll();
  EXPECT_TRUE(members_.IsPeer(/*generation=*/3, /*process=*/1, agent_));
  EXPECT_TRUE(members_.IsPeer(0, 1, agent_)) << "before its welcome";
  EXPECT_FALSE(members_.IsPeer(2, 1, agent_));
  EXPECT_FALSE(members_.IsPeer(3, 1, sender_));
  EXPECT_FALSE(members_.IsPeer(3, 2, agent_));
  EXPECT_FALSE(members_.IsPeer(3, 0, nullptr));
  EXPECT_TRUE(members_.IsAgent(agent_));
  EXPECT_FALSE(members_.IsAgent(sender_));
  EXPECT_FALSE(members_.IsAgent(nullptr));
  EXPECT_EQ(members_.ProcessOf(one_.address()), 1);
  EXPECT_EQ(members_.ProcessOf(other_.address()), -1);
}

TEST_F(MembershipTest, NamesThoseWithoutRanks) {
  JoinAll();
  members_.TakeWelcomes();
  members_.SetCrew(0);
  EXPECT_FALSE(members_.AllHaveCrews());
  EXPECT_EQ(members_.DescribeWithoutCrew(),
            "process 1 (node1, pid 17, rank 1) did not set up its ranks");
  members_.SetCrew(1);
  EXPECT_TRUE(members_.AllHaveCrews());
}

TEST_F(MembershipTest, AProcessThatNeverJoinedOwesNoFarewell) {
  members_.SetGone(0);
  EXPECT_FALSE(members_.AllGone());
  members_.GiveUpMissing();
  EXPECT_TRUE(members_.IsGone(1));
  EXPECT_TRUE(members_.AllGone());
  Membership joined(2);
  ASSERT_TRUE(joined.Admit(JoinWith(1, agent_)));
  joined.GiveUpMissing();
  EXPECT_FALSE(joined.IsGone(1)) << "its farewell will come";
}

}  // namespace
}  // namespace troupe::actors
