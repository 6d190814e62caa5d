#include "actors/planning/mesh_search.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/planning/step_prediction.h"
#include "actors/spec/division_checks.h"
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
  if (search.tp > 0 && search.ranks % search.tp != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("MeshSearch: tp is ", search.tp, ", and ranks is ",
                     search.ranks, "; set tp to a divisor, or to 0"));
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
                      judged.mesh.tp, judged.mesh.pp);
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

// Returns the error of a job that cannot be, or whose ranks along tp would be
// copies. Cheap: measures nothing.
absl::Status CheckDivision(const JobSpec& spec) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Optimizer> optimizer,
                          MakeOptimizer(spec));
  TROUPE_RETURN_IF_ERROR(CheckOwners(spec.plan, *optimizer));
  const bool splits = spec.plan.mesh.tp() > 1;
  if (!splits && !spec.plan.gathers_values() && !spec.plan.sequence_parallel) {
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(const pipeline::Plan plan,
                          MakeJobPlan(spec, spec.plan));
  if (splits && !plan.SplitsParameters()) {
    return absl::InvalidArgumentError(absl::StrCat(
        pipeline::AxisFieldName("tp"),
        ": no layer of the model is split, so its ranks would be copies; take "
        "more replicas"));
  }
  TROUPE_ASSIGN_OR_RETURN(const auto kernels,
                          OpenRankKernels(spec, /*local_rank=*/0));
  return CheckPieces(plan, *optimizer, *kernels);
}

class Judge {
 public:
  explicit Judge(const MeshSearch& search) : search_(search) {}

  absl::StatusOr<JudgedMesh> Of(const MeshChoice& mesh) {
    JudgedMesh judged;
    judged.mesh = mesh;
    const absl::StatusOr<JobSpec> spec = search_.spec_of(mesh);
    judged.status = spec.ok() ? CheckDivision(*spec) : spec.status();
    if (!judged.status.ok()) return judged;
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
    const auto key = std::tuple(mesh.micro_batch_size, mesh.tp, mesh.recompute);
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
        "; raise the limit, or take more ranks"));
  }

  const MeshSearch& search_;
  // Indexed by size of micro-batch, ranks along tp, and recomputation.
  std::map<std::tuple<std::int64_t, int, bool>, pipeline::ModelCosts> costs_;
};

// Appends the choices on `choice`'s mesh.
void AddSizes(const MeshSearch& search, MeshChoice choice,
              std::vector<MeshChoice>& choices) {
  const std::int64_t samples =
      pipeline::LargestShare(search.global_batch_size, choice.dp);
  for (const std::int64_t size : SizesOf(search, choice.pp, samples)) {
    choice.micro_batch_size = size;
    choice.micro_batches = static_cast<int>((samples + size - 1) / size);
    for (const bool recompute : {false, true}) {
      if (recompute && !search.tries_recompute) continue;
      choice.recompute = recompute;
      for (const int stage : search.zero_stages) {
        if (stage > 0 && choice.dp == 1) continue;
        choice.zero_stage = stage;
        AddSchedules(choice, choices);
      }
    }
  }
}

// Size of the mesh, recomputation, and ZeRO's stage.
using Layout = std::tuple<int, int, bool, int>;

Layout LayoutOf(const MeshChoice& mesh) {
  return {mesh.tp, mesh.pp, mesh.recompute, mesh.zero_stage};
}

// Whether the choice cannot be, and could not without recomputation, or without
// ZeRO: one line is enough.
bool IsTold(const JudgedMesh& judged,
            const std::map<Layout, JudgedMesh>& best) {
  const auto cannot_be = [](const absl::Status& status) {
    return !status.ok() && !absl::IsResourceExhausted(status);
  };
  if (!cannot_be(judged.status)) return false;
  MeshChoice kept = judged.mesh, whole = judged.mesh;
  kept.recompute = false;
  whole.zero_stage = 0;
  for (const MeshChoice& other : {kept, whole}) {
    const Layout layout = LayoutOf(other);
    if (layout == LayoutOf(judged.mesh)) continue;
    const auto found = best.find(layout);
    if (found != best.end() && cannot_be(found->second.status)) return true;
  }
  return false;
}

}  // namespace

std::vector<MeshChoice> MeshChoices(const MeshSearch& search) {
  std::vector<MeshChoice> choices;
  for (int tp = 1; tp <= search.ranks; ++tp) {
    if (search.ranks % tp != 0 || (search.tp > 0 && tp != search.tp)) continue;
    for (int pp = 1; pp <= search.ranks / tp; ++pp) {
      if (search.ranks / tp % pp != 0) continue;
      MeshChoice choice;
      choice.dp = search.ranks / tp / pp;
      choice.pp = pp;
      choice.tp = tp;
      AddSizes(search, choice, choices);
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
  std::map<Layout, JudgedMesh> best;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (progress != nullptr) {
      progress(static_cast<int>(i), static_cast<int>(choices.size()));
    }
    TROUPE_ASSIGN_OR_RETURN(JudgedMesh judged, judge.Of(choices[i]));
    const auto [found, is_new] =
        best.try_emplace(LayoutOf(judged.mesh), judged);
    if (!is_new && IsBetter(judged, found->second)) found->second = judged;
  }
  std::vector<JudgedMesh> meshes;
  for (const auto& [layout, mesh] : best) {
    if (!IsTold(mesh, best)) meshes.push_back(mesh);
  }
  std::stable_sort(meshes.begin(), meshes.end(), IsBetter);
  PutSimplestFirst(meshes);
  return meshes;
}

}  // namespace troupe::actors
