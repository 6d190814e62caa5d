#include "pipeline/plan_groups.h"

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::pipeline {
namespace {

// Returns a plan with a stage at each of `places`. The first stage and the last
// share a bucket.
Plan TiedPlan(Mesh mesh, const std::vector<StagePlace>& places) {
  Plan plan;
  plan.mesh = std::move(mesh);
  for (const StagePlace& place : places) {
    StagePlan& stage = plan.stages.emplace_back();
    stage.place = place;
    stage.parameters = {absl::StrCat("w", plan.stages.size()), "shared"};
    stage.buckets = {{0}, {1}};
  }
  for (std::size_t i = 1; i + 1 < plan.stages.size(); ++i) {
    plan.stages[i].parameters.pop_back();
    plan.stages[i].buckets.pop_back();
  }
  return plan;
}

// Returns a line for each group.
std::string TextOf(const std::vector<PlanGroup>& groups) {
  std::string text;
  for (const PlanGroup& group : groups) {
    absl::StrAppend(&text, static_cast<int>(group.id),
                    group.of_layers() ? " (layers) " : " ", group.ToString(),
                    "\n");
  }
  return text;
}

TEST(PlanGroupsTest, OneRankHasThatOfAllAndThatOfItsReplicas) {
  Plan plan = TiedPlan(Mesh(), {{/*pp=*/0, /*chunk=*/0}});
  plan.stages[0].layer_axes = {"dp"};
  EXPECT_EQ(TextOf(GroupsOf(plan)),
            "-1 all ranks: 0\n"
            "1 replicas: 0\n");
}

TEST(PlanGroupsTest, AllKindsInTheirOrder) {
  Plan plan = TiedPlan(Mesh(/*dp=*/2, /*pp=*/3), {{0, 0}, {1, 0}, {2, 0}});
  plan.stages[1].layer_axes = {"dp"};
  EXPECT_EQ(TextOf(GroupsOf(plan)),
            "-1 all ranks: 0 1 2 3 4 5\n"
            "1 replicas of stage 0: 0 1\n"
            "1 replicas of stage 1: 2 3\n"
            "1 replicas of stage 2: 4 5\n"
            "1 (layers) layers along dp at pp=0: 0 1\n"
            "1 (layers) layers along dp at pp=1: 2 3\n"
            "1 (layers) layers along dp at pp=2: 4 5\n"
            "-4 stages that share shared: 0 4\n"
            "-4 stages that share shared: 1 5\n");
}

TEST(PlanGroupsTest, EachPlaceAlongAnotherAxisHasItsOwn) {
  const Mesh mesh = *Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 2}, {"ep", 1}});
  Plan plan = TiedPlan(mesh, {{0, 0}, {1, 0}});
  plan.stages[0].layer_axes = {"tp"};
  EXPECT_EQ(TextOf(GroupsOf(plan)),
            "-1 all ranks at tp=0: 0 2 4 6\n"
            "-1 all ranks at tp=1: 1 3 5 7\n"
            "1 replicas of stage 0 at tp=0: 0 2\n"
            "1 replicas of stage 0 at tp=1: 1 3\n"
            "1 replicas of stage 1 at tp=0: 4 6\n"
            "1 replicas of stage 1 at tp=1: 5 7\n"
            "0 (layers) layers along tp at dp=0 pp=0: 0 1\n"
            "0 (layers) layers along tp at dp=1 pp=0: 2 3\n"
            "0 (layers) layers along tp at dp=0 pp=1: 4 5\n"
            "0 (layers) layers along tp at dp=1 pp=1: 6 7\n"
            "-4 stages that share shared: 0 4\n"
            "-4 stages that share shared: 1 5\n"
            "-4 stages that share shared: 2 6\n"
            "-4 stages that share shared: 3 7\n");
}

TEST(PlanGroupsTest, PiecesHaveOneForNorms) {
  const Mesh mesh = *Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 1}, {"ep", 2}});
  Plan plan = TiedPlan(mesh, {{0, 0}});
  const Action norm = {ActionKind::kReduceFindings, 0, {}};
  EXPECT_EQ(GroupIn(plan, norm), GroupId::kDpPp);
  plan.stages[0].split_elems = {2, 0};
  EXPECT_EQ(GroupIn(plan, norm), GroupId::kTpDpPp);
  EXPECT_EQ(GroupIn(plan, {ActionKind::kReduceLoss, 0, {}}), GroupId::kDpPp);
  EXPECT_EQ(TextOf(GroupsOf(plan)),
            "-1 all ranks at tp=0 ep=0: 0 2\n"
            "-1 all ranks at tp=1 ep=0: 1 3\n"
            "-1 all ranks at tp=0 ep=1: 4 6\n"
            "-1 all ranks at tp=1 ep=1: 5 7\n"
            "-2 all ranks and pieces at ep=0: 0 1 2 3\n"
            "-2 all ranks and pieces at ep=1: 4 5 6 7\n"
            "1 replicas at tp=0 ep=0: 0 2\n"
            "1 replicas at tp=1 ep=0: 1 3\n"
            "1 replicas at tp=0 ep=1: 4 6\n"
            "1 replicas at tp=1 ep=1: 5 7\n"
            "0 (layers) layers along tp at dp=0 ep=0: 0 1\n"
            "0 (layers) layers along tp at dp=1 ep=0: 2 3\n"
            "0 (layers) layers along tp at dp=0 ep=1: 4 5\n"
            "0 (layers) layers along tp at dp=1 ep=1: 6 7\n");
}

TEST(PlanGroupsTest, PiecesHaveOneForTheNormsOfEachStage) {
  const Mesh mesh = *Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 2}});
  Plan plan = TiedPlan(mesh, {{0}, {1}});
  const Action norms = {ActionKind::kReduceNorms, 0, {}};
  plan.ranks.resize(2);
  plan.ranks[1].train.actions = {norms};
  const auto of_norms = [&] {
    std::vector<PlanGroup> groups;
    for (const PlanGroup& group : GroupsOf(plan)) {
      if (group.id == GroupIn(plan, norms)) groups.push_back(group);
    }
    return TextOf(groups);
  };
  EXPECT_EQ(GroupIn(plan, norms), GroupId::kDp);
  plan.stages[0].split_elems = {2};
  EXPECT_EQ(of_norms(),
            "-3 replicas and pieces of stage 0: 0 1 2 3\n"
            "-3 replicas and pieces of stage 1: 4 5 6 7\n");
  plan.ranks[1].train.actions.clear();
  EXPECT_EQ(of_norms(), "");
}

TEST(PlanGroupsTest, ATieWithinARankNeedsNone) {
  const Plan plan =
      TiedPlan(Mesh(/*dp=*/1, /*pp=*/2), {{0, 0}, {1, 0}, {1, 1}, {0, 1}});
  EXPECT_EQ(TextOf(GroupsOf(plan)),
            "-1 all ranks: 0 1\n"
            "1 replicas of stage 0: 0\n"
            "1 replicas of stage 1: 1\n");
}

TEST(PlanGroupsTest, ARankIsInOneGroupOfATablesId) {
  const Plan plan = TiedPlan(*Mesh::Create({{"tp", 2}, {"dp", 2}, {"pp", 2}}),
                             {{0, 0}, {1, 0}});
  std::set<std::pair<GroupId, int>> seen;
  for (const PlanGroup& group : GroupsOf(plan)) {
    for (const int rank : group.ranks) {
      EXPECT_TRUE(seen.insert({group.id, rank}).second) << group.ToString();
    }
  }
  EXPECT_EQ(seen.size(), 3u * 8) << "all ranks, replicas and the tie";
}

TEST(PlanGroupsTest, ReplicasThatShareBuffersHaveOne) {
  Plan plan = TiedPlan(Mesh(/*dp=*/2, /*pp=*/2), {{0, 0}, {1, 0}});
  plan.stages[1].shares_buffers = true;
  EXPECT_EQ(TextOf(GroupsOf(plan)),
            "-1 all ranks: 0 1 2 3\n"
            "1 replicas of stage 0: 0 1\n"
            "1 replicas of stage 1: 2 3\n"
            "1 (layers) buffers of replicas at pp=0: 0 1\n"
            "1 (layers) buffers of replicas at pp=1: 2 3\n"
            "-4 stages that share shared: 0 2\n"
            "-4 stages that share shared: 1 3\n");
  // Layers use the same one.
  plan.stages[0].layer_axes = {"dp"};
  EXPECT_EQ(GroupsOf(plan).size(), 7u);
  EXPECT_EQ(GroupsOf(plan)[3].name, "layers along dp at pp=0");
}

}  // namespace
}  // namespace troupe::pipeline
