#include "actors/supervision/replica_check.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "actors/spec/checkpoint_options.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::actors {
namespace {

// Returns "rank 2", "ranks 0, 1 and 3".
std::string Ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    absl::StrAppend(&text,
                    i == 0                  ? ""
                    : i + 1 == ranks.size() ? " and "
                                            : ", ",
                    ranks[i]);
  }
  return text;
}

// Returns "bucket 1 of stage 0 (0.weight to 4.bias)". `index` counts the
// buckets of all stages of `rank`.
std::string BucketName(const pipeline::Plan& plan, int rank,
                       std::size_t index) {
  for (const int stage : plan.StagesOf(rank)) {
    const pipeline::StagePlan& in = plan.stages[stage];
    if (index >= in.buckets.size()) {
      index -= in.buckets.size();
      continue;
    }
    const std::vector<int>& bucket = in.buckets[index];
    const std::string& first = in.parameters[bucket.front()];
    const std::string& last = in.parameters[bucket.back()];
    return absl::StrCat("bucket ", index, " of stage ", stage, " (", first,
                        first == last ? "" : absl::StrCat(" to ", last), ")");
  }
  return absl::StrCat("bucket ", index);
}

// Returns the hash that most of `ranks` have, of equally many the first one.
std::uint64_t MostCommon(const std::vector<std::vector<std::uint64_t>>& hashes,
                         const std::vector<int>& ranks, std::size_t bucket) {
  std::uint64_t best = 0;
  std::ptrdiff_t most = 0;
  for (const int rank : ranks) {
    const std::uint64_t hash = hashes[rank][bucket];
    const std::ptrdiff_t count =
        std::count_if(ranks.begin(), ranks.end(),
                      [&](int other) { return hashes[other][bucket] == hash; });
    if (count > most) best = hash;
    most = std::max(most, count);
  }
  return best;
}

// Returns the ranks at a place along pp: replicas, and the copies of each along
// further axes. `tp`: coordinate along tp of all; below 0: any.
std::vector<int> RanksOfStage(const pipeline::Mesh& mesh, int pp, int tp) {
  std::vector<int> ranks;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    if (mesh.CoordOf(rank, pipeline::kPpAxis) != pp) continue;
    if (tp >= 0 && mesh.CoordOf(rank, pipeline::kTpAxis) != tp) continue;
    ranks.push_back(rank);
  }
  return ranks;
}

// Returns, for each bucket of the ranks at a place along pp, whether it has
// pieces of parameters.
std::vector<bool> HavePieces(const pipeline::Plan& plan, int pp) {
  std::vector<bool> split;
  for (const int number :
       plan.StagesOf(plan.mesh.RankOf({/*dp=*/0, pp, /*tp=*/0}))) {
    const pipeline::StagePlan& stage = plan.stages[number];
    for (std::size_t k = 0; k < stage.buckets.size(); ++k) {
      split.push_back(stage.IsSplitBucket(static_cast<int>(k)));
    }
  }
  return split;
}

absl::Status Differ(const pipeline::Plan& plan, std::int64_t step,
                    const std::vector<std::vector<std::uint64_t>>& hashes,
                    const std::vector<int>& ranks, std::size_t bucket) {
  const std::uint64_t common = MostCommon(hashes, ranks, bucket);
  std::vector<int> alike, others;
  for (const int rank : ranks) {
    (hashes[rank][bucket] == common ? alike : others).push_back(rank);
  }
  return absl::DataLossError(absl::StrCat(
      "after step ", step, " ", Ranks(others),
      others.size() == 1 ? " has" : " have",
      " other parameters or optimizer states than ", Ranks(alike),
      ", first in ", BucketName(plan, ranks[0], bucket),
      ": a replica has missed an update, or computed another one. Go on from "
      "the checkpoint before; if the same machine differs again, leave it "
      "out. ",
      base::FieldName<&SavePolicy::compare_replicas>(),
      " = false saves the first replica's without a comparison"));
}

absl::Status Compare(const pipeline::Plan& plan, std::int64_t step,
                     const std::vector<std::vector<std::uint64_t>>& hashes,
                     const std::vector<int>& ranks, std::size_t bucket) {
  for (const int rank : ranks) {
    if (hashes[rank][bucket] == hashes[ranks[0]][bucket]) continue;
    return Differ(plan, step, hashes, ranks, bucket);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckReplicas(
    const pipeline::Plan& plan, std::int64_t step,
    const std::vector<std::vector<std::uint64_t>>& hashes) {
  for (int pp = 0; pp < plan.mesh.pp(); ++pp) {
    const std::vector<int> all = RanksOfStage(plan.mesh, pp, /*tp=*/-1);
    const int first = all[0];
    for (const int rank : all) {
      if (hashes[rank].size() == hashes[first].size()) continue;
      return absl::InternalError(absl::StrCat(
          "rank ", rank, " reports hashes of ", hashes[rank].size(),
          " buckets, and rank ", first, " of ", hashes[first].size(),
          "; run the same build of Troupe in all processes"));
    }
    const std::vector<bool> split = HavePieces(plan, pp);
    for (std::size_t bucket = 0; bucket < hashes[first].size(); ++bucket) {
      // Ranks along tp have pieces of their own.
      const bool pieces = bucket < split.size() && split[bucket];
      for (int tp = 0; tp < (pieces ? plan.mesh.tp() : 1); ++tp) {
        TROUPE_RETURN_IF_ERROR(
            Compare(plan, step, hashes,
                    pieces ? RanksOfStage(plan.mesh, pp, tp) : all, bucket));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors
