#include "troupe/trainer/trainer_job.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/modules/parameter_dtype.h"
#include "troupe/trainer/option_error.h"
#include "troupe/trainer/portion.h"
#include "troupe/trainer/trainer_placement.h"

namespace troupe {
namespace {

using actors::JobSpec;
using O = TrainerOptions;

constexpr std::int64_t kEpochsIfUnset = 1000;

// --- Numbers ---

// Sets the device; the precision is set. f64 has reference kernels alone.
absl::Status SetDevice(const TrainerOptions& options, JobSpec& spec) {
  const bool is_gpu = options.accelerator == "gpu";
  if (!is_gpu && options.accelerator != "cpu") {
    return RefuseOption<&O::accelerator>(options,
                                         ": must be \"cpu\" or \"gpu\"");
  }
  const bool is_f64 = spec.dtype == nn::DType::kF64;
  if (is_gpu && is_f64) {
    return RefuseOption<&O::precision>(
        options, " is for accelerator = \"cpu\"; set one of them");
  }
  TROUPE_ASSIGN_OR_RETURN(spec.device,
                          nn::Device::Parse(is_gpu   ? "cuda"
                                            : is_f64 ? "reference:0"
                                                     : "cpu:0"));
  return absl::OkStatus();
}

struct Precision {
  const char* name;
  nn::DType dtype;
};

constexpr Precision kPrecisions[] = {
    {"32-true", nn::DType::kF32},
    {"64-true", nn::DType::kF64},
    {"bf16-mixed", nn::DType::kBF16},
    {"16-mixed", nn::DType::kF16},
};

absl::Status SetPrecision(const TrainerOptions& options, JobSpec& spec) {
  std::vector<std::string> names;
  for (const Precision& precision : kPrecisions) {
    names.push_back(OptionText(std::string(precision.name)));
    if (options.precision != precision.name) continue;
    spec.dtype = precision.dtype;
    if (precision.dtype == nn::DType::kF16) {
      spec.loss_scale = nn::kFirstLossScale;
      spec.dynamic_loss_scale.emplace();
    }
    return absl::OkStatus();
  }
  return RefuseOption<&O::precision>(
      options, absl::StrCat(": must be one of ", absl::StrJoin(names, ", ")));
}

// Adds to an optimizer's options what the Trainer's say. `run_steps`: length of
// the run.
absl::Status SetCommon(const TrainerOptions& options, const JobSpec& spec,
                       std::int64_t run_steps, nn::OptimizerOptions& common) {
  // It has no effect if the precision has more than 16 bits.
  common.f32_master = !common.stochastic_rounding;
  if (common.rounding_seed == 0) common.rounding_seed = spec.seed;
  if (spec.dynamic_loss_scale) common.skip_nonfinite = true;
  nn::LrSchedule& schedule = common.schedule;
  if (schedule.HasEnd() && schedule.steps == 0) {
    schedule.steps =
        std::max<std::int64_t>(1, run_steps - schedule.warmup_steps);
  }
  if (options.gradient_clip_val == 0) return absl::OkStatus();
  if (common.clip_grad_norm > 0 || common.clip_grad_value > 0) {
    return RefuseOption<&O::gradient_clip_val>(
        options,
        ", and the options of Task.optimizer limit gradients, too; remove one");
  }
  (options.gradient_clip_algorithm == "norm" ? common.clip_grad_norm
                                             : common.clip_grad_value) =
      options.gradient_clip_val;
  return absl::OkStatus();
}

absl::Status CheckClipping(const TrainerOptions& options) {
  if (!(options.gradient_clip_val >= 0)) {
    return RefuseOption<&O::gradient_clip_val>(
        options, ": give a limit above 0, or 0 for none");
  }
  if (options.gradient_clip_algorithm == "norm" ||
      options.gradient_clip_algorithm == "value") {
    return absl::OkStatus();
  }
  return RefuseOption<&O::gradient_clip_algorithm>(
      options, ": must be \"norm\" or \"value\"");
}

// Returns the optimizer of a task that makes it itself.
absl::StatusOr<actors::JobOptimizer> OwnOptimizer(
    const TrainerOptions& options, const JobSpec& spec,
    const actors::JobOptimizer& optimizer) {
  if (!optimizer) {
    return absl::InvalidArgumentError(
        "Task.optimizer is not set; set it: task.optimizer = "
        "nn::AdamOptions{/*lr=*/1e-3};");
  }
  constexpr char kNeedsOptions[] =
      " needs options as Task.optimizer, such as nn::AdamOptions, and it is a "
      "function; give options, or set ";
  if (options.gradient_clip_val > 0) {
    return RefuseOption<&O::gradient_clip_val>(
        options, absl::StrCat(kNeedsOptions,
                              "clip_grad_norm in the optimizer that it makes"));
  }
  if (nn::SizeOf(spec.dtype) == 2) {
    return RefuseOption<&O::precision>(
        options, absl::StrCat(kNeedsOptions, "precision = \"32-true\""));
  }
  return optimizer;
}

absl::StatusOr<actors::JobOptimizer> OptimizerFor(const TrainerOptions& options,
                                                  const Task& task,
                                                  const JobSpec& spec,
                                                  std::int64_t run_steps) {
  TROUPE_RETURN_IF_ERROR(CheckClipping(options));
  const auto make = [&](auto rule) -> absl::StatusOr<actors::JobOptimizer> {
    if constexpr (std::is_same_v<decltype(rule), actors::JobOptimizer>) {
      return OwnOptimizer(options, spec, rule);
    } else {
      TROUPE_RETURN_IF_ERROR(SetCommon(options, spec, run_steps, rule.common));
      return actors::JobOptimizer(rule);
    }
  };
  return std::visit(make, task.optimizer);
}

// --- Batches, epochs, evaluations ---

// Sets the sizes of batches, to those of `data`, and what loads them.
absl::Status SetBatches(const TrainerOptions& options, const FitData& data,
                        JobSpec& spec) {
  TROUPE_RETURN_IF_ERROR(AtLeast<&O::accumulate_grad_batches>(1, options));
  TROUPE_RETURN_IF_ERROR(AtLeast<&FitData::batch_size>(1, data));
  spec.plan.micro_batch_size = data.batch_size;
  spec.plan.global_batch_size =
      data.batch_size * spec.plan.mesh.dp() * options.accumulate_grad_batches;
  spec.load_workers = std::max(data.workers, 1);
  return absl::OkStatus();
}

absl::Status SetTraining(const TrainerOptions& options, const FitData& train,
                         JobSpec& spec) {
  if (train.dataset == nullptr) {
    return base::FieldError<&FitData::dataset>(
        "the training data have no dataset; give Fit() {dataset, "
        "/*batch_size=*/32}");
  }
  const std::int64_t batch = train.batch_size * spec.plan.mesh.dp();
  TROUPE_ASSIGN_OR_RETURN(
      data::DatasetPtr limited,
      FirstBatches<&O::limit_train_batches>(options, train.dataset, batch));
  spec.train = std::move(limited);
  spec.shuffle = train.shuffle;
  if (StepsPerEpoch(spec) > 0) return absl::OkStatus();
  return RefuseOption<&O::limit_train_batches>(
      options,
      absl::StrCat(" of ", train.dataset->size(),
                   " samples leaves no whole step, which has ",
                   spec.plan.global_batch_size,
                   " samples: batch_size x replicas x "
                   "accumulate_grad_batches; give more samples, or smaller "
                   "batches"));
}

// Sets the length of the run, and returns it in steps.
absl::StatusOr<std::int64_t> SetLength(const TrainerOptions& options,
                                       JobSpec& spec) {
  TROUPE_RETURN_IF_ERROR(AtLeast<&O::max_epochs>(-1, options));
  TROUPE_RETURN_IF_ERROR(AtLeast<&O::max_steps>(-1, options));
  const bool has_steps = options.max_steps >= 0;
  const bool has_epochs = options.max_epochs >= 0;
  const std::int64_t epochs = has_epochs ? options.max_epochs : kEpochsIfUnset;
  const std::int64_t in_epochs = epochs * StepsPerEpoch(spec);
  if (!has_steps) {
    spec.epochs = epochs;
    return in_epochs;
  }
  spec.steps =
      has_epochs ? std::min(options.max_steps, in_epochs) : options.max_steps;
  return spec.steps;
}

// Returns the steps between evaluations.
absl::StatusOr<std::int64_t> EvalEvery(const TrainerOptions& options,
                                       const JobSpec& spec) {
  const std::int64_t epochs = options.check_val_every_n_epoch;
  TROUPE_RETURN_IF_ERROR(AtLeast<&O::check_val_every_n_epoch>(1, options));
  const std::int64_t steps = StepsPerEpoch(spec);
  if (options.val_check_interval == Portion(1.0)) return steps * epochs;
  if (epochs != 1) {
    return RefuseOption<&O::check_val_every_n_epoch>(
        options,
        absl::StrCat(", and ", base::FieldName<&O::val_check_interval>(), " = ",
                     OptionText(options.val_check_interval),
                     " says otherwise; leave one of them out"));
  }
  const std::int64_t parts = options.accumulate_grad_batches;
  const auto* count = std::get_if<std::int64_t>(&options.val_check_interval);
  if (count == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(
        const std::int64_t batches,
        BatchesOf<&O::val_check_interval>(options, steps * parts));
    return std::max<std::int64_t>(1, batches / parts);
  }
  if (*count >= 1 && *count % parts == 0) return *count / parts;
  return RefuseOption<&O::val_check_interval>(
      options,
      absl::StrCat(": give batches in multiples of ",
                   base::FieldName<&O::accumulate_grad_batches>(), " = ", parts,
                   ", whose steps they fill, or a fraction of an "
                   "epoch such as 0.5"));
}

// Sets the samples that Fit() evaluates, if the options leave any.
absl::Status SetValidation(const TrainerOptions& options, const FitData& val,
                           JobSpec& spec) {
  TROUPE_RETURN_IF_ERROR(AtLeast<&FitData::batch_size>(0, val));
  if (val.dataset == nullptr) return absl::OkStatus();
  const std::int64_t of_rank =
      val.batch_size > 0 ? val.batch_size : spec.plan.micro_batch_size;
  TROUPE_ASSIGN_OR_RETURN(
      data::DatasetPtr limited,
      FirstBatches<&O::limit_val_batches>(options, val.dataset,
                                          of_rank * spec.plan.mesh.dp()));
  if (limited->size() > 0) spec.test = std::move(limited);
  return absl::OkStatus();
}

// Returns the options of a run of `fast_dev_run` steps.
TrainerOptions Shortened(TrainerOptions options) {
  const std::int64_t steps = options.fast_dev_run;
  options.max_epochs = -1;
  options.max_steps = steps;
  options.limit_val_batches = steps;
  options.val_check_interval = 1.0;
  options.check_val_every_n_epoch = 1;
  return options;
}

// Returns what training and evaluating have in common: model, loss, devices,
// and batches of the size of `data`.
absl::StatusOr<JobSpec> CommonJob(const TrainerOptions& options,
                                  const Task& task, const FitData& data) {
  if (!task.model) {
    return absl::InvalidArgumentError(
        "Task.model is not set; set it: task.model = [] { return "
        "std::make_unique<MyModel>(); };");
  }
  if (!task.loss && !task.training_step) {
    return absl::InvalidArgumentError(
        "Task.loss and Task.training_step are not set; set one: task.loss = "
        "nn::ops::CrossEntropyLoss();");
  }
  JobSpec spec;
  TROUPE_ASSIGN_OR_RETURN(spec.plan.mesh, TrainerMesh(options));
  TROUPE_RETURN_IF_ERROR(SetPrecision(options, spec));
  TROUPE_RETURN_IF_ERROR(SetDevice(options, spec));
  spec.model = [make = task.model, dtype = spec.dtype] {
    std::unique_ptr<nn::Module> model = make();
    if (model != nullptr) nn::SetParameterDType(*model, dtype);
    return model;
  };
  spec.loss = task.loss;
  spec.training_step = task.training_step;
  spec.seed = options.seed;
  TROUPE_RETURN_IF_ERROR(SetBatches(options, data, spec));
  return spec;
}

absl::StatusOr<JobSpec> JobOf(const TrainerOptions& options, const Task& task,
                              const FitData& train, const FitData& val) {
  TROUPE_ASSIGN_OR_RETURN(JobSpec spec, CommonJob(options, task, train));
  spec.plan.zero_stage = TrainerZeroStage(options);
  TROUPE_RETURN_IF_ERROR(SetTraining(options, train, spec));
  TROUPE_RETURN_IF_ERROR(SetValidation(options, val, spec));
  if (spec.test != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(spec.eval_every, EvalEvery(options, spec));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t run_steps,
                          SetLength(options, spec));
  TROUPE_ASSIGN_OR_RETURN(spec.optimizer,
                          OptimizerFor(options, task, spec, run_steps));
  TROUPE_RETURN_IF_ERROR(SetPipeline(options, spec));
  return spec;
}

}  // namespace

std::int64_t StepsPerEpoch(const JobSpec& spec) {
  return spec.train->size() / spec.plan.global_batch_size;
}

absl::StatusOr<JobSpec> TrainerJob(const TrainerOptions& options,
                                   const Task& task, const FitData& train,
                                   const FitData& val) {
  TROUPE_RETURN_IF_ERROR(AtLeast<&O::fast_dev_run>(0, options));
  TROUPE_RETURN_IF_ERROR(AtLeast<&O::log_every_n_steps>(0, options));
  return JobOf(options.fast_dev_run > 0 ? Shortened(options) : options, task,
               train, val);
}

absl::StatusOr<JobSpec> EvaluatingJob(const TrainerOptions& options,
                                      const Task& task, const FitData& data) {
  TROUPE_ASSIGN_OR_RETURN(JobSpec spec, CommonJob(options, task, data));
  spec.test = data.dataset;
  TROUPE_RETURN_IF_ERROR(SetPipeline(options, spec));
  return spec;
}

absl::Status SetResume(const std::string& ckpt_path, JobSpec& spec) {
  actors::CheckpointOptions& checkpoint = spec.checkpoint;
  const bool by_name = ckpt_path == "last" || ckpt_path == "best";
  if (by_name && checkpoint.dir.empty()) {
    return base::FieldError<&O::ckpt_path>(absl::StrCat(
        base::FieldName<&O::ckpt_path>(), " = \"", ckpt_path,
        "\" is a checkpoint in the folder of a ModelCheckpoint, and callbacks "
        "have none; add one, or give a path"));
  }
  if (ckpt_path == "last") {
    checkpoint.resume = true;
  } else if (by_name) {
    checkpoint.from = absl::StrCat(checkpoint.dir, "/", ckpt_path);
  } else {
    checkpoint.from = ckpt_path;
  }
  return absl::OkStatus();
}

}  // namespace troupe
