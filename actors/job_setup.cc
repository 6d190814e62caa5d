#include "actors/job_setup.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/calibrate.h"
#include "actors/checkpoint/claim.h"
#include "actors/checkpoint/plan_file.h"
#include "actors/resume.h"
#include "base/check.h"
#include "base/cpu_cores.h"
#include "base/field_error.h"
#include "comm/local/local_group.h"
#include "pipeline/plan_diff.h"

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
  if (!(spec.loss_scale > 0) || std::isinf(spec.loss_scale)) {
    return base::FieldError<&JobSpec::loss_scale>(
        absl::StrCat(base::FieldName<&JobSpec::loss_scale>(), " is ",
                     spec.loss_scale, ", must be above 0"));
  }
  return CheckNumbers(spec);
}

// Collectives of one rank in flight: every bucket of its chunks, and the loss.
int InFlightMax(const pipeline::Plan& plan) {
  std::vector<std::size_t> at(plan.mesh.pp());
  for (const pipeline::StagePlan& stage : plan.stages) {
    at[stage.place.pp] += stage.buckets.size();
  }
  const std::size_t buckets = *std::max_element(at.begin(), at.end());
  int in_flight = comm::LocalGroupOptions().in_flight_max;
  while (in_flight < static_cast<int>(buckets) + 1) in_flight *= 2;
  return in_flight;
}

absl::Status CheckBuckets(const pipeline::Plan& plan) {
  if (InFlightMax(plan) <= comm::kLocalGroupInFlightMax) {
    return absl::OkStatus();
  }
  return base::FieldError<&pipeline::BucketOptions::bucket_bytes>(absl::StrCat(
      "a stage has more than ", comm::kLocalGroupInFlightMax - 1,
      " gradient buckets; make ",
      base::FieldName<&pipeline::BucketOptions::bucket_bytes>(), " larger"));
}

using comm::Group;

Group MakeGroup(const comm::LocalGroupOptions& options,
                const TestHooks* hooks) {
  return hooks != nullptr && hooks->make_group ? hooks->make_group(options)
                                               : comm::MakeLocalGroup(options);
}

// The layers' own groups of all ranks, by rank: one for each axis that has
// peers and that layers ask for. One collective of a layer is in flight at a
// time.
std::vector<std::vector<AxisGroup>> MakeLayerGroups(const pipeline::Plan& plan,
                                                    const TestHooks* hooks) {
  const pipeline::Mesh& mesh = plan.mesh;
  std::vector<std::vector<AxisGroup>> groups(mesh.size());
  std::set<std::string> axes;
  for (const pipeline::StagePlan& stage : plan.stages) {
    axes.insert(stage.layer_axes.begin(), stage.layer_axes.end());
  }
  comm::LocalGroupOptions options;
  options.in_flight_max = 2;
  for (const std::string& axis : axes) {
    options.size = mesh.SizeOf(axis);
    if (options.size == 1) continue;
    for (int rank = 0; rank < mesh.size(); ++rank) {
      if (mesh.CoordOf(rank, axis) != 0) continue;
      Group group = MakeGroup(options, hooks);
      const std::vector<int> peers = mesh.Group(rank, axis);
      for (std::size_t i = 0; i < peers.size(); ++i) {
        groups[peers[i]].push_back({axis, std::move(group[i])});
      }
    }
  }
  return groups;
}

// The contexts of all ranks, with one group for the whole job and one for each
// stage.
std::vector<RankContextPtr> MakeRanks(const ProcessContext& process) {
  const pipeline::Plan& plan = *process.plan;
  const pipeline::Mesh& mesh = plan.mesh;
  comm::LocalGroupOptions options;
  options.in_flight_max = InFlightMax(plan);
  options.size = mesh.size();
  Group world = MakeGroup(options, process.hooks);
  Group dp(mesh.size());
  options.size = mesh.dp();
  for (int stage = 0; stage < mesh.pp(); ++stage) {
    Group group = MakeGroup(options, process.hooks);
    for (int i = 0; i < mesh.dp(); ++i) {
      dp[mesh.RankOf({i, stage})] = std::move(group[i]);
    }
  }
  auto layer_groups = MakeLayerGroups(plan, process.hooks);
  std::vector<RankContextPtr> ranks;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    auto context = std::make_shared<RankContext>();
    context->rank = rank;
    context->coords = mesh.CoordsOf(rank);
    context->generation = process.generation;
    context->spec = process.spec;
    context->plan = process.plan;
    context->span = process.span;
    context->train_table = plan.RankPlanOf(rank).train;
    context->world = std::move(world[rank]);
    context->dp = std::move(dp[rank]);
    context->layer_groups = std::move(layer_groups[rank]);
    context->start_threads = std::max(1, process.cores / mesh.size());
    context->hooks = process.hooks;
    if (process.hooks != nullptr && process.hooks->edit_table) {
      process.hooks->edit_table(rank, context->train_table);
    }
    ranks.push_back(std::move(context));
  }
  return ranks;
}

data::SamplerOptions SamplerOptionsOf(const JobSpec& spec,
                                      const pipeline::Plan& plan) {
  data::SamplerOptions options;
  options.dataset_size = spec.train->size();
  options.global_batch_size = plan.global_batch_size;
  options.seed = spec.seed;
  options.shuffle = spec.shuffle;
  options.data = spec.data;
  return options;
}

// The steps of the run, from where `checkpoint` (or nothing) left off.
absl::StatusOr<std::shared_ptr<const RunSpan>> MakeSpan(
    const JobSpec& spec, const pipeline::Plan& plan,
    const Checkpoint* checkpoint) {
  TROUPE_ASSIGN_OR_RETURN(data::Sampler sampler,
                          data::Sampler::Create(SamplerOptionsOf(spec, plan)));
  auto span = std::make_shared<RunSpan>(std::move(sampler));
  if (checkpoint != nullptr) {
    span->first_step = checkpoint->state().step;
    const absl::Status status = span->sampler.Load(checkpoint->state().sampler);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(checkpoint->path(), ": ",
                                                      status.message()));
    }
  }
  span->steps = spec.epochs > 0
                    ? span->first_step + span->sampler.BatchesUntil(spec.epochs)
                    : spec.steps;
  return span;
}

// The plan of the run that wrote the checkpoint; nothing where it is not known.
using SavedPlan = absl::StatusOr<std::optional<pipeline::Plan>>;

SavedPlan ReadSavedPlan(base::FileSystem& files, const Checkpoint* checkpoint) {
  if (checkpoint == nullptr) return std::optional<pipeline::Plan>();
  return ReadPlanFile(files, checkpoint->path());
}

// For people only, so a file that is damaged is told, and no error.
std::vector<std::string> PlanChanges(const SavedPlan& saved,
                                     const pipeline::Plan& plan) {
  if (!saved.ok()) return {std::string(saved.status().message())};
  if (!saved->has_value()) return {};
  return pipeline::Diff(**saved, plan);
}

// Measured, but once for a run and those that go on with it: what is measured
// again comes out a little different, and would seem to be another plan.
std::int64_t InlineBytes(const pipeline::PlanOptions& options, int cores,
                         const SavedPlan& saved) {
  if (options.inline_bytes >= 0) return options.inline_bytes;
  if (saved.ok() && saved->has_value() && (*saved)->inline_bytes >= 0 &&
      (*saved)->mesh == options.mesh && (*saved)->kernels == options.kernels) {
    return (*saved)->inline_bytes;
  }
  return MeasureInlineBytes(options.mesh.size(), cores);
}

absl::StatusOr<std::shared_ptr<const pipeline::Plan>> MakeJobPlan(
    const JobSpec& spec, int cores, const SavedPlan& saved) {
  pipeline::PlanOptions options = spec.plan;
  const std::unique_ptr<nn::Optimizer> optimizer = spec.optimizer();
  if (optimizer == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(base::FieldName<&JobSpec::optimizer>(), " made none"));
  }
  if (optimizer->MaySkipSteps() && options.mesh.pp() > 1) {
    const std::string stages = pipeline::AxisFieldName("pp");
    return base::WithFields(
        absl::UnimplementedError(
            absl::StrCat("an optimizer that may skip steps needs ", stages,
                         " = 1: stages do not tell one another yet")),
        {stages});
  }
  options.reductions.update_needs_all_buckets = optimizer->NeedsAllBuckets();
  options.fuse_updates = options.fuse_updates && optimizer->IsElementwise();
  // Inline are reductions of what the very thread has computed.
  if (!spec.device.is_host()) options.inline_bytes = 0;
  TROUPE_ASSIGN_OR_RETURN(const auto kernels, OpenRankKernels(spec));
  options.kernels = kernels->Describe();
  options.inline_bytes = InlineBytes(options, cores, saved);
  options.loss_scale = spec.loss_scale;
  options.data_dtype = spec.dtype;
  const data::SampleSpec& sample = spec.train->spec();
  const nn::DType input =
      nn::IsFloating(sample.input_dtype) ? spec.dtype : sample.input_dtype;
  TROUPE_ASSIGN_OR_RETURN(
      pipeline::Plan plan,
      pipeline::MakePlan(options, spec.model, sample.input_shape, input,
                         spec.device));
  TROUPE_RETURN_IF_ERROR(CheckBuckets(plan));
  return std::make_shared<const pipeline::Plan>(std::move(plan));
}

}  // namespace

absl::StatusOr<JobSetup> SetUpJob(const JobSpec& spec, JobObserver* observer,
                                  const TestHooks* hooks) {
  TROUPE_RETURN_IF_ERROR(CheckSpec(spec));
  auto process = std::make_shared<ProcessContext>();
  process->spec = std::make_shared<const JobSpec>(spec);
  process->cores = base::AvailableCores();
  process->generation = 1;
  process->files = spec.checkpoint.files;
  if (process->files == nullptr) {
    process->own_files = std::make_unique<base::PosixFileSystem>();
    process->files = process->own_files.get();
  }
  process->claim = spec.checkpoint.claim;
  if (process->claim == nullptr && !spec.checkpoint.dir.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        process->claim, ClaimCheckpoints(*process->files, spec.checkpoint.dir));
  }
  TROUPE_ASSIGN_OR_RETURN(process->resume, OpenResume(spec, *process->files));
  const SavedPlan saved =
      ReadSavedPlan(*process->files, process->resume.checkpoint.get());
  TROUPE_ASSIGN_OR_RETURN(process->plan,
                          MakeJobPlan(spec, process->cores, saved));
  process->plan_changes = PlanChanges(saved, *process->plan);
  TROUPE_ASSIGN_OR_RETURN(
      process->span,
      MakeSpan(spec, *process->plan, process->resume.checkpoint.get()));
  TROUPE_RETURN_IF_ERROR(MatchKeys(spec, process->resume));
  process->observer = observer;
  process->hooks = hooks;
  process->ranks = MakeRanks(*process);
  auto checkpoint = std::exchange(process->resume.checkpoint, nullptr);
  return JobSetup{std::move(process), std::move(checkpoint)};
}

}  // namespace troupe::actors
