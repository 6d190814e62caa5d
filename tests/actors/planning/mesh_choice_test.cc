#include "actors/planning/mesh_choice.h"

#include <memory>
#include <optional>
#include <string>

#include "actors/planning/expected_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

// Returns a job of two ranks that leaves its mesh open. Parts of its model take
// a second for each sample, and hold nothing.
JobSpec OpenJob(int* measurements = nullptr) {
  JobSpec job = TinyCnnJob(/*dp=*/2, /*steps=*/2);
  job.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(784, 32);
    model->Append<nn::Linear>(32, 10);
    return model;
  };
  OpenMesh& open = job.open_mesh.emplace();
  open.bandwidth = 1e12;
  open.micro_batch_size = 4;
  open.tp = 1;
  open.set = SetMesh;
  open.measure = [=](const JobSpec& spec) {
    EXPECT_FALSE(spec.open_mesh.has_value());
    if (measurements != nullptr) ++*measurements;
    pipeline::ModelCosts costs;
    const auto samples = static_cast<double>(spec.plan.MicroBatchSize());
    for (const char* path : {"0", "1", "2"}) {
      pipeline::UnitCosts& unit = costs.units.emplace_back();
      unit.path = path;
      unit.costs = {samples, samples, samples};
    }
    return costs;
  };
  return job;
}

TEST(MeshChoice, TheFastestIsTakenAndTold) {
  std::string note;
  JobSpec open = OpenJob();
  open.note = [&](const std::string& line) { note = line; };
  open.open_mesh->settings_of = [](const MeshChoice& mesh) {
    return mesh.dp == 2 ? "--two" : "--one";
  };
  const auto closed = WithMesh(open, /*plan=*/nullptr);
  ASSERT_TRUE(closed.ok()) << closed.status();
  EXPECT_FALSE(closed->open_mesh.has_value());
  EXPECT_EQ(closed->plan.mesh, pipeline::Mesh(/*dp=*/2));
  EXPECT_TRUE(closed->plan.mesh_is_chosen);
  EXPECT_FALSE(closed->plan.recomputes);
  EXPECT_THAT(note, HasSubstr("mesh: dp 2, pp 1, "));
  EXPECT_THAT(note, HasSubstr("; to have it always: --two"));
}

// A limit below what replicas need makes it another mesh; one below what all
// need is an error with the smallest excess.
TEST(MeshChoice, TheLimitIsKept) {
  JobSpec open = OpenJob();
  open.open_mesh->zero_stages = {0};
  pipeline::PlanOptions two = open.plan;
  const auto replicas = ExpectMemory(open, MakeJobPlan(open, two).value());
  ASSERT_TRUE(replicas.ok()) << replicas.status();
  // Activations of the stand-in costs are one byte.
  open.open_mesh->memory_limit = replicas->held();
  const auto stages = WithMesh(open, nullptr);
  ASSERT_TRUE(stages.ok()) << stages.status();
  EXPECT_EQ(stages->plan.mesh, pipeline::Mesh(/*dp=*/1, /*pp=*/2));
  EXPECT_EQ(stages->plan.cuts.size() + 1,
            stages->plan.placement.empty() ? 2 : stages->plan.placement.size());
  EXPECT_FALSE(stages->plan.schedule_name.empty());

  open.open_mesh->memory_limit = 1024;
  const absl::Status none = WithMesh(open, nullptr).status();
  EXPECT_TRUE(absl::IsInvalidArgument(none));
  EXPECT_THAT(
      std::string(none.message()),
      HasSubstr("no mesh of 2 ranks fits OpenMesh.memory_limit = 1 KiB: "
                "dp 1, pp 2"));
  EXPECT_THAT(std::string(none.message()), HasSubstr(" too much; "));
}

TEST(MeshChoice, ErrorsOfWhatMeasuresAndSets) {
  JobSpec open = OpenJob();
  open.open_mesh->measure = [](const JobSpec&) {
    return absl::UnavailableError("no clock");
  };
  EXPECT_EQ(WithMesh(open, nullptr).status(),
            absl::UnavailableError("no clock"));
  open.open_mesh->set = [](const MeshChoice&, JobSpec&) {
    return absl::InvalidArgumentError("not so");
  };
  EXPECT_THAT(std::string(WithMesh(open, nullptr).status().message()),
              HasSubstr("no mesh of 2 ranks can be: dp "));
  open.open_mesh->set = nullptr;
  EXPECT_THAT(std::string(WithMesh(open, nullptr).status().message()),
              HasSubstr("open_mesh has nothing that measures, or that sets"));
}

// Other processes learn the choice from the plan, recomputation too.
TEST(MeshChoice, APlanHasTheChoice) {
  const JobSpec open = OpenJob();
  MeshChoice choice;
  choice.pp = 2;
  choice.schedule = "zb_h1";
  choice.micro_batch_size = 4;
  choice.micro_batches = 8;
  choice.recompute = true;
  pipeline::PlanOptions given = open.plan;
  EXPECT_FALSE(ChoiceOf(MakeJobPlan(open, given).value()).has_value());

  JobSpec set = open;
  ASSERT_TRUE(SetMesh(choice, set).ok());
  set.plan.mesh_is_chosen = set.plan.recomputes = true;
  set.plan.schedule_name = choice.schedule;
  const auto plan = MakeJobPlan(set, set.plan);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::optional<MeshChoice> read = ChoiceOf(*plan);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->ToString(), "dp 1, pp 2, recomputed");
  EXPECT_EQ(read->schedule, "zb_h1");
  EXPECT_EQ(read->micro_batches, 8);
  const auto other = WithMeshOf(open, *plan);
  ASSERT_TRUE(other.ok()) << other.status();
  const auto again = MakeJobPlan(*other, other->plan);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->cuts, plan->cuts);
  EXPECT_EQ(again->micro_batch_size, 4);
  for (int pp = 0; pp < 2; ++pp) {
    EXPECT_EQ(again->ranks[pp].train, plan->ranks[pp].train);
  }
  EXPECT_TRUE(absl::IsInternal(
      WithMeshOf(open, MakeJobPlan(open, given).value()).status()));
}

// A resumed run keeps its mesh, unless that needs more than a new limit.
TEST(MeshChoice, AJobThatGoesOnKeepsItsMesh) {
  const std::string folder = FreshFolder("mesh_choice");
  JobSpec first = OpenJob();
  first.checkpoint.dir = folder;
  const Reports before = ReportsOf(first);
  EXPECT_EQ(before.info.plan.mesh, pipeline::Mesh(/*dp=*/2));
  int measurements = 0;
  JobSpec second = OpenJob(&measurements);
  second.steps = 3;
  second.checkpoint.dir = folder;
  second.checkpoint.resume = true;
  const Reports resumed = ReportsOf(second);
  EXPECT_EQ(resumed.info.plan.mesh, pipeline::Mesh(/*dp=*/2));
  EXPECT_EQ(measurements, 0);
  EXPECT_TRUE(resumed.info.plan_changes.empty());
  second.steps = 4;
  second.open_mesh->zero_stages = {0};
  second.open_mesh->memory_limit = before.info.memory.held();
  EXPECT_EQ(ReportsOf(second).info.plan.mesh,
            pipeline::Mesh(/*dp=*/1, /*pp=*/2));
  EXPECT_GT(measurements, 0);
}

}  // namespace
}  // namespace troupe::actors
