#include "actors/planning/mesh_search.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/planning/step_prediction.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "pipeline/plan_choices.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

constexpr int kLayers = 5;  // a Flatten and four Linears
// Seconds of a layer for a sample.
constexpr double kForward = 1, kBackward = 2;

JobSpec SpecOf(const MeshChoice& mesh) {
  JobSpec spec = TinyCnnJob(mesh.dp, /*steps=*/1);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(784, 32);
    model->Append<nn::Linear>(32, 32);
    model->Append<nn::Linear>(32, 32);
    model->Append<nn::Linear>(32, 10);
    return model;
  };
  spec.plan.mesh = pipeline::Mesh(mesh.dp, mesh.pp, mesh.tp);
  spec.plan.global_batch_size = 16;
  spec.plan.micro_batch_size = mesh.micro_batch_size;
  spec.plan.zero_stage = mesh.zero_stage;
  return spec;
}

// Every Linear takes the same time per sample.
pipeline::ModelCosts CostsOf(const JobSpec& spec) {
  pipeline::ModelCosts costs;
  const auto samples = static_cast<double>(spec.plan.MicroBatchSize());
  for (int i = 0; i < kLayers; ++i) {
    pipeline::UnitCosts unit;
    unit.path = std::to_string(i);
    const double part = i == 0 ? 0 : samples;
    unit.costs = {kForward * part, kBackward / 2 * part, kBackward / 2 * part};
    unit.costs.backward = kBackward * part;
    costs.units.push_back(unit);
  }
  return costs;
}

// A search over two ranks that stand for two machines, so that the number of
// cores here is no limit.
MeshSearch Search(int ranks) {
  MeshSearch search;
  search.ranks = ranks;
  search.tp = 1;
  search.global_batch_size = 16;
  search.reductions = {/*latency=*/0, /*bytes_per_second=*/1e6};
  search.spec_of = [](const MeshChoice& mesh) -> absl::StatusOr<JobSpec> {
    JobSpec spec = SpecOf(mesh);
    spec.cluster.emplace();
    spec.plan.virtual_stages = mesh.virtual_stages;
    if (mesh.schedule.empty()) return spec;
    const absl::Status set = pipeline::SetSchedule(mesh.schedule, spec.plan);
    if (!set.ok()) return set;
    const int stages = spec.plan.placement.empty()
                           ? mesh.pp * mesh.virtual_stages
                           : static_cast<int>(spec.plan.placement.size());
    if (stages > kLayers) {
      return absl::InvalidArgumentError("the model has too few layers");
    }
    for (int i = 1; i < stages; ++i) {
      spec.plan.cuts.push_back(std::to_string(1 + i * (kLayers - 1) / stages));
    }
    return spec;
  };
  search.measure =
      [](const JobSpec& spec) -> absl::StatusOr<pipeline::ModelCosts> {
    return CostsOf(spec);
  };
  return search;
}

std::vector<JudgedMesh> Judged(const MeshSearch& search) {
  const auto meshes = JudgeMeshes(search);
  EXPECT_TRUE(meshes.ok()) << meshes.status();
  return meshes.value_or(std::vector<JudgedMesh>());
}

TEST(MeshSearchTest, ChoicesAreTheDivisorsOfTheRanks) {
  MeshSearch search = Search(6);
  search.global_batch_size = 24;
  std::set<std::pair<int, int>> meshes;
  std::set<std::int64_t> sizes_at_two;
  for (const MeshChoice& choice : MeshChoices(search)) {
    meshes.insert({choice.dp, choice.pp});
    EXPECT_EQ(choice.schedule.empty(), choice.pp == 1);
    EXPECT_EQ(choice.micro_batches * choice.micro_batch_size * choice.dp, 24);
    if (choice.pp == 2) sizes_at_two.insert(choice.micro_batch_size);
  }
  EXPECT_EQ(meshes,
            (std::set<std::pair<int, int>>{{6, 1}, {3, 2}, {2, 3}, {1, 6}}));
  // Replicas of 8 samples in 2, 4 or 8 micro-batches.
  EXPECT_EQ(sizes_at_two, (std::set<std::int64_t>{1, 2, 4}));
  search.micro_batch_size = 4;
  for (const MeshChoice& choice : MeshChoices(search)) {
    EXPECT_EQ(choice.micro_batch_size, 4);
  }
}

// Two replicas compute 8 samples each, without a bubble: 8 x 4 layers x 3.
TEST(MeshSearchTest, TheFastestThatFitsIsFirst) {
  MeshSearch search = Search(2);
  search.reductions.bytes_per_second = 1e12;
  std::vector<JudgedMesh> meshes = Judged(search);
  ASSERT_GE(meshes.size(), 3);
  EXPECT_EQ(meshes[0].mesh.dp, 2);
  EXPECT_NEAR(meshes[0].seconds, 96, 1e-3);
  EXPECT_GT(meshes[0].bytes_sent, 0);
  for (const JudgedMesh& mesh : meshes) EXPECT_TRUE(mesh.status.ok());

  // Reductions over a slow network cost more than a pipeline's bubble. Buckets
  // wait for the whole backward at worst.
  search.reductions.bytes_per_second = 100;
  meshes = Judged(search);
  EXPECT_EQ(meshes[0].mesh.pp, 2);
  EXPECT_FALSE(meshes[0].mesh.schedule.empty());
  EXPECT_EQ(meshes[0].bytes_sent, 0);
  for (const JudgedMesh& mesh : meshes) {
    if (mesh.mesh.dp == 1) continue;
    EXPECT_GT(mesh.seconds, 2 * meshes[0].seconds);
  }
}

TEST(MeshSearchTest, WhatNeedsTooMuchMemorySaysHowMuch) {
  MeshSearch search = Search(2);
  search.tries_recompute = false;
  search.zero_stages = {0};
  const std::vector<JudgedMesh> all = Judged(search);
  ASSERT_EQ(all.size(), 2);
  const JudgedMesh& larger = all[0].bytes > all[1].bytes ? all[0] : all[1];
  search.memory_limit = larger.bytes - 1024;
  const std::vector<JudgedMesh> meshes = Judged(search);
  EXPECT_TRUE(meshes[0].status.ok());
  EXPECT_EQ(meshes[1].mesh.pp, larger.mesh.pp);
  EXPECT_TRUE(absl::IsResourceExhausted(meshes[1].status));
  EXPECT_THAT(std::string(meshes[1].status.message()),
              HasSubstr(" a rank, 1 KiB more than "));
}

// Two replicas have a half each of the momentum of all parameters, and further
// stages are compared.
TEST(MeshSearchTest, OwnersOfStatesNeedLessMemory) {
  MeshSearch search = Search(2);
  search.tries_recompute = false;
  search.reductions.bytes_per_second = 1e12;
  std::map<int, JudgedMesh> replicas;  // keyed by ZeRO's stage
  for (const JudgedMesh& mesh : Judged(search)) {
    if (mesh.mesh.dp != 2) continue;
    // The one without comes first where all are as fast.
    EXPECT_EQ(replicas.empty(), mesh.mesh.zero_stage == 0);
    EXPECT_EQ(mesh.status, absl::OkStatus());
    replicas.emplace(mesh.mesh.zero_stage, mesh);
  }
  ASSERT_EQ(replicas.size(), pipeline::kZeroStageMax + 1);
  const double parameters = 784 * 32 + 32 + 2 * (32 * 32 + 32) + 32 * 10 + 10;
  EXPECT_NEAR(replicas[0].bytes - replicas[1].bytes, 4 * parameters / 2, 64);
  EXPECT_EQ(replicas[0].bytes_sent, replicas[1].bytes_sent);
}

// A model that declares no cut is refused over tp; each divisor is tried.
TEST(MeshSearchTest, TpNeedsLayersThatAreSplit) {
  MeshSearch search = Search(4);
  search.tp = 0;
  search.micro_batch_size = 4;
  search.tries_recompute = false;
  std::set<int> widths;
  for (const MeshChoice& choice : MeshChoices(search)) {
    widths.insert(choice.tp);
    EXPECT_EQ(choice.tp * choice.dp * choice.pp, 4);
  }
  EXPECT_EQ(widths, (std::set<int>{1, 2, 4}));
  int refused = 0;
  for (const JudgedMesh& judged : Judged(search)) {
    EXPECT_EQ(judged.status.ok(), judged.mesh.tp == 1) << judged.status;
    if (judged.status.ok()) continue;
    ++refused;
    EXPECT_THAT(std::string(judged.status.message()),
                HasSubstr("tp: no layer of the model is split, so"));
    EXPECT_EQ(judged.mesh.zero_stage, 0);
  }
  EXPECT_EQ(refused, 3);  // tp 2 with dp 2 or pp 2; tp 4
}

// Four ranks along tp do not divide the width; two do, also with ZeRO.
TEST(MeshSearchTest, TpMustDivideTheWidths) {
  MeshSearch search = Search(4);
  search.tp = 0;
  search.micro_batch_size = 4;
  search.tries_recompute = false;
  const auto spec_of = search.spec_of;
  search.spec_of = [=](const MeshChoice& mesh) -> absl::StatusOr<JobSpec> {
    absl::StatusOr<JobSpec> spec = spec_of(mesh);
    if (!spec.ok()) return spec;
    spec->model = [] {
      auto model = std::make_unique<nn::Sequential>();
      model->Append<nn::Flatten>();
      model->Append<nn::Linear>(784, 6).set_parallel(nn::Linear::kColumn);
      model->Append<nn::Linear>(6, 10).set_parallel(nn::Linear::kRow);
      model->Append<nn::Linear>(10, 10);
      model->Append<nn::Linear>(10, 10);
      return model;
    };
    return spec;
  };
  bool two = false, owners = false, four = false;
  for (const JudgedMesh& judged : Judged(search)) {
    const std::string message(judged.status.message());
    if (judged.mesh.tp == 2) {
      EXPECT_TRUE(judged.status.ok()) << judged.status;
      two = true;
      owners |= judged.mesh.zero_stage == 2;
    }
    if (judged.mesh.tp != 4) continue;
    four = true;
    EXPECT_FALSE(judged.status.ok());
    EXPECT_THAT(message, HasSubstr("4"));
    EXPECT_EQ(message.find("copies"), std::string::npos) << message;
  }
  EXPECT_TRUE(two);
  EXPECT_TRUE(owners);
  EXPECT_TRUE(four);
}

TEST(MeshSearchTest, MeshesThatCannotBeSayWhy) {
  MeshSearch search = Search(8);
  search.micro_batch_size = 1;
  search.zero_stages = {0};
  const std::vector<JudgedMesh> meshes = Judged(search);
  const JudgedMesh& last = meshes.back();
  EXPECT_EQ(last.mesh.pp, 8);
  EXPECT_THAT(std::string(last.status.message()),
              HasSubstr("the model has too few layers"));
  // Its line stands once, not again for recomputation.
  EXPECT_NE(meshes[meshes.size() - 2].mesh.pp, 8);
}

TEST(MeshSearchTest, BadSearchesAreErrors) {
  MeshSearch search = Search(0);
  EXPECT_THAT(std::string(JudgeMeshes(search).status().message()),
              HasSubstr("ranks is 0"));
  search = Search(2);
  search.tp = 3;
  EXPECT_THAT(std::string(JudgeMeshes(search).status().message()),
              HasSubstr("tp is 3, and ranks is 2"));
  search = Search(2);
  search.measure = nullptr;
  EXPECT_THAT(std::string(JudgeMeshes(search).status().message()),
              HasSubstr("measure is not set"));
  search.measure = [](const JobSpec&) -> absl::StatusOr<pipeline::ModelCosts> {
    return absl::AbortedError("no clock");
  };
  EXPECT_EQ(JudgeMeshes(search).status(), absl::AbortedError("no clock"));
}

TEST(ReductionCosts, ARankSendsWhatARingDoes) {
  EXPECT_EQ(BytesSent(100, 1), 0);
  EXPECT_EQ(BytesSent(100, 2), 100);
  EXPECT_EQ(BytesSent(100, 4), 150);
  const ReductionCosts costs = {/*latency=*/0.5, /*bytes_per_second=*/10};
  EXPECT_EQ(costs.SecondsOf(100, 1), 0);
  EXPECT_EQ(costs.SecondsOf(100, 4), 15.5);
  const ReductionCosts measured = MeasureReductionCosts(4);
  EXPECT_GT(measured.latency, 0);
  EXPECT_GT(measured.bytes_per_second, 0);
}

}  // namespace
}  // namespace troupe::actors
