// The mesh that a search takes is as fast as the best of many more that were
// laid out by hand: every number of micro-batches, and three chunks a rank. The
// models' costs are their FLOPs, and each rank is a machine of its own.
//
// TROUPE_MESH_RANKS=8 compares those of so many ranks and of larger models,
// with ZeRO. 64 ranks take half an hour.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "actors/planning/mesh_choice.h"
#include "actors/planning/mesh_search.h"
#include "actors/planning/step_prediction.h"
#include "base/check.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/models/resnet.h"
#include "nn/tensor/caching_allocator.h"
#include "pipeline/balance.h"
#include "pipeline/partition.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

constexpr double kFlopsPerSecond = 1e11;
constexpr std::int64_t kContext = 64, kWidth = 256, kVocab = 512;

constexpr int kRanks = 4;

int Ranks() {
  const char* ranks = std::getenv("TROUPE_MESH_RANKS");
  int count = kRanks;
  if (ranks == nullptr) return count;
  EXPECT_TRUE(absl::SimpleAtoi(ranks, &count)) << ranks;
  return count;
}

// Returns a job with `inputs` as its data and its global batch.
JobSpec OnPaper(const nn::ModelFactory& model, const nn::Shape& inputs,
                nn::DType dtype, std::int64_t classes) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/1);
  spec.model = model;
  spec.plan.global_batch_size = inputs[0];
  nn::CachingAllocator memory;
  const nn::Shape targets =
      dtype == nn::DType::kI64 ? inputs : nn::Shape{inputs[0]};
  spec.train = *data::MakeInMemoryDataset(
      nn::Tensor::Zeros(inputs, dtype, memory),
      nn::Tensor::Zeros(targets, nn::DType::kI64, memory), classes);
  spec.cluster.emplace();
  return spec;
}

// Eight samples for each rank.
JobSpec Gpt(int ranks) {
  const auto model = [] {
    nn::Gpt2Options options;
    options.layers = Ranks() == kRanks ? 4 : 12;
    options.heads = 8;
    options.width = kWidth;
    options.context = kContext;
    options.vocab_size = kVocab;
    options.tie_head = false;
    return *nn::MakeGpt2(options);
  };
  return OnPaper(model, {8 * ranks, kContext}, nn::DType::kI64, kVocab);
}

JobSpec ResNet50(int ranks) {
  const auto model = [] {
    nn::ResNetOptions options;
    options.num_classes = 10;
    options.stem = nn::ResNetStem::kCifar;
    return *nn::MakeResNet(50, options);
  };
  return OnPaper(model, {8 * ranks, 32, 32, 3}, nn::DType::kF32, 10);
}

// Returns the FLOPs of the model's parts as seconds. Over tp each block of a
// GPT has two sums in a forward, and two in a backward.
absl::StatusOr<pipeline::ModelCosts> CostsOnPaper(const JobSpec& spec) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> units,
                          pipeline::CutPlaces(spec.model));
  const data::SampleSpec& sample = SamplesOf(spec)->spec();
  const std::int64_t samples = spec.plan.MicroBatchSize();
  TROUPE_ASSIGN_OR_RETURN(
      const pipeline::StepCosts flops,
      pipeline::EstimateCosts(spec.model, absl::MakeConstSpan(units).subspan(1),
                              {sample.InputShape(samples), sample.input_dtype},
                              spec.device,
                              pipeline::PlacesOf(spec.plan.mesh, /*rank=*/0,
                                                 /*sequence_parallel=*/false,
                                                 /*depth_blocks=*/1)));
  pipeline::ModelCosts costs;
  for (std::size_t i = 0; i < units.size(); ++i) {
    pipeline::UnitCosts& unit = costs.units.emplace_back();
    unit.path = units[i];
    unit.costs = flops.stages[i];
    unit.costs.forward /= kFlopsPerSecond;
    unit.costs.inputs /= kFlopsPerSecond;
    unit.costs.weights /= kFlopsPerSecond;
    if (spec.plan.mesh.tp() > 1 && absl::StartsWith(unit.path, "h.")) {
      const auto bytes =
          static_cast<double>(samples * kContext * kWidth * sizeof(float));
      unit.forward_sums = unit.backward_sums = {/*count=*/2, 2 * bytes};
    }
  }
  costs.transfer = 50e-6;
  return costs;
}

MeshSearch SearchOf(const JobSpec& job, int ranks, double bandwidth) {
  MeshSearch search;
  search.ranks = ranks;
  search.global_batch_size = job.plan.global_batch_size;
  search.tries_recompute = false;
  if (ranks == kRanks) search.zero_stages = {0};
  search.reductions = {/*latency=*/50e-6, bandwidth};
  search.measure = CostsOnPaper;
  search.spec_of = [job](const MeshChoice& mesh) -> absl::StatusOr<JobSpec> {
    JobSpec spec = job;
    TROUPE_RETURN_IF_ERROR(SetMesh(mesh, spec));
    return spec;
  };
  return search;
}

// Returns the shortest predicted step of all meshes, numbers of micro-batches,
// and schedules with one chunk or three; `tried` of them can be.
double ShortestByHand(const MeshSearch& search, int& tried) {
  MeshSearch wholes = search;  // choices without sizes of micro-batches
  wholes.micro_batch_size = 1;
  wholes.zero_stages = {0};
  double shortest = std::numeric_limits<double>::infinity();
  const std::vector<MeshChoice> choices = MeshChoices(wholes);
  for (const std::uint64_t i : Cases(choices.size())) {
    MeshChoice choice = choices[i];
    if (choice.virtual_stages == 2) choice.virtual_stages = 3;
    const std::int64_t samples = search.global_batch_size / choice.dp;
    for (std::int64_t count = 1; count <= samples; count *= 2) {
      choice.micro_batch_size = samples / count;
      choice.micro_batches = static_cast<int>(count);
      const absl::StatusOr<JobSpec> spec = search.spec_of(choice);
      if (!spec.ok()) continue;
      const absl::StatusOr<pipeline::ModelCosts> costs = CostsOnPaper(*spec);
      if (!costs.ok()) continue;
      const auto step = PredictStep(*spec, &*costs, &search.reductions);
      if (!step.ok()) continue;
      ++tried;
      shortest = std::min(shortest, step->seconds);
    }
  }
  return shortest;
}

void ExpectNearlyTheBest(const JobSpec& job, int ranks, double bandwidth) {
  const MeshSearch search = SearchOf(job, ranks, bandwidth);
  const auto meshes = JudgeMeshes(search);
  ASSERT_EQ(meshes.status(), absl::OkStatus());
  ASSERT_EQ(meshes->front().status, absl::OkStatus());
  int tried = 0;
  const double shortest = ShortestByHand(search, tried);
  EXPECT_GE(tried, 10);
  EXPECT_LE(meshes->front().seconds, 1.05 * shortest);
  std::cout << meshes->front().mesh.ToString() << ": "
            << meshes->front().seconds / shortest << " of the best of " << tried
            << "\n";
}

TEST(MeshRangeTest, OfAGpt) {
  ExpectNearlyTheBest(Gpt(Ranks()), Ranks(), /*bandwidth=*/1.25e9);
  if (Ranks() == kRanks) return;
  ExpectNearlyTheBest(Gpt(Ranks()), Ranks(), /*bandwidth=*/1e7);
  ExpectNearlyTheBest(ResNet50(Ranks()), Ranks(), /*bandwidth=*/1e7);
  ExpectNearlyTheBest(ResNet50(Ranks()), Ranks(), /*bandwidth=*/1.25e9);
}

}  // namespace
}  // namespace troupe::actors
