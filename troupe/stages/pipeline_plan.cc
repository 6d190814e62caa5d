#include "troupe/stages/pipeline_plan.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_error.h"
#include "nn/tensor/device.h"
#include "pipeline/plan_json.h"
#include "pipeline/schedules/schedules.h"
#include "troupe/internal/gather_numbers.h"

namespace troupe {
namespace {

[[noreturn]] void RefusePlan(const std::string& what) {
  throw base::StatusError(
      absl::InvalidArgumentError(absl::StrCat("PipelineParallel: ", what)));
}

// Returns `result`, or throws its error.
template <typename T>
T Planned(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  throw base::StatusError(absl::Status(
      result.status().code(),
      absl::StrCat("PipelineParallel: ", result.status().message())));
}

void CheckMesh(const pipeline::Mesh& mesh) {
  for (const pipeline::Axis& axis : mesh.axes()) {
    if (axis.size == 1 || axis.name == "dp" || axis.name == "pp") continue;
    RefusePlan(absl::StrCat(
        "SpawnOptions::mesh is ", mesh.ToString(),
        ", and a pipeline has ranks along dp and pp alone; leave out ",
        axis.name));
  }
}

void CheckBatch(const PipelineOptions& options) {
  const Shape& batch = options.batch;
  if (options.micro_batches < 1) {
    RefusePlan(absl::StrCat("PipelineOptions.micro_batches is ",
                            options.micro_batches, ", must be at least 1"));
  }
  if (batch.rank() == 0 || batch.numel() == 0) {
    RefusePlan(absl::StrCat(
        "PipelineOptions.batch is ", batch.ToString(),
        "; give the shape of the inputs of one Run(), such as {32, 784}"));
  }
  if (batch[0] % options.micro_batches != 0) {
    RefusePlan(absl::StrCat(
        "PipelineOptions.batch is ", batch.ToString(), ", whose ", batch[0],
        " samples do not part into micro_batches = ", options.micro_batches,
        " of equal sizes; take a divisor"));
  }
}

// Returns the number of chunks of a rank.
int ChunksOf(const PipelineOptions& options, const pipeline::Mesh& mesh) {
  const int stages = static_cast<int>(options.cuts.size()) + 1;
  int chunks = std::max(1, stages / mesh.pp());
  for (const pipeline::NamedSchedule& schedule : pipeline::NamedSchedules()) {
    if (schedule.name == options.schedule && schedule.chunks > 0) {
      chunks = schedule.chunks;
    }
  }
  if (chunks * mesh.pp() == stages) return chunks;
  const std::string holds =
      chunks == 1 ? "" : absl::StrCat(", each with ", chunks, " stages");
  RefusePlan(absl::StrCat(
      "PipelineOptions.cuts has ", options.cuts.size(), ", which makes ",
      stages, " stages, and SpawnOptions::mesh is ", mesh.ToString(),
      ": schedule \"", options.schedule, "\" needs ", chunks * mesh.pp(),
      " stages for ", mesh.pp(), " rank(s) along pp", holds, "; give ",
      chunks * mesh.pp() - 1, " cuts, or set SpawnOptions::mesh, such as to ",
      "pipeline::Mesh(/*dp=*/1, /*pp=*/", std::max(1, stages / chunks), ")"));
}

}  // namespace

pipeline::Plan MakePipelinePlan(Rank& rank, const actors::JobModel& make,
                                const PipelineOptions& options) {
  const pipeline::Mesh& mesh = rank.mesh();
  CheckMesh(mesh);
  CheckBatch(options);
  if (!make) RefusePlan("the function that makes the model is null; set it");
  pipeline::PlanOptions plan;
  plan.mesh = mesh;
  plan.cuts = options.cuts;
  plan.global_batch_size = options.batch[0] * mesh.dp();
  plan.micro_batch_size = options.batch[0] / options.micro_batches;
  plan.virtual_stages = ChunksOf(options, mesh);
  plan.fuse_updates = false;
  plan.inline_bytes = 0;
  plan.reductions.update_needs_all_buckets = true;
  const absl::Status scheduled = pipeline::SetSchedule(options.schedule, plan);
  if (!scheduled.ok()) RefusePlan(std::string(scheduled.message()));
  return Planned(pipeline::MakePlan(plan, make,
                                    Shape(options.batch.dims().subspan(1)),
                                    options.dtype, rank.kernels().device()));
}

void ComparePlans(Rank& rank, const pipeline::Plan& plan) {
  pipeline::Plan compared = plan;
  compared.device = nn::Device();  // its number differs
  const auto own = static_cast<std::int64_t>(pipeline::PlanHash(compared));
  const actors::CallNote::Scope call(rank.strand().call(), "PipelineParallel",
                                     {});
  const std::vector<std::int64_t> hashes =
      base::OrThrow(GatherNumbers(rank, rank.world(), {own}));
  for (int r = 1; r < rank.size(); ++r) {
    if (hashes[r] == hashes[0]) continue;
    RefusePlan(absl::StrCat(
        "rank ", r,
        " has another model or other options than rank 0; all "
        "ranks of a pipeline must make the same model with the same "
        "PipelineOptions"));
  }
}

}  // namespace troupe
