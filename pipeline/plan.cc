#include "pipeline/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/field_error.h"
#include "pipeline/partition.h"

namespace troupe::pipeline {
namespace {

// A number that does not reach its limit, by the name of its field.
template <auto kField>
absl::Status AtLeast(std::int64_t least, const PlanOptions& options) {
  const std::int64_t value = options.*kField;
  if (value >= least) return absl::OkStatus();
  return base::FieldError<kField>(absl::StrCat(
      base::FieldName<kField>(), " = ", value, ": must be at least ", least));
}

// The next larger multiple of `unit`.
std::int64_t NextMultiple(std::int64_t value, std::int64_t unit) {
  return (value / unit + 1) * unit;
}

// A global batch splits evenly over the replicas and their micro-batches.
absl::Status CheckBatches(const PlanOptions& options) {
  const std::string global = base::FieldName<&PlanOptions::global_batch_size>();
  const std::string micro = base::FieldName<&PlanOptions::micro_batch_size>();
  const std::string dp = AxisFieldName("dp");
  const std::int64_t samples = options.global_batch_size;
  const std::int64_t width = options.mesh.dp();
  if (options.micro_batch_size == 0) {
    if (samples % width == 0) return absl::OkStatus();
    return base::WithFields(
        absl::InvalidArgumentError(
            absl::StrCat(global, " = ", samples, " is not a multiple of ", dp,
                         " = ", width, "; use ", NextMultiple(samples, width))),
        {global, dp});
  }
  const std::int64_t unit = options.micro_batch_size * width;
  if (samples % unit == 0) return absl::OkStatus();
  return base::WithFields(
      absl::InvalidArgumentError(absl::StrCat(
          global, " = ", samples, " is not a multiple of ", micro, " * ", dp,
          " = ", options.micro_batch_size, " * ", width, "; use ",
          NextMultiple(samples, unit), ", or another ", micro)),
      {micro, global, dp});
}

absl::Status CheckSizes(const PlanOptions& options) {
  const Mesh& mesh = options.mesh;
  TROUPE_RETURN_IF_ERROR(WithAxisFields(mesh.Check(), mesh));
  const int cuts = static_cast<int>(options.cuts.size());
  if (cuts != mesh.pp() - 1) {
    const std::string pp = AxisFieldName("pp");
    const std::string name = base::FieldName<&PlanOptions::cuts>();
    return base::WithFields(absl::InvalidArgumentError(absl::StrCat(
                                pp, " = ", mesh.pp(), " stages need ",
                                mesh.pp() - 1, " cuts, ", name, " has ", cuts)),
                            {name, pp});
  }
  TROUPE_RETURN_IF_ERROR(AtLeast<&PlanOptions::global_batch_size>(1, options));
  TROUPE_RETURN_IF_ERROR(AtLeast<&PlanOptions::micro_batch_size>(0, options));
  return CheckBatches(options);
}

// The forward of one batch. A stage answers its predecessor as soon as it
// begins the same batch: a gradient message without a gradient, which is the
// credit that keeps a fast stage from piling activations up before a slow one.
StepTable EvaluateTable(bool first_stage, bool last_stage) {
  StepTable forward;
  forward.actions.push_back({ActionKind::kForward, 0, {}});
  StepTable table = AddTransfers(forward, first_stage, last_stage);
  if (!first_stage) table.actions.push_back({ActionKind::kSendGradient, 0, {}});
  if (!last_stage) table.actions.push_back({ActionKind::kRecvGradient, 0, {}});
  return table;
}

// The tables of one stage.
void MakeTables(const PlanOptions& options, int stage, int micro_batches,
                StagePlan& plan) {
  const int pp = options.mesh.pp();
  const bool first = stage == 0, last = stage == pp - 1;
  const StepTable compute =
      options.schedule ? options.schedule(options.mesh, stage, micro_batches)
      : pp == 1        ? DataParallelTable(micro_batches)
                       : GPipeTable(micro_batches);
  ReductionOptions reductions = options.reductions;
  reductions.fuse_updates = options.fuse_updates && plan.reduce_inline &&
                            options.mesh.dp() > 1 &&
                            !reductions.update_needs_all_buckets;
  plan.train = AddReductions(AddTransfers(compute, first, last),
                             static_cast<int>(plan.buckets.size()), reductions);
  plan.evaluate = EvaluateTable(first, last);
}

// Parameters with gradients, by dtype: a bucket has one.
struct Trained {
  struct OfOneType {
    nn::DType dtype;
    std::vector<int> numbers;
    std::vector<std::int64_t> bytes;
  };
  std::vector<OfOneType> types;  // in order of first use
  std::int64_t bytes = 0;        // of all gradients

  void Add(int number, nn::DType dtype, std::int64_t grad_bytes) {
    auto type = std::find_if(types.begin(), types.end(),
                             [&](const auto& t) { return t.dtype == dtype; });
    if (type == types.end()) {
      types.push_back({dtype, {}, {}});
      type = types.end() - 1;
    }
    type->numbers.push_back(number);
    type->bytes.push_back(grad_bytes);
    bytes += grad_bytes;
  }

  // Those whose last gradient comes first stand first.
  std::vector<std::vector<int>> Buckets(const BucketOptions& options) const {
    std::vector<std::vector<int>> all;
    for (const OfOneType& type : types) {
      for (std::vector<int>& bucket : AssignBuckets(type.bytes, options)) {
        for (int& i : bucket) i = type.numbers[i];
        all.push_back(std::move(bucket));
      }
    }
    // Within a bucket, and among those of one dtype, numbers descend.
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.back() > b.back();
    });
    return all;
  }
};

// Runs one stage on shapes; `input` becomes its output.
absl::Status PlanStage(const PlanOptions& options,
                       const nn::ModelFactory& factory, int stage,
                       nn::Device device, nn::TensorSpec& input,
                       StagePlan& plan) {
  absl::StatusOr<std::unique_ptr<nn::Module>> built =
      BuildStage(factory, options.cuts, stage);
  if (!built.ok()) {
    return options.cuts.empty()
               ? built.status()
               : base::WithFields<&PlanOptions::cuts>(built.status());
  }
  const std::unique_ptr<nn::Module> module = *std::move(built);
  nn::ShapeRecord record;
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor output,
      nn::ShapeOnlyForward(*module, input.shape, input.dtype, device, record));
  plan.input = input.shape;
  plan.input_dtype = input.dtype;
  input = {output.shape(), output.dtype()};
  plan.output = input.shape;
  plan.output_dtype = input.dtype;
  plan.flops = record.flops();
  plan.layer_axes = record.axes;
  Trained trained;
  for (const nn::Parameter* parameter : record.parameters) {
    const int number = static_cast<int>(plan.parameters.size());
    plan.parameters.push_back(parameter->name);
    plan.parameter_elems.push_back(parameter->shape.numel());
    if (!parameter->requires_grad) {
      plan.frozen.push_back(number);
      continue;
    }
    const nn::DType grad = options.grad_dtype.value_or(parameter->dtype);
    trained.Add(
        number, parameter->dtype,
        parameter->shape.numel() * static_cast<std::int64_t>(nn::SizeOf(grad)));
  }
  plan.buckets = trained.Buckets(options.buckets);
  // A strand that waits for the loss of a later stage could not send that stage
  // what it waits for: inline is for replicas of a whole model.
  plan.reduce_inline =
      options.mesh.pp() == 1 && trained.bytes <= options.inline_bytes;
  return absl::OkStatus();
}

// "7850 elements: 2.bias 2.weight"
std::string Describe(const StagePlan& stage, const std::vector<int>& numbers) {
  std::int64_t elems = 0;
  std::vector<std::string> names;
  for (int p : numbers) {
    elems += stage.parameter_elems[p];
    names.push_back(stage.parameters[p]);
  }
  return absl::StrCat(elems, " elements: ", absl::StrJoin(names, " "));
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const PlanOptions& options,
                              const nn::ModelFactory& factory,
                              const nn::Shape& input, nn::DType dtype,
                              nn::Device device) {
  TROUPE_RETURN_IF_ERROR(CheckSizes(options));
  const int dp = options.mesh.dp();
  const std::int64_t micro = options.micro_batch_size > 0
                                 ? options.micro_batch_size
                                 : options.global_batch_size / dp;
  Plan plan;
  plan.mesh = options.mesh;
  plan.cuts = options.cuts;
  plan.global_batch_size = options.global_batch_size;
  plan.micro_batch_size = micro;
  plan.micro_batches =
      static_cast<int>(options.global_batch_size / (micro * dp));
  plan.threads_per_rank = options.threads_per_rank;
  plan.grad_dtype = options.grad_dtype;
  plan.stages.resize(options.mesh.pp());
  std::vector<std::int64_t> dims = {micro};
  dims.insert(dims.end(), input.dims().begin(), input.dims().end());
  nn::TensorSpec between = {nn::Shape(absl::Span<const std::int64_t>(dims)),
                            dtype};
  for (int stage = 0; stage < options.mesh.pp(); ++stage) {
    StagePlan& stage_plan = plan.stages[stage];
    TROUPE_RETURN_IF_ERROR(
        PlanStage(options, factory, stage, device, between, stage_plan));
    MakeTables(options, stage, plan.micro_batches, stage_plan);
    TROUPE_RETURN_IF_ERROR(Validate(stage_plan.train));
    if (stage_plan.train.micro_batches() != plan.micro_batches) {
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule: stage ", stage, " has ", stage_plan.train.micro_batches(),
          " micro-batches, the plan ", plan.micro_batches));
    }
    TROUPE_RETURN_IF_ERROR(Validate(stage_plan.evaluate));
  }
  return plan;
}

std::string AxisFieldName(absl::string_view axis) {
  return absl::StrCat(base::FieldName<&PlanOptions::mesh>(), ".", axis);
}

absl::Status WithAxisFields(absl::Status status, const Mesh& mesh) {
  std::vector<std::string> fields;
  for (const Axis& axis : mesh.axes()) {
    fields.push_back(AxisFieldName(axis.name));
  }
  return base::WithFields(std::move(status), fields);
}

std::int64_t Plan::parameter_elems() const {
  std::int64_t sum = 0;
  for (const StagePlan& stage : stages) {
    for (std::int64_t elems : stage.parameter_elems) sum += elems;
  }
  return sum;
}

std::string Plan::ToString() const {
  std::string text = absl::StrCat(
      "mesh ", mesh.ToString(), ", global batch ", global_batch_size, " = ",
      mesh.dp(), " x ", micro_batches, " micro-batches of ", micro_batch_size,
      ", ", threads_per_rank, " thread(s) per rank\n");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StagePlan& stage = stages[i];
    absl::StrAppend(&text, "stage ", i, ": ", stage.input.ToString(), " -> ",
                    stage.output.ToString(), ", ", stage.parameters.size(),
                    " parameters in ", stage.buckets.size(), " bucket(s)",
                    stage.reduce_inline ? ", reduced inline" : "", "\n");
    for (std::size_t k = 0; k < stage.buckets.size(); ++k) {
      absl::StrAppend(&text, "  bucket ", k, ": ",
                      Describe(stage, stage.buckets[k]), "\n");
    }
    if (!stage.frozen.empty()) {
      absl::StrAppend(&text, "  frozen: ", Describe(stage, stage.frozen), "\n");
    }
    absl::StrAppend(&text, "  train: ", stage.train.ToString(), "\n");
  }
  return text;
}

}  // namespace troupe::pipeline
