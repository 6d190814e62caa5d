#include "actors/supervision/replica_check.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "pipeline/plan.h"

namespace troupe::actors {
namespace {

// Returns the plan of a layer with pieces and one without, on ranks 0 to 3 at
// tp = 0, 1, 0, 1 of replicas 0, 0, 1, 1.
pipeline::Plan PlanWithPieces() {
  pipeline::PlanOptions options;
  options.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/1, /*tp=*/2);
  options.global_batch_size = 4;
  options.micro_batch_size = 2;
  const auto make = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->AppendNamed<nn::Linear>("pieces", 4, 7)
        .set_parallel(nn::Linear::kVocabulary);
    model->AppendNamed<nn::Linear>("copies", 7, 2);
    return model;
  };
  return pipeline::MakePlan(options, make, {4}, nn::DType::kF32, nn::Device())
      .value();
}

// Number of the bucket with pieces, or with copies.
int BucketOf(const pipeline::Plan& plan, bool pieces) {
  const pipeline::StagePlan& stage = plan.stages[0];
  for (int k = 0; k < static_cast<int>(stage.buckets.size()); ++k) {
    if (stage.IsSplitBucket(k) == pieces) return k;
  }
  ADD_FAILURE() << "no such bucket";
  return 0;
}

// Hashes of ranks that agree: pieces have a hash for each place along tp.
std::vector<std::vector<std::uint64_t>> HashesOf(const pipeline::Plan& plan) {
  std::vector<std::vector<std::uint64_t>> hashes(4);
  for (int rank = 0; rank < 4; ++rank) {
    hashes[rank].assign(plan.stages[0].buckets.size(), 7);
    hashes[rank][BucketOf(plan, /*pieces=*/true)] = 100 + rank % 2;
  }
  return hashes;
}

TEST(ReplicaCheckTest, PiecesMayDifferAlongTp) {
  const pipeline::Plan plan = PlanWithPieces();
  EXPECT_EQ(CheckReplicas(plan, /*step=*/5, HashesOf(plan)), absl::OkStatus());
}

TEST(ReplicaCheckTest, APieceThatDiffersFromItsReplicaIsNamed) {
  const pipeline::Plan plan = PlanWithPieces();
  const int bucket = BucketOf(plan, /*pieces=*/true);
  auto hashes = HashesOf(plan);
  hashes[3][bucket] = hashes[2][bucket];  // the piece of another place
  const absl::Status status = CheckReplicas(plan, 5, hashes);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message().find("after step 5 rank 3 has other parameters or "
                                  "optimizer states than rank 1, first in "),
            0u)
      << status;
  EXPECT_NE(status.message().find("(pieces."), std::string::npos) << status;
}

TEST(ReplicaCheckTest, ACopyThatDiffersAlongTpIsNamed) {
  const pipeline::Plan plan = PlanWithPieces();
  auto hashes = HashesOf(plan);
  hashes[1][BucketOf(plan, /*pieces=*/false)] = 8;
  const absl::Status status = CheckReplicas(plan, 5, hashes);
  EXPECT_EQ(status.message().find("after step 5 rank 1 has other parameters or "
                                  "optimizer states than ranks 0, 2 and 3, "
                                  "first in "),
            0u)
      << status;
  EXPECT_NE(status.message().find("(copies."), std::string::npos) << status;
}

}  // namespace
}  // namespace troupe::actors
