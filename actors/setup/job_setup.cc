#include "actors/setup/job_setup.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/checkpoint/plan_file.h"
#include "actors/planning/calibrate.h"
#include "actors/planning/dtype_choice.h"
#include "actors/planning/mesh_choice.h"
#include "actors/planning/pipeline_choice.h"
#include "actors/setup/group_makers.h"
#include "actors/setup/rank_setup.h"
#include "actors/setup/resume.h"
#include "actors/setup/settings.h"
#include "actors/spec/division_checks.h"
#include "actors/spec/optimizer_states.h"
#include "base/check.h"
#include "base/cpu_cores.h"
#include "base/field_error.h"
#include "data/description/compare_data.h"
#include "nn/optim/optimizer_options.h"
#include "nn/optim/sgd.h"
#include "pipeline/plan_diff.h"

namespace troupe::actors {
namespace {

// Checks that a job which keeps the best checkpoint, or may stop early, has
// evaluations.
absl::Status CheckEvaluations(const JobSpec& spec) {
  const bool stops = spec.early_stop_patience > 0;
  if (!stops && !spec.checkpoint.keep_best) return absl::OkStatus();
  const std::string patience = base::FieldName<&JobSpec::early_stop_patience>();
  const std::string keep = base::FieldName<&CheckpointOptions::keep_best>();
  const auto refuse = [&](absl::string_view why) {
    return base::WithFields(absl::InvalidArgumentError(absl::StrCat(
                                stops ? patience : keep, " is set, but ", why)),
                            {stops ? patience : keep});
  };
  if (spec.test == nullptr) {
    return refuse(
        "the data have no test samples to evaluate; hold some back, or leave "
        "it unset");
  }
  if (stops && spec.eval_every == 0 && !spec.eval_each_epoch) {
    return refuse(absl::StrCat("nothing is evaluated before the end; set ",
                               base::FieldName<&JobSpec::eval_every>()));
  }
  if (spec.checkpoint.best_metric == kEvalAccuracy &&
      !SamplesOf(spec)->spec().is_classification()) {
    return base::FieldError<&CheckpointOptions::best_metric>(absl::StrCat(
        base::FieldName<&CheckpointOptions::best_metric>(), " = \"",
        kEvalAccuracy, "\", but the data are no classes; take \"", kEvalLoss,
        "\""));
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const JobSpec& spec) {
  const bool has_loss = spec.loss || spec.training_step;
  const bool has_optimizer = spec.optimizer || spec.train == nullptr;
  const char* missing = !spec.model      ? "model"
                        : !has_loss      ? "loss"
                        : !has_optimizer ? "optimizer"
                                         : nullptr;
  if (missing != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("JobSpec: ", missing, " is not set; set it"));
  }
  TROUPE_RETURN_IF_ERROR(CheckNumbers(spec));
  TROUPE_RETURN_IF_ERROR(CheckSamples(spec));
  return CheckEvaluations(spec);
}

data::SamplerOptions SamplerOptionsOf(const JobSpec& spec,
                                      const pipeline::Plan& plan) {
  data::SamplerOptions options;
  options.dataset_size = spec.train->size();
  options.global_batch_size = plan.global_batch_size;
  options.seed = spec.seed;
  options.shuffle = spec.shuffle;
  options.drop_last = spec.drop_last;
  options.weights = spec.sample_weights;
  options.data = spec.data;
  return options;
}

// Adds to the error of other data than the checkpoint's which one it is.
absl::Status OfCheckpoint(const absl::Status& status,
                          const Checkpoint& checkpoint) {
  return base::WithMessage(
      status, absl::StrCat(checkpoint.path(), ": ", status.message()));
}

// Returns the span of a job that only evaluates.
absl::StatusOr<std::shared_ptr<const RunSpan>> SpanOfEvaluation(
    const JobSpec& spec, const Checkpoint* checkpoint) {
  if (checkpoint == nullptr) return std::make_shared<const RunSpan>(0);
  const absl::Status status =
      data::CompareTestData(checkpoint->state().sampler.data, spec.data);
  if (!status.ok()) return OfCheckpoint(status, *checkpoint);
  return std::make_shared<const RunSpan>(checkpoint->state().step);
}

// Returns the steps of the run, after those of `checkpoint` if it is not null.
absl::StatusOr<std::shared_ptr<const RunSpan>> MakeSpan(
    const JobSpec& spec, const pipeline::Plan& plan,
    const Checkpoint* checkpoint) {
  if (spec.train == nullptr) return SpanOfEvaluation(spec, checkpoint);
  TROUPE_ASSIGN_OR_RETURN(data::Sampler sampler,
                          data::Sampler::Create(SamplerOptionsOf(spec, plan)));
  auto span = std::make_shared<RunSpan>(std::move(sampler));
  if (checkpoint != nullptr) {
    span->first_step = checkpoint->state().step;
    const absl::Status status =
        span->sampler->Load(checkpoint->state().sampler);
    if (!status.ok()) return OfCheckpoint(status, *checkpoint);
  }
  span->steps = spec.epochs > 0 ? span->first_step +
                                      span->sampler->BatchesUntil(spec.epochs)
                                : spec.steps;
  return span;
}

// The plan of the run that wrote the checkpoint; nothing if it has none.
using SavedPlan = absl::StatusOr<std::optional<pipeline::Plan>>;

SavedPlan ReadSavedPlan(base::FileSystem& files, const Checkpoint* checkpoint) {
  if (checkpoint == nullptr) return std::optional<pipeline::Plan>();
  return ReadPlanFile(files, checkpoint->path());
}

// Returns the limit on inline reductions. Each run chooses it anew, by where
// its ranks are: a limit that suits one process would keep several from
// overlapping, and the reverse. No bit depends on it.
std::int64_t InlineBytes(const JobSpec& spec, int cores) {
  if (spec.plan.inline_bytes >= 0) return spec.plan.inline_bytes;
  return spec.cluster && spec.cluster->processes > 1
             ? kSpanningInlineBytes
             : MeasureInlineBytes(spec.plan.mesh.size(), cores);
}

int ProcessesOf(const JobSpec& spec) {
  return spec.cluster ? spec.cluster->processes : 1;
}

// Returns the order in which reductions add up the ranks' elements.
absl::StatusOr<std::string> ReductionOrderOf(const JobSpec& spec) {
  absl::StatusOr<std::string> order = ChooseReductionOrder(
      base::FieldName<&pipeline::PlanOptions::reduction_order>(),
      spec.plan.reduction_order,
      {spec.device, spec.plan.mesh.size(), ProcessesOf(spec)});
  if (order.ok()) return order;
  return base::WithFields<&pipeline::PlanOptions::reduction_order>(
      order.status());
}

absl::StatusOr<std::shared_ptr<const pipeline::Plan>> MakeJobPlan(
    const JobSpec& spec, std::int64_t inline_bytes) {
  pipeline::PlanOptions options = spec.plan;
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Optimizer> optimizer,
                          MakeOptimizer(spec));
  if (spec.dynamic_loss_scale && !optimizer->MaySkipSteps()) {
    using Options = nn::OptimizerOptions;
    return base::FieldError<&JobSpec::dynamic_loss_scale,
                            &Options::skip_nonfinite>(
        absl::StrCat(base::FieldName<&JobSpec::dynamic_loss_scale>(),
                     " is for an optimizer that skips steps; set ",
                     base::FieldName<&Options::skip_nonfinite>(), " = true"));
  }
  TROUPE_RETURN_IF_ERROR(CheckOwners(options, *optimizer));
  TROUPE_ASSIGN_OR_RETURN(options.reduction_order, ReductionOrderOf(spec));
  SetNeedsOfUpdates(*optimizer, options.reductions);
  options.fuse_updates = options.fuse_updates && optimizer->IsElementwise();
  // Inline reductions need gradients of the calling thread, not of a device.
  options.inline_bytes = spec.device.is_host() ? inline_bytes : 0;
  TROUPE_ASSIGN_OR_RETURN(const auto kernels,
                          OpenRankKernels(spec, /*local_rank=*/0));
  options.kernels = kernels->Describe();
  options.algorithms = spec.kernel_choices->Known();
  options.loss_scale = spec.loss_scale;
  options.dynamic_loss_scale = spec.dynamic_loss_scale;
  options.data_dtype = spec.dtype;
  TROUPE_ASSIGN_OR_RETURN(pipeline::Plan plan, MakeJobPlan(spec, options));
  TROUPE_RETURN_IF_ERROR(CheckPieces(plan, *optimizer, *kernels));
  TROUPE_RETURN_IF_ERROR(CheckBuckets(plan));
  return std::make_shared<const pipeline::Plan>(std::move(plan));
}

// Returns JobInfo::plan_changes. They are only for people to read, so a damaged
// file is reported there, and is no error.
absl::StatusOr<std::vector<std::string>> PlanChanges(
    const JobSpec& spec, const SavedPlan& saved, const pipeline::Plan& plan) {
  if (!saved.ok()) {
    return std::vector<std::string>{std::string(saved.status().message())};
  }
  if (!saved->has_value()) return std::vector<std::string>();
  // Algorithms are left out: kernels report a changed one when they need it.
  pipeline::Plan old = **saved;
  old.algorithms = plan.algorithms;
  if (old.inline_bytes == plan.inline_bytes) return pipeline::Diff(old, plan);
  // The limit on inline reductions is left out, since it changes no result.
  TROUPE_ASSIGN_OR_RETURN(const auto alike,
                          MakeJobPlan(spec, old.inline_bytes));
  return pipeline::Diff(old, *alike);
}

// Puts a spec in which something was chosen in the place of the one before.
absl::Status Replace(absl::StatusOr<JobSpec> closed, ProcessContext& process) {
  if (!closed.ok()) return closed.status();
  process.spec = std::make_shared<const JobSpec>(*std::move(closed));
  return absl::OkStatus();
}

// Chooses the dtype of the spec, if it is open; `plan` may be null.
absl::Status CloseDType(const pipeline::Plan* plan, ProcessContext& process) {
  if (!process.spec->open_dtype.has_value()) return absl::OkStatus();
  return Replace(WithDType(*process.spec, plan), process);
}

// Chooses the mesh, if it is open, for the dtype that was chosen.
absl::Status CloseMesh(const pipeline::Plan* plan, ProcessContext& process) {
  if (!process.spec->open_mesh.has_value()) return absl::OkStatus();
  return Replace(WithMesh(*process.spec, plan), process);
}

// Lays out the job as process 0 has, if its mesh is open.
absl::Status AdoptMesh(const pipeline::Plan& plan, ProcessContext& process) {
  if (!process.spec->open_mesh.has_value()) return absl::OkStatus();
  return Replace(WithMeshOf(*process.spec, plan), process);
}

// Chooses the cuts, if they are open: measured in the dtype that was chosen.
absl::Status ClosePipeline(const pipeline::Plan* plan,
                           ProcessContext& process) {
  if (!process.spec->open_pipeline.has_value()) return absl::OkStatus();
  return Replace(WithPipeline(*process.spec, plan), process);
}

// Locks the folder of checkpoints, opens the one to resume, makes the plan.
absl::Status Decide(ProcessContext& process) {
  TROUPE_RETURN_IF_ERROR(process.folder.Lock());
  if (ProcessesOf(*process.spec) > 1) {
    TROUPE_RETURN_IF_ERROR(process.folder.SetMark());
  }
  base::FileSystem& files = process.folder.files();
  TROUPE_ASSIGN_OR_RETURN(process.resume, OpenResume(*process.spec, files));
  const SavedPlan saved = ReadSavedPlan(files, process.resume.checkpoint.get());
  const bool has_plan = saved.ok() && saved->has_value();
  const pipeline::Plan* const before = has_plan ? &**saved : nullptr;
  TROUPE_RETURN_IF_ERROR(CloseDType(before, process));
  TROUPE_RETURN_IF_ERROR(CloseMesh(before, process));
  TROUPE_RETURN_IF_ERROR(ClosePipeline(before, process));
  const JobSpec& spec = *process.spec;
  if (has_plan) spec.kernel_choices->Adopt((*saved)->algorithms);
  TROUPE_ASSIGN_OR_RETURN(process.plan,
                          MakeJobPlan(spec, InlineBytes(spec, process.cores)));
  TROUPE_ASSIGN_OR_RETURN(process.resume.plan_changes,
                          PlanChanges(spec, saved, *process.plan));
  return absl::OkStatus();
}

// Opens the weights that a fresh job begins with, and compares them with the
// model: a part without weights of the file would train from initial values,
// only worse.
absl::Status OpenWeights(ProcessContext& process) {
  const JobSpec& spec = *process.spec;
  if (spec.init.from.empty() || process.resume.checkpoint != nullptr) {
    return absl::OkStatus();
  }
  const std::string field = base::FieldName<&InitOptions::from>();
  absl::StatusOr<nn::WeightFile> weights =
      nn::WeightFile::Open(process.folder.files(), spec.init.from);
  if (!weights.ok()) return base::WithFields(weights.status(), {field});
  const std::unique_ptr<nn::Module> model = spec.model();
  const nn::WeightDifferences differences = weights->Compare(*model);
  if (differences.any() && spec.init.strict) {
    const std::string strict = base::FieldName<&InitOptions::strict>();
    const std::string advice =
        spec.init.advise != nullptr ? spec.init.advise(differences) : "";
    return base::WithFields(
        absl::InvalidArgumentError(
            absl::StrCat(weights->path(), " has the weights of another model; ",
                         differences.ToString(), advice.empty() ? "" : "; ",
                         advice, "; take a file of this model, or set ", strict,
                         " = false to take what fits")),
        {field, strict});
  }
  if (differences.any() && spec.note != nullptr) {
    spec.note(absl::StrCat("taking what fits from ", weights->path(), "; ",
                           differences.ToString()));
  }
  auto with_weights = std::make_shared<JobSpec>(spec);
  with_weights->init.weights =
      std::make_shared<const nn::WeightFile>(*std::move(weights));
  process.spec = std::move(with_weights);
  return absl::OkStatus();
}

// Returns the spec with what it leaves to the job.
std::shared_ptr<const JobSpec> Completed(const JobSpec& spec) {
  auto complete = std::make_shared<JobSpec>(spec);
  if (spec.train == nullptr) {
    // Nothing is updated: an optimizer without states will do.
    complete->optimizer = [] {
      return std::make_unique<nn::Sgd>(nn::SgdOptions());
    };
    complete->dynamic_loss_scale.reset();
  }
  if (complete->kernel_choices == nullptr) {
    complete->kernel_choices = std::make_shared<nn::KernelChoices>();
  }
  return complete;
}

}  // namespace

absl::StatusOr<JobSetup> PrepareJob(const JobSpec& spec, JobObserver* observer,
                                    const TestHooks* hooks,
                                    const Decision* decided) {
  TROUPE_RETURN_IF_ERROR(CheckSpec(spec));
  auto process = std::make_shared<ProcessContext>();
  process->spec = Completed(spec);
  process->cores = base::AvailableCores();
  process->generation = 1;
  process->observer = observer;
  process->hooks = hooks;
  process->folder = CheckpointFolder(spec.checkpoint);
  if (decided != nullptr) {
    process->plan = decided->plan;
    TROUPE_RETURN_IF_ERROR(CloseDType(decided->plan.get(), *process));
    TROUPE_RETURN_IF_ERROR(AdoptMesh(*decided->plan, *process));
    process->spec->kernel_choices->Adopt(decided->plan->algorithms);
    TROUPE_ASSIGN_OR_RETURN(
        process->resume,
        OpenResumeAt(spec, process->folder.files(), decided->resume_path));
  } else {
    TROUPE_RETURN_IF_ERROR(Decide(*process));
  }
  TROUPE_ASSIGN_OR_RETURN(
      process->span,
      MakeSpan(spec, *process->plan, process->resume.checkpoint.get()));
  TROUPE_RETURN_IF_ERROR(MatchKeys(*process->spec, process->resume));
  process->settings = SettingsOf(*process->spec);
  if (process->resume.checkpoint != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(
        process->resume.setting_changes,
        CompareSettings(*process->spec, *process->resume.checkpoint));
  }
  TROUPE_RETURN_IF_ERROR(OpenWeights(*process));
  auto checkpoint = std::exchange(process->resume.checkpoint, nullptr);
  return JobSetup{std::move(process), std::move(checkpoint)};
}

absl::Status CheckFolder(ProcessContext& process, const std::string& mark,
                         const std::function<void(const std::string&)>& warn) {
  const absl::Status status = process.folder.Check(mark);
  if (status.ok()) return status;
  const ProcessLinks& links = process.links;
  for (int rank = links.first_rank(); rank < links.end_rank(); ++rank) {
    const pipeline::Mesh& mesh = process.plan->mesh;
    if (mesh.RankWith(rank, pipeline::kPpAxis, 0) == 0) return status;
  }
  process.has_folder = false;
  if (warn) {
    warn(absl::StrCat(status.message(),
                      "; this process writes no checkpoint, but cannot resume "
                      "from one that it does not see"));
  }
  return absl::OkStatus();
}

absl::StatusOr<JobSetup> SetUpJob(const JobSpec& spec, JobObserver* observer,
                                  const TestHooks* hooks) {
  TROUPE_ASSIGN_OR_RETURN(JobSetup setup, PrepareJob(spec, observer, hooks));
  ProcessContext& process = *setup.process;
  TROUPE_ASSIGN_OR_RETURN(
      process.ranks,
      MakeRanks(process, 0, process.plan->mesh.size(), LocalGroups(process)));
  return setup;
}

namespace {

// Calls JobSpec::note for a fresh job without steps, which only evaluates and
// saves: its model is easily mistaken for a trained one.
void NoteUntrained(const ProcessContext& process) {
  const JobSpec& spec = *process.spec;
  if (spec.note == nullptr || process.span->steps > 0 ||
      !process.resume.path.empty()) {
    return;
  }
  std::vector<std::string> does;
  if (spec.test != nullptr) does.push_back("evaluated");
  if (!spec.checkpoint.dir.empty()) {
    does.push_back(absl::StrCat("saved in ", spec.checkpoint.dir));
  }
  spec.note(absl::StrCat("no steps to train: the model is ",
                         does.empty() ? "neither evaluated nor saved"
                                      : absl::StrJoin(does, " and "),
                         does.empty() ? "" : " as it begins"));
}

// Calls JobSpec::note if ranks along tp are mere copies.
void NoteCopies(const ProcessContext& process) {
  const pipeline::Plan& plan = *process.plan;
  if (process.spec->note == nullptr || plan.mesh.tp() == 1 ||
      plan.SplitsParameters()) {
    return;
  }
  process.spec->note(absl::StrCat("no layer of the model is split: the ",
                                  plan.mesh.tp(),
                                  " ranks along tp are copies that compute the "
                                  "same; use dp or pp instead"));
}

void TellStart(const ProcessContext& process, JobObserver& observer) {
  JobInfo info;
  info.plan = *process.plan;
  info.first_step = process.span->first_step;
  info.steps = process.span->steps;
  info.sampler = process.span->sampler;
  info.resumed_from = process.resume.path;
  info.skipped_steps = process.resume.skipped_steps;
  info.missing = process.resume.keys.missing;
  info.unexpected = process.resume.keys.unexpected;
  info.plan_changes = process.resume.plan_changes;
  info.setting_changes = process.resume.setting_changes;
  info.transports = process.links.transports;
  // A job trains also without an estimate.
  const absl::StatusOr<ExpectedMemory> memory =
      ExpectMemory(*process.spec, *process.plan);
  if (memory.ok()) info.memory = *memory;
  observer.OnStart(info);
}

}  // namespace

void AnnounceJob(const ProcessContext& process, JobObserver* observer) {
  if (observer != nullptr) TellStart(process, *observer);
  NoteUntrained(process);
  NoteCopies(process);
}

}  // namespace troupe::actors
