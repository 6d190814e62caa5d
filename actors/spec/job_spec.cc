#include "actors/spec/job_spec.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/local/local_group.h"
#include "data/dataset.h"
#include "nn/kernels/open_kernels.h"

namespace troupe::actors {
namespace {

template <auto kField, typename Options>
absl::Status AtLeast(std::int64_t least, const Options& options) {
  if (options.*kField >= least) return absl::OkStatus();
  return base::FieldError<kField>(absl::StrCat(base::FieldName<kField>(), " = ",
                                               options.*kField,
                                               ": must be at least ", least));
}

absl::Status CheckGraphs(const std::string& mode) {
  if (mode == "auto" || mode == "on" || mode == "off") return absl::OkStatus();
  return base::FieldError<&JobSpec::cuda_graphs>(
      absl::StrCat(base::FieldName<&JobSpec::cuda_graphs>(), " = \"", mode,
                   "\": must be \"auto\", \"on\" or \"off\""));
}

// Checks the fields by which evaluations are compared.
absl::Status CheckComparison(const JobSpec& spec) {
  using Saving = CheckpointOptions;
  const std::string& metric = spec.checkpoint.best_metric;
  if (metric != kEvalLoss && metric != kEvalAccuracy) {
    return base::FieldError<&Saving::best_metric>(absl::StrCat(
        base::FieldName<&Saving::best_metric>(), " = \"", metric,
        "\": must be \"", kEvalLoss, "\" or \"", kEvalAccuracy, "\""));
  }
  TROUPE_RETURN_IF_ERROR(AtLeast<&JobSpec::early_stop_patience>(0, spec));
  if (spec.early_stop_min_delta >= 0 &&
      std::isfinite(spec.early_stop_min_delta)) {
    return absl::OkStatus();
  }
  return base::FieldError<&JobSpec::early_stop_min_delta>(absl::StrCat(
      base::FieldName<&JobSpec::early_stop_min_delta>(), " = ",
      spec.early_stop_min_delta, ": must be a finite number of at least 0"));
}

absl::Status CheckLossScale(const JobSpec& spec) {
  using Rule = nn::LossScaleRule;
  const double scale = spec.loss_scale;
  if (!(scale > 0) || std::isinf(scale)) {
    return base::FieldError<&JobSpec::loss_scale>(
        absl::StrCat(base::FieldName<&JobSpec::loss_scale>(), " is ", scale,
                     ", must be above 0"));
  }
  if (!spec.dynamic_loss_scale.has_value()) return absl::OkStatus();
  const Rule& rule = *spec.dynamic_loss_scale;
  TROUPE_RETURN_IF_ERROR(AtLeast<&Rule::growth_interval>(1, rule));
  if (rule.min > 0 && rule.min <= scale) return absl::OkStatus();
  return base::FieldError<&Rule::min, &JobSpec::loss_scale>(
      absl::StrCat(base::FieldName<&Rule::min>(), " = ", rule.min,
                   ": must be above 0 and at most ",
                   base::FieldName<&JobSpec::loss_scale>(), " = ", scale));
}

absl::Status CheckHook(const JobSpec& spec) {
  const std::string name = base::FieldName<&JobSpec::hook>();
  const CommunicationHook& hook = spec.hook;
  if (hook.name.empty()) {
    if (!hook.make) return absl::OkStatus();
    return base::FieldError<&JobSpec::hook>(
        absl::StrCat(name, " has no name; give it one for the plan"));
  }
  if (!hook.make) {
    return base::FieldError<&JobSpec::hook>(
        absl::StrCat(name, " \"", hook.name,
                     "\" has no `make`; set it to what makes the reductions"));
  }
  if (hook.rounds < 1 || hook.rounds > pipeline::kRoundsMax) {
    return base::FieldError<&JobSpec::hook>(
        absl::StrCat(name, " \"", hook.name, "\" has ", hook.rounds,
                     " rounds; use 1 to ", pipeline::kRoundsMax));
  }
  if (!spec.plan.reduction_dtype) return absl::OkStatus();
  using Plan = pipeline::PlanOptions;
  return base::FieldError<&JobSpec::hook, &Plan::reduction_dtype>(absl::StrCat(
      name, " and ", base::FieldName<&Plan::reduction_dtype>(),
      " are both set, and each says how gradients are reduced; remove one"));
}

template <auto kField>
absl::Status RefuseWithoutTraining(absl::string_view why) {
  return base::FieldError<kField, &JobSpec::train>(absl::StrCat(
      base::FieldName<kField>(), " is set, but ",
      base::FieldName<&JobSpec::train>(), " is not, so that nothing is ", why,
      "; set both, or leave both out to evaluate ",
      base::FieldName<&JobSpec::test>(), " alone"));
}

// Refuses a training step that would need all stages of a pipeline.
absl::Status CheckTrainingStep(const JobSpec& spec) {
  const pipeline::PlanOptions& plan = spec.plan;
  if (!spec.training_step ||
      (plan.mesh.pp() == 1 && plan.virtual_stages == 1 && plan.cuts.empty())) {
    return absl::OkStatus();
  }
  const std::string axis = pipeline::AxisFieldName("pp");
  return base::WithFields(
      absl::InvalidArgumentError(absl::StrCat(
          base::FieldName<&JobSpec::training_step>(),
          " is set, which calls a whole model, but ", axis, " = ",
          plan.mesh.pp(),
          " ranks hold parts of it; give a pipeline a loss in its place: ",
          base::FieldName<&JobSpec::loss>())),
      {base::FieldName<&JobSpec::training_step>(), axis});
}

absl::Status CheckLimits(const JobSpec& spec) {
  using Saving = CheckpointOptions;
  using Buckets = pipeline::BucketOptions;
  const Buckets& buckets = spec.plan.buckets;
  TROUPE_RETURN_IF_ERROR(AtLeast<&JobSpec::prefetch_steps>(0, spec));
  TROUPE_RETURN_IF_ERROR(AtLeast<&JobSpec::load_workers>(1, spec));
  TROUPE_RETURN_IF_ERROR(AtLeast<&Saving::every>(0, spec.checkpoint));
  TROUPE_RETURN_IF_ERROR(AtLeast<&Saving::keep>(0, spec.checkpoint));
  if (spec.checkpoint.every_time < absl::ZeroDuration()) {
    return base::FieldError<&Saving::every_time>(
        absl::StrCat(base::FieldName<&Saving::every_time>(), " = ",
                     absl::FormatDuration(spec.checkpoint.every_time),
                     ": must be at least 0"));
  }
  TROUPE_RETURN_IF_ERROR(
      AtLeast<&pipeline::PlanOptions::threads_per_rank>(1, spec.plan));
  TROUPE_RETURN_IF_ERROR(AtLeast<&Buckets::first_bucket_bytes>(1, buckets));
  TROUPE_RETURN_IF_ERROR(AtLeast<&Buckets::bucket_bytes>(1, buckets));
  if (spec.timeout > absl::ZeroDuration()) return absl::OkStatus();
  return base::FieldError<&JobSpec::timeout>(absl::StrCat(
      base::FieldName<&JobSpec::timeout>(), " = ",
      absl::FormatDuration(spec.timeout),
      ": must be above 0; absl::InfiniteDuration() waits for ever"));
}

}  // namespace

absl::Status CheckNumbers(const JobSpec& spec) {
  TROUPE_RETURN_IF_ERROR(AtLeast<&JobSpec::steps>(0, spec));
  TROUPE_RETURN_IF_ERROR(AtLeast<&JobSpec::epochs>(0, spec));
  TROUPE_RETURN_IF_ERROR(AtLeast<&JobSpec::eval_every>(0, spec));
  TROUPE_RETURN_IF_ERROR(CheckLimits(spec));
  TROUPE_RETURN_IF_ERROR(CheckGraphs(spec.cuda_graphs));
  TROUPE_RETURN_IF_ERROR(CheckComparison(spec));
  TROUPE_RETURN_IF_ERROR(CheckLossScale(spec));
  TROUPE_RETURN_IF_ERROR(spec.optimizer.status());
  TROUPE_RETURN_IF_ERROR(CheckHook(spec));
  TROUPE_RETURN_IF_ERROR(CheckTrainingStep(spec));
  if (spec.steps > 0 && spec.epochs > 0) {
    return base::FieldError<&JobSpec::epochs, &JobSpec::steps>(absl::StrCat(
        base::FieldName<&JobSpec::steps>(), " and ",
        base::FieldName<&JobSpec::epochs>(), " are both set; remove one"));
  }
  const pipeline::Mesh& mesh = spec.plan.mesh;
  TROUPE_RETURN_IF_ERROR(pipeline::WithAxisFields(mesh.Check(), mesh));
  if (mesh.size() <= comm::kLocalGroupSizeMax) return absl::OkStatus();
  return pipeline::WithAxisFields(
      absl::InvalidArgumentError(
          absl::StrCat("mesh ", mesh.ToString(), " has ", mesh.size(),
                       " ranks, and one process at most ",
                       comm::kLocalGroupSizeMax, "; start several processes")),
      mesh);
}

absl::Status CheckSamples(const JobSpec& spec) {
  if (spec.train != nullptr) return absl::OkStatus();
  if (spec.test == nullptr) {
    return base::FieldError<&JobSpec::train>(absl::StrCat(
        base::FieldName<&JobSpec::train>(), " is not set; set it, or ",
        base::FieldName<&JobSpec::test>(), " alone to evaluate a model"));
  }
  if (spec.steps > 0) {
    return RefuseWithoutTraining<&JobSpec::steps>("trained");
  }
  if (spec.epochs > 0) {
    return RefuseWithoutTraining<&JobSpec::epochs>("trained");
  }
  if (spec.checkpoint.dir.empty()) return absl::OkStatus();
  return RefuseWithoutTraining<&CheckpointOptions::dir>("saved");
}

absl::StatusOr<std::unique_ptr<nn::Optimizer>> MakeOptimizer(
    const JobSpec& spec) {
  std::unique_ptr<nn::Optimizer> optimizer = spec.optimizer();
  if (optimizer != nullptr) return optimizer;
  return absl::InvalidArgumentError(
      absl::StrCat(base::FieldName<&JobSpec::optimizer>(),
                   " returned null; return an optimizer from it"));
}

absl::StatusOr<pipeline::Plan> MakeJobPlan(
    const JobSpec& spec, const pipeline::PlanOptions& options) {
  const data::SampleSpec& sample = SamplesOf(spec)->spec();
  const nn::DType input =
      nn::IsFloating(sample.input_dtype) ? spec.dtype : sample.input_dtype;
  pipeline::PlanOptions all = options;
  all.hook = spec.hook.name;
  // One replica has nothing to reduce.
  all.reductions.rounds = options.mesh.dp() > 1 ? spec.hook.rounds : 1;
  nn::ModelFactory model = spec.model;
  if (spec.training_step) {
    model = ModelOfStep(model, spec.training_step, sample, spec.dtype);
  }
  return pipeline::MakePlan(all, model, sample.input_shape, input, spec.device);
}

absl::StatusOr<std::unique_ptr<nn::Kernels>> OpenRankKernels(
    const JobSpec& spec, int local_rank) {
  if (spec.kernels) return spec.kernels();
  auto kernels =
      nn::OpenKernels(spec.device.ForRank(local_rank),
                      {spec.plan.threads_per_rank, spec.kernel_choices});
  if (kernels.ok()) return kernels;
  return base::WithFields<&JobSpec::device>(kernels.status());
}

}  // namespace troupe::actors
