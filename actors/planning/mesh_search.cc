#include "actors/planning/mesh_search.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/planning/step_prediction.h"
#include "base/check.h"
#include "base/format_bytes.h"
#include "pipeline/mesh.h"
#include "pipeline/schedules/schedules.h"

namespace troupe::actors {
namespace {

// Returns the sizes of micro-batches to compare for replicas of `samples`.
std::vector<std::int64_t> SizesOf(const MeshSearch& search, int pp,
                                  std::int64_t samples) {
  if (search.micro_batch_size > 0) return {search.micro_batch_size};
  std::vector<std::int64_t> sizes;
  for (const int count : {pp, 2 * pp, 4 * pp}) {
    if (samples % count == 0) sizes.push_back(samples / count);
  }
  if (pp == 1 && sizes.empty()) return {samples};
  // A pipeline of fewer micro-batches than stages is better than none.
  if (sizes.empty()) sizes.push_back(1);
  return sizes;
}

absl::Status Check(const MeshSearch& search) {
  if (search.ranks < 1 || search.global_batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MeshSearch: ranks is ", search.ranks, " and global_batch_size ",
        search.global_batch_size, "; set both to 1 or more"));
  }
  if (search.spec_of == nullptr || search.measure == nullptr) {
    return absl::InvalidArgumentError(
        "MeshSearch: spec_of or measure is not set; set both");
  }
  return absl::OkStatus();
}

// Whether `a` is better than `b`: it fits, or would, sooner.
bool IsBetter(const JudgedMesh& a, const JudgedMesh& b) {
  const auto class_of = [](const JudgedMesh& mesh) {
    return mesh.status.ok()                         ? 0
           : absl::IsResourceExhausted(mesh.status) ? 1
                                                    : 2;
  };
  if (class_of(a) != class_of(b)) return class_of(a) < class_of(b);
  if (class_of(a) == 1) return a.bytes < b.bytes;
  return a.seconds != b.seconds ? a.seconds < b.seconds : a.bytes < b.bytes;
}

// Moves the one with the fewest stages to the front among those that are as
// fast as the fastest, as far as a prediction can tell.
void PutSimplestFirst(std::vector<JudgedMesh>& meshes) {
  constexpr double kAlike = 1.01;
  const auto cost = [](const JudgedMesh& judged) {
    return std::tuple(judged.mesh.recompute, judged.mesh.zero_stage,
                      judged.mesh.pp);
  };
  std::size_t simplest = 0;
  for (std::size_t i = 1; i < meshes.size() && meshes[i].status.ok(); ++i) {
    if (meshes[i].seconds > kAlike * meshes[0].seconds) break;
    if (cost(meshes[i]) < cost(meshes[simplest])) simplest = i;
  }
  if (simplest > 0) {
    std::rotate(meshes.begin(), meshes.begin() + simplest,
                meshes.begin() + simplest + 1);
  }
}

// Appends the choice with each schedule.
void AddSchedules(const MeshChoice& choice, std::vector<MeshChoice>& choices) {
  if (choice.pp == 1) {
    choices.push_back(choice);
    return;
  }
  for (const std::string& schedule : pipeline::ScheduleNames()) {
    for (const int chunks : {1, 2}) {
      choices.push_back(choice);
      choices.back().schedule = schedule;
      choices.back().virtual_stages = chunks;
    }
  }
}

class Judge {
 public:
  explicit Judge(const MeshSearch& search) : search_(search) {}

  absl::StatusOr<JudgedMesh> Of(const MeshChoice& mesh) {
    JudgedMesh judged;
    judged.mesh = mesh;
    const absl::StatusOr<JobSpec> spec = search_.spec_of(mesh);
    if (!spec.ok()) {
      judged.status = spec.status();
      return judged;
    }
    TROUPE_ASSIGN_OR_RETURN(const pipeline::ModelCosts* costs,
                            CostsOf(mesh, *spec));
    const absl::StatusOr<StepPrediction> step =
        PredictStep(*spec, costs, &search_.reductions);
    if (!step.ok()) {
      judged.status = step.status();
      return judged;
    }
    judged.seconds = step->seconds;
    judged.bubble = step->steady.bubble;
    judged.bytes_sent = step->bytes_sent;
    for (const ExpectedMemory& rank : step->memory) {
      judged.bytes = std::max(judged.bytes, rank.total());
    }
    judged.status = Fits(judged.bytes);
    return judged;
  }

 private:
  absl::StatusOr<const pipeline::ModelCosts*> CostsOf(const MeshChoice& mesh,
                                                      const JobSpec& spec) {
    const auto key = std::pair(mesh.micro_batch_size, mesh.recompute);
    const auto found = costs_.find(key);
    if (found != costs_.end()) return &found->second;
    TROUPE_ASSIGN_OR_RETURN(pipeline::ModelCosts costs, search_.measure(spec));
    return &costs_.emplace(key, std::move(costs)).first->second;
  }

  absl::Status Fits(double bytes) const {
    if (bytes <= search_.memory_limit) return absl::OkStatus();
    const auto text = [](double value) {
      return base::FormatBytes(static_cast<std::uint64_t>(value));
    };
    return absl::ResourceExhaustedError(absl::StrCat(
        "needs ", text(bytes), " a rank, ", text(bytes - search_.memory_limit),
        " more than ", text(search_.memory_limit),
        "; raise the limit, or take more stages"));
  }

  const MeshSearch& search_;
  std::map<std::pair<std::int64_t, bool>, pipeline::ModelCosts> costs_;
};

}  // namespace

std::vector<MeshChoice> MeshChoices(const MeshSearch& search) {
  std::vector<MeshChoice> choices;
  for (int pp = 1; pp <= search.ranks; ++pp) {
    const int dp = search.ranks / pp;
    if (search.ranks % pp != 0) continue;
    const std::int64_t samples =
        pipeline::LargestShare(search.global_batch_size, dp);
    MeshChoice choice;
    choice.dp = dp;
    choice.pp = pp;
    for (const std::int64_t size : SizesOf(search, pp, samples)) {
      choice.micro_batch_size = size;
      choice.micro_batches = static_cast<int>((samples + size - 1) / size);
      for (const bool recompute : {false, true}) {
        for (const int zero_stage : {0, 1}) {
          if ((recompute && !search.tries_recompute) ||
              (zero_stage > 0 && (!search.tries_zero || dp == 1))) {
            continue;
          }
          choice.recompute = recompute;
          choice.zero_stage = zero_stage;
          AddSchedules(choice, choices);
        }
      }
    }
  }
  return choices;
}

absl::StatusOr<std::vector<JudgedMesh>> JudgeMeshes(
    const MeshSearch& search,
    const std::function<void(int judged, int all)>& progress) {
  TROUPE_RETURN_IF_ERROR(Check(search));
  const std::vector<MeshChoice> choices = MeshChoices(search);
  Judge judge(search);
  // Indexed by pp, recomputation and ZeRO's stage.
  std::map<std::tuple<int, bool, int>, JudgedMesh> best;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (progress != nullptr) {
      progress(static_cast<int>(i), static_cast<int>(choices.size()));
    }
    TROUPE_ASSIGN_OR_RETURN(JudgedMesh judged, judge.Of(choices[i]));
    const auto key = std::tuple(judged.mesh.pp, judged.mesh.recompute,
                                judged.mesh.zero_stage);
    const auto [found, is_new] = best.try_emplace(key, judged);
    if (!is_new && IsBetter(judged, found->second)) found->second = judged;
  }
  std::vector<JudgedMesh> meshes;
  for (auto& [key, mesh] : best) {
    // One line says why a mesh cannot be.
    const bool is_told = key != std::tuple(mesh.mesh.pp, false, 0) &&
                         !mesh.status.ok() &&
                         !absl::IsResourceExhausted(mesh.status);
    if (!is_told) meshes.push_back(mesh);
  }
  std::stable_sort(meshes.begin(), meshes.end(), IsBetter);
  PutSimplestFirst(meshes);
  return meshes;
}

}  // namespace troupe::actors
