#include "actors/job_runtime.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/calibrate.h"
#include "base/check.h"
#include "comm/local/local_group.h"

namespace troupe::actors {
namespace {

absl::Status CheckSpec(const JobSpec& spec) {
  const char* missing = !spec.model       ? "model"
                        : !spec.loss      ? "loss"
                        : !spec.optimizer ? "optimizer"
                        : !spec.train     ? "train"
                                          : nullptr;
  if (missing != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("JobSpec: ", missing, " is not set"));
  }
  const std::pair<const char*, std::int64_t> counts[] = {
      {"steps", spec.steps}, {"epochs", spec.epochs}};
  for (const auto& [name, count] : counts) {
    if (count >= 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("JobSpec: ", name, " is ", count, ", at least 0"));
  }
  if (spec.steps > 0 && spec.epochs > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("JobSpec: steps is ", spec.steps, " and epochs is ",
                     spec.epochs, "; set one of them"));
  }
  return absl::OkStatus();
}

// Collectives of one rank in flight: every bucket of a step, and the loss.
int InFlightMax(const pipeline::Plan& plan) {
  std::size_t buckets = 0;
  for (const pipeline::StagePlan& stage : plan.stages) {
    buckets = std::max(buckets, stage.buckets.size());
  }
  int in_flight = comm::LocalGroupOptions().in_flight_max;
  while (in_flight < static_cast<int>(buckets) + 1) in_flight *= 2;
  return in_flight;
}

absl::Status CheckSize(const pipeline::Plan& plan) {
  if (plan.mesh.size() > comm::kLocalGroupSizeMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mesh ", plan.mesh.ToString(), " has ", plan.mesh.size(),
        " ranks; one process has at most ", comm::kLocalGroupSizeMax));
  }
  if (InFlightMax(plan) > comm::kLocalGroupInFlightMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a stage has more than ", comm::kLocalGroupInFlightMax - 1,
                     " gradient buckets; make bucket_bytes larger"));
  }
  return absl::OkStatus();
}

// One group for the whole job and one per stage, by rank.
void MakeGroups(JobRuntime& runtime) {
  const pipeline::Mesh& mesh = runtime.plan.mesh;
  comm::LocalGroupOptions options;
  options.in_flight_max = InFlightMax(runtime.plan);
  options.size = mesh.size();
  runtime.world = comm::MakeLocalGroup(options);
  runtime.dp.resize(mesh.size());
  options.size = mesh.dp();
  for (int stage = 0; stage < mesh.pp(); ++stage) {
    auto group = comm::MakeLocalGroup(options);
    for (int dp = 0; dp < mesh.dp(); ++dp) {
      runtime.dp[mesh.RankOf({dp, stage})] = std::move(group[dp]);
    }
  }
}

data::SamplerOptions SamplerOptionsOf(const JobRuntime& runtime) {
  data::SamplerOptions options;
  options.dataset_size = runtime.spec.train->size();
  options.global_batch_size = runtime.plan.global_batch_size;
  options.seed = runtime.spec.seed;
  options.shuffle = runtime.spec.shuffle;
  options.data = runtime.spec.data;
  return options;
}

// Opens the checkpoint to go on from, if there is one, and puts the sampler
// where it stands there.
absl::Status FindStart(JobRuntime& runtime) {
  const JobSpec& spec = runtime.spec;
  TROUPE_ASSIGN_OR_RETURN(data::Sampler sampler,
                          data::Sampler::Create(SamplerOptionsOf(runtime)));
  runtime.sampler.emplace(std::move(sampler));
  if (!spec.checkpoint.resume || spec.checkpoint.dir.empty()) {
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> latest =
      FindLatestCheckpoint(*runtime.files, spec.checkpoint.dir);
  if (absl::IsNotFound(latest.status())) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(latest.status());
  TROUPE_ASSIGN_OR_RETURN(Checkpoint checkpoint,
                          Checkpoint::Open(*runtime.files, *latest));
  if (checkpoint.state().seed != spec.seed) {
    return absl::InvalidArgumentError(absl::StrCat(
        *latest, " was written with seed ", checkpoint.state().seed,
        ", this job has ", spec.seed, "; set train.seed to go on with it"));
  }
  runtime.first_step = checkpoint.state().step;
  const absl::Status status = runtime.sampler->Load(checkpoint.state().sampler);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(*latest, ": ", status.message()));
  }
  runtime.checkpoint = std::make_shared<Checkpoint>(std::move(checkpoint));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobRuntimePtr> MakeJobRuntime(const JobSpec& spec,
                                             JobObserver* observer) {
  TROUPE_RETURN_IF_ERROR(CheckSpec(spec));
  auto runtime = std::make_shared<JobRuntime>();
  runtime->spec = spec;
  runtime->observer = observer;
  pipeline::PlanOptions options = spec.plan;
  const std::unique_ptr<nn::Optimizer> optimizer = spec.optimizer();
  if (optimizer == nullptr) {
    return absl::InvalidArgumentError("JobSpec: optimizer made none");
  }
  options.reductions.update_needs_all_buckets = optimizer->NeedsAllBuckets();
  options.fuse_updates = options.fuse_updates && optimizer->IsElementwise();
  if (options.inline_bytes < 0) {
    options.inline_bytes = MeasureInlineBytes(options.mesh.size());
  }
  TROUPE_ASSIGN_OR_RETURN(
      runtime->plan,
      pipeline::MakePlan(options, spec.model, spec.train->spec().input_shape,
                         spec.dtype, spec.device));
  const pipeline::Plan& plan = runtime->plan;
  TROUPE_RETURN_IF_ERROR(CheckSize(plan));
  for (int rank = 0; rank < plan.mesh.size(); ++rank) {
    runtime->tables.push_back(plan.StageOf(rank).train);
  }
  runtime->files = spec.checkpoint.files;
  if (runtime->files == nullptr) {
    runtime->own_files = std::make_unique<base::PosixFileSystem>();
    runtime->files = runtime->own_files.get();
  }
  TROUPE_RETURN_IF_ERROR(FindStart(*runtime));
  runtime->steps = spec.steps;
  if (spec.epochs > 0) {
    runtime->steps =
        runtime->first_step + runtime->sampler->BatchesUntil(spec.epochs);
  }
  MakeGroups(*runtime);
  return runtime;
}

}  // namespace troupe::actors
