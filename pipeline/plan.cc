#include "pipeline/plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "pipeline/schedules/step_simulation.h"
#include "pipeline/stage_buckets.h"
#include "pipeline/table/join_backwards.h"
#include "pipeline/ties.h"

namespace troupe::pipeline {
namespace {

// Returns an error that names the field if its value is below `least`.
template <auto kField>
absl::Status AtLeast(std::int64_t least, const PlanOptions& options) {
  const std::int64_t value = options.*kField;
  if (value >= least) return absl::OkStatus();
  return base::FieldError<kField>(absl::StrCat(
      base::FieldName<kField>(), " = ", value, ": must be at least ", least));
}

// Checks that each replica has samples, and that the largest share holds a
// whole micro-batch.
absl::Status CheckBatches(const PlanOptions& options) {
  const std::string global = base::FieldName<&PlanOptions::global_batch_size>();
  const std::string micro = base::FieldName<&PlanOptions::micro_batch_size>();
  const std::string dp = AxisFieldName("dp");
  const std::int64_t samples = options.global_batch_size;
  const int width = options.mesh.dp();
  if (samples < width) {
    return base::WithFields(
        absl::InvalidArgumentError(absl::StrCat(
            global, " = ", samples, " is less than ", dp, " = ", width,
            ", and each replica takes a share of a batch; use at least ",
            width)),
        {global, dp});
  }
  const std::int64_t share = LargestShare(samples, width);
  if (options.micro_batch_size <= share) return absl::OkStatus();
  return base::WithFields(
      absl::InvalidArgumentError(absl::StrCat(
          micro, " = ", options.micro_batch_size, " is more than ", global,
          " / ", dp, " = ", samples, " / ", width, "; use at most ", share)),
      {micro, global, dp});
}

Placement PlacementOf(const PlanOptions& options) {
  if (!options.placement.empty()) return options.placement;
  return LoopedPlacement(options.mesh.pp(), options.virtual_stages);
}

// Checks that each stage has a place, and that there is a cut between stages.
absl::Status CheckStages(const PlanOptions& options) {
  if (options.virtual_stages < 1 || options.virtual_stages > kChunksMax) {
    return base::FieldError<&PlanOptions::virtual_stages>(absl::StrCat(
        base::FieldName<&PlanOptions::virtual_stages>(), " = ",
        options.virtual_stages, ": must be from 1 to ", kChunksMax));
  }
  const int pp = options.mesh.pp();
  const Placement placement = PlacementOf(options);
  TROUPE_RETURN_IF_ERROR(CheckPlacement(placement, pp));
  const int stages = static_cast<int>(placement.size());
  const int cuts = static_cast<int>(options.cuts.size());
  if (cuts == stages - 1) return absl::OkStatus();
  const std::string axis = AxisFieldName("pp");
  const std::string name = base::FieldName<&PlanOptions::cuts>();
  const std::string several =
      stages == pp ? " stages" : absl::StrCat(" with ", stages, " stages");
  return base::WithFields(
      absl::InvalidArgumentError(
          absl::StrCat(axis, " = ", pp, several, " need ", stages - 1,
                       " cuts, ", name, " has ", cuts, "; give as many")),
      {name, axis});
}

absl::Status CheckReductionOrder(const PlanOptions& options) {
  for (const char* known : {kAutoReduction, kTreeReduction, kAnyReduction}) {
    if (options.reduction_order == known) return absl::OkStatus();
  }
  return base::FieldError<&PlanOptions::reduction_order>(
      absl::StrCat(base::FieldName<&PlanOptions::reduction_order>(), " = \"",
                   options.reduction_order, "\", must be \"", kAutoReduction,
                   "\", \"", kTreeReduction, "\" or \"", kAnyReduction, "\""));
}

absl::Status CheckZero(const PlanOptions& options) {
  const std::string stage = absl::StrCat(
      base::FieldName<&PlanOptions::zero_stage>(), " = ", options.zero_stage);
  if (options.zero_stage < 0 || options.zero_stage > kZeroStageMax) {
    return base::FieldError<&PlanOptions::zero_stage>(
        absl::StrCat(stage, ": must be from 0 to ", kZeroStageMax));
  }
  const int micro_batches = options.MicroBatches();
  if (options.SlicesGradients(micro_batches) && micro_batches > kRoundsMax) {
    return base::FieldError<&PlanOptions::zero_stage>(
        absl::StrCat(stage, " reduces each of ", micro_batches,
                     " micro-batches; use at most ", kRoundsMax));
  }
  TROUPE_RETURN_IF_ERROR(AtLeast<&PlanOptions::zero_ahead_bytes>(0, options));
  if (options.owners() == 1 || options.hook.empty()) return absl::OkStatus();
  return base::FieldError<&PlanOptions::zero_stage, &PlanOptions::hook>(
      absl::StrCat(stage, " reduces slices of buckets, the hook \"",
                   options.hook, "\" whole ones; leave one of them out"));
}

absl::Status CheckSizes(const PlanOptions& options) {
  TROUPE_RETURN_IF_ERROR(WithAxisFields(options.mesh.Check(), options.mesh));
  TROUPE_RETURN_IF_ERROR(CheckStages(options));
  TROUPE_RETURN_IF_ERROR(AtLeast<&PlanOptions::global_batch_size>(1, options));
  TROUPE_RETURN_IF_ERROR(AtLeast<&PlanOptions::micro_batch_size>(0, options));
  TROUPE_RETURN_IF_ERROR(CheckReductionOrder(options));
  TROUPE_RETURN_IF_ERROR(CheckBatches(options));
  return CheckZero(options);
}

// Returns the table for the forward of one batch. A stage answers its
// predecessor as soon as it begins the same batch. The answer is an empty
// gradient message, a credit for flow control: without it, activations of a
// fast stage would pile up before a slow one.
StepTable EvaluateTable(const std::vector<ChunkEnds>& chunks) {
  StepTable forward;
  const int count = static_cast<int>(chunks.size());
  for (int chunk = 0; chunk < count; ++chunk) {
    forward.actions.push_back({ActionKind::kForward, 0, {}, chunk});
  }
  StepTable table = AddTransfers(forward, chunks);
  for (int chunk = 0; chunk < count; ++chunk) {
    if (!chunks[chunk].first_stage) {
      table.actions.push_back({ActionKind::kSendGradient, 0, {}, chunk});
    }
    if (!chunks[chunk].last_stage) {
      table.actions.push_back({ActionKind::kRecvGradient, 0, {}, chunk});
    }
  }
  return table;
}

// Returns the compute actions of the ranks at `pp`, which hold `chunks` chunks.
absl::StatusOr<StepTable> ComputeTable(const PlanOptions& options, int pp,
                                       int chunks, int micro_batches) {
  if (!options.schedule) {
    return options.mesh.pp() == 1 && chunks == 1
               ? DataParallelTable(micro_batches)
               : GPipeTable(micro_batches, chunks);
  }
  StepTable table = options.schedule(options.mesh, pp, micro_batches);
  for (const Action& action : table.actions) {
    if (action.chunk >= 0 && action.chunk < chunks) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: ", action.ToString(), " is of chunk ", action.chunk,
        " where pp ", pp, " has ", chunks, " chunk(s)"));
  }
  return table;
}

// Joins the halves of backwards on the first of several stages: no stage waits
// for gradients of the model's input, so splitting brings nothing there.
StepTable JoinFirstStage(StepTable compute,
                         const std::vector<ChunkEnds>& chunks) {
  return JoinBackwards(std::move(compute), [&](const Action& inputs) {
    const ChunkEnds& ends = chunks[inputs.chunk];
    return ends.first_stage && !ends.last_stage;
  });
}

std::int64_t GradientBytes(const Plan& plan, const StagePlan& stage, int i) {
  const nn::DType dtype = plan.grad_dtype.value_or(stage.parameter_dtypes[i]);
  return stage.parameter_elems[i] *
         static_cast<std::int64_t>(nn::SizeOf(dtype));
}

// Returns an error if the tables of all ranks, run together in the plan's
// order, would deadlock.
absl::Status CheckEnds(const Plan& plan) {
  std::vector<StepTable> tables;
  for (const RankPlan& rank : plan.ranks) tables.push_back(rank.train);
  StepCosts costs;
  costs.stages.resize(plan.stages.size());
  return SimulateStep(tables, plan.placement(), costs, plan.dispatch).status();
}

// Returns the tables of the ranks at `pp`.
absl::StatusOr<RankPlan> PlanRank(const PlanOptions& options, const Plan& plan,
                                  int pp) {
  const Placement placement = plan.placement();
  const std::vector<ChunkEnds> ends = EndsAt(placement, pp);
  TROUPE_ASSIGN_OR_RETURN(
      StepTable compute,
      ComputeTable(options, pp, static_cast<int>(ends.size()),
                   plan.micro_batches));
  compute = JoinFirstStage(std::move(compute), ends);
  RankPlan rank;
  std::int64_t bytes = 0;
  std::vector<int> buckets;
  for (int number : StagesAt(placement, pp)) {
    const StagePlan& stage = plan.stages[number];
    buckets.push_back(static_cast<int>(stage.buckets.size()));
    for (const std::vector<int>& bucket : stage.buckets) {
      for (int i : bucket) bytes += GradientBytes(plan, stage, i);
    }
  }
  // Only replicas of a whole model reduce inline: a strand that waits for the
  // loss of a later stage could not send that stage its activations.
  rank.reduce_inline = plan.stages.size() == 1 && bytes <= options.inline_bytes;
  const ReductionOptions reductions =
      ReductionsOf(options, plan, StagesAt(placement, pp), rank.reduce_inline);
  rank.train = AddReductions(AddTransfers(compute, ends), buckets, reductions);
  rank.evaluate = EvaluateTable(ends);
  GatherBeforeUses(options, plan, StagesAt(placement, pp), reductions, rank);
  return rank;
}

// All parameters of a stage, in order of first use; then those that its forward
// does not use, which are not trained. A checkpoint has them too, as in
// PyTorch.
struct StageParameters {
  StageParameters(nn::Module& module, const nn::ShapeRecord& record)
      : all(record.parameters), used(all.size()) {
    const std::set<const nn::Parameter*> seen(all.begin(), all.end());
    for (nn::Parameter* parameter : module.Parameters()) {
      if (seen.count(parameter) == 0) all.push_back(parameter);
    }
  }
  bool IsTrained(std::size_t i) const {
    return i < used && all[i]->requires_grad;
  }

  std::vector<nn::Parameter*> all;
  const std::size_t used;
};

// Checks that each parameter that the forward used is one of the module's. It
// is not if a layer is a plain member of another, which C++ allows.
absl::Status CheckOwned(nn::Module& module, const nn::ShapeRecord& record) {
  const std::vector<nn::Parameter*> own = module.Parameters();
  const std::set<const nn::Parameter*> owned(own.begin(), own.end());
  for (const nn::Parameter* used : record.parameters) {
    if (owned.count(used) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the model uses a parameter ", used->name, used->shape.ToString(),
        ", which no module of it has: a layer that is a plain member "
        "(nn::Linear a{10, 10};) is not part of the model; add it: nn::Linear& "
        "a = Add<nn::Linear>(\"a\", 10, 10);"));
  }
  return absl::OkStatus();
}

// Tensors that one stage sends to the next.
struct Between {
  std::vector<nn::TensorSpec> activations;
  nn::StashedTensors stashed;
};

// Records the inputs of the stage in `plan`.
void PlanInputs(const Between& between, StagePlan& plan) {
  plan.input = between.activations[0].shape;
  plan.input_dtype = between.activations[0].dtype;
  plan.more_inputs.assign(between.activations.begin() + 1,
                          between.activations.end());
  for (const nn::StashedTensor& stashed : between.stashed.waiting()) {
    plan.skips.push_back(
        {stashed.name, {stashed.tensor.shape(), stashed.tensor.dtype()}});
  }
}

// Returns whether replicas of the module change its buffers differently.
bool HasOwnBuffers(nn::Module& module) {
  const std::vector<nn::Buffer*> buffers = module.Buffers();
  return std::any_of(
      buffers.begin(), buffers.end(),
      [](const nn::Buffer* buffer) { return buffer->same_along != "dp"; });
}

// Adds the parameter to `plan`.
void AddParameter(const nn::Parameter& parameter, StagePlan& plan) {
  plan.parameters.push_back(parameter.name);
  plan.parameter_elems.push_back(parameter.shape.numel());
  plan.parameter_dtypes.push_back(parameter.dtype);
  if (parameter.sharding.partial_grad) {
    plan.partial_grads.resize(plan.parameters.size());
    plan.partial_grads.back() = true;
  }
  if (!parameter.sharding.is_split()) return;
  plan.split_elems.resize(plan.parameters.size());
  plan.split_elems.back() = parameter.global_shape.numel();
}

// Runs stage `stage` of `whole` on shapes and replaces `between` by its
// outputs. Appends to `trained` whether each parameter is trained.
absl::Status PlanStage(const nn::ModelFactory& factory, const Plan& whole,
                       int stage, Between& between, StagePlan& plan,
                       std::vector<bool>& trained) {
  TROUPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<nn::Module> module,
      BuildStage(factory, whole.cuts, stage,
                 PlacesOf(whole.mesh, /*rank=*/0, whole.sequence_parallel,
                          whole.depth_blocks)));
  PlanInputs(between, plan);
  nn::ShapeRecord record;
  TROUPE_ASSIGN_OR_RETURN(
      const nn::TensorList outputs,
      nn::ShapeOnlyForward(*module, between.activations, between.stashed,
                           whole.device, record));
  TROUPE_RETURN_IF_ERROR(CheckOwned(*module, record));
  between.activations.clear();
  for (const nn::Tensor& output : outputs) {
    between.activations.push_back({output.shape(), output.dtype()});
  }
  if (outputs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stage ", stage,
        " gives no tensor; return one from the Forward() of its last module"));
  }
  plan.output = outputs[0].shape();
  plan.output_dtype = outputs[0].dtype();
  plan.flops = record.flops();
  plan.layer_axes = record.axes;
  plan.shares_buffers = HasOwnBuffers(*module);
  const StageParameters parameters(*module, record);
  for (std::size_t i = 0; i < parameters.all.size(); ++i) {
    AddParameter(*parameters.all[i], plan);
    trained.push_back(parameters.IsTrained(i));
  }
  if (!plan.split_elems.empty()) {
    plan.split_elems.resize(plan.parameters.size());
  }
  if (!plan.partial_grads.empty()) {
    plan.partial_grads.resize(plan.parameters.size());
  }
  if (whole.gathers_values()) FillParts(*module, record, parameters.all, plan);
  return absl::OkStatus();
}

// Checks that the model returns one tensor, and that no stashed one is left.
absl::Status CheckModelEnds(const Between& end) {
  if (end.activations.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the last module gives ", end.activations.size(),
                     " tensors; return one from the Forward() of the model"));
  }
  return end.stashed.CheckAllTaken();
}

// Returns a plan without the fields that follow from the model.
Plan PlanOfChoices(const PlanOptions& options, nn::DType dtype,
                   nn::Device device) {
  Plan plan;
  static_cast<PlanChoices&>(plan) = options;
  plan.global_batch_size = options.global_batch_size;
  plan.micro_batch_size = options.MicroBatchSize();
  plan.micro_batches = options.MicroBatches();
  plan.data_dtype = options.data_dtype.value_or(
      nn::IsFloating(dtype) ? dtype : nn::DType::kF32);
  if (options.reduction_order != kAutoReduction) {
    plan.reduction_order = options.reduction_order;
  }
  plan.update_needs_all_buckets = options.reductions.update_needs_all_buckets;
  if (plan.gathers_values()) {
    plan.zero_ahead_bytes = options.zero_ahead_bytes;
    plan.zero_keep = options.zero_keep;
  }
  plan.dtype = dtype;
  plan.device = device;
  return plan;
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const PlanOptions& options,
                              const nn::ModelFactory& factory,
                              const nn::Shape& input, nn::DType dtype,
                              nn::Device device) {
  TROUPE_RETURN_IF_ERROR(CheckSizes(options));
  Plan plan = PlanOfChoices(options, dtype, device);
  absl::StatusOr<std::vector<std::string>> cuts =
      ResolveCuts(factory, options.cuts);
  if (!cuts.ok()) {
    return base::WithFields<&PlanOptions::cuts>(cuts.status());
  }
  plan.cuts = *std::move(cuts);
  TROUPE_RETURN_IF_ERROR(CheckPieces(options, factory, device));
  std::vector<std::int64_t> dims = {plan.micro_batch_size};
  dims.insert(dims.end(), input.dims().begin(), input.dims().end());
  Between between;
  between.activations = {
      {nn::Shape(absl::Span<const std::int64_t>(dims)), dtype}};
  std::vector<std::vector<bool>> trained;  // indexed by stage
  for (const StagePlace& place : PlacementOf(options)) {
    const int stage = static_cast<int>(plan.stages.size());
    plan.stages.emplace_back().place = place;
    TROUPE_RETURN_IF_ERROR(PlanStage(factory, plan, stage, between,
                                     plan.stages.back(),
                                     trained.emplace_back()));
    plan.stages.back().shares_buffers &= plan.mesh.dp() > 1;
  }
  TROUPE_RETURN_IF_ERROR(CheckModelEnds(between));
  FillBuckets({options.buckets, options.grad_dtype}, std::move(trained),
              plan.stages);
  for (int pp = 0; pp < options.mesh.pp(); ++pp) {
    TROUPE_ASSIGN_OR_RETURN(RankPlan rank, PlanRank(options, plan, pp));
    TROUPE_RETURN_IF_ERROR(Validate(rank.train));
    if (rank.train.micro_batches() != plan.micro_batches) {
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule: stage ", pp, " has ", rank.train.micro_batches(),
          " micro-batches where the plan has ", plan.micro_batches));
    }
    plan.ranks.push_back(std::move(rank));
  }
  TROUPE_RETURN_IF_ERROR(plan.Check());
  if (options.schedule) TROUPE_RETURN_IF_ERROR(CheckEnds(plan));
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

}  // namespace troupe::pipeline
