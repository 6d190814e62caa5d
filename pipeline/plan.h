// A plan holds everything that is chosen before a run: mesh, stage cuts,
// tables, buckets, and every choice that could change bits. It is made once,
// from a shape-only forward, before any parameter has memory, and is equal on
// all ranks.
//
//   PlanOptions options;
//   options.mesh = Mesh(/*dp=*/2);
//   options.global_batch_size = 64;
//   TROUPE_ASSIGN_OR_RETURN(
//       Plan plan, MakePlan(options, factory, {28, 28, 1}, dtype, device));
//   plan.ToString();                // mesh, stages, buckets, tables
//   plan.RankPlanOf(/*rank=*/1).train.ToString();   // "F0 LR B0 AR0 UP0"
//
// Errors: kInvalidArgument that names the sizes that do not fit together and
// blames their fields (base/field_error.h), or names the module whose shapes do
// not fit.

#ifndef PIPELINE_PLAN_H_
#define PIPELINE_PLAN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/autograd/stashed_tensors.h"
#include "nn/modules/module.h"
#include "pipeline/buckets.h"
#include "pipeline/mesh.h"
#include "pipeline/partition.h"
#include "pipeline/plan_choices.h"
#include "pipeline/table/placement.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

// Returns the compute actions (F, B, or F, I, W) of the ranks at coordinate
// `pp`, over all their chunks, for `micro_batches` micro-batches; MakePlan()
// adds transfers and reductions. With one chunk a rank, `pp` is the stage.
using ScheduleFn =
    std::function<StepTable(const Mesh& mesh, int pp, int micro_batches)>;

// Names of the orders in which comm/ adds up over ranks: one tree per element
// on every transport (comm/reduction/reduction_tree.h); or an order that a
// library chooses, with the same result on all ranks (comm/nccl/nccl_group.h).
inline constexpr char kTreeReduction[] = "tree";
inline constexpr char kAnyReduction[] = "any";
// Leaves the choice to the job; MakePlan() alone takes the tree.
inline constexpr char kAutoReduction[] = "auto";

// Choices to make a plan from. The model decides the rest.
struct PlanOptions : PlanChoices {
  // Where stages begin, except the first one: stages - 1 cuts, each by the
  // number or the path of a module (pipeline/partition.h).
  std::vector<Cut> cuts;
  std::int64_t global_batch_size = 64;
  // Samples of one forward of one stage; 0: the rank's whole share. If the
  // share is no multiple of it, the last micro-batch is smaller. If dp does not
  // divide the global batch, some micro-batches have one sample less.
  std::int64_t micro_batch_size = 0;
  // Returns what the plan will have as `micro_batch_size` and `micro_batches`,
  // at least 1 for any sizes: MakePlan() reports sizes that do not fit.
  std::int64_t MicroBatchSize() const;
  int MicroBatches() const;
  // Null: DataParallelTable for one stage, GPipeTable for several.
  ScheduleFn schedule;
  BucketOptions buckets;
  std::string reduction_order = kAutoReduction;
  ReductionOptions reductions;
  // At stage 3 of ZeRO, limit on the bytes that are gathered ahead of the part
  // of the model that runs, and whether what a step has gathered stays until
  // its last use (pipeline/table/add_gathers.h). The same bits.
  std::int64_t zero_ahead_bytes = std::int64_t{32} << 20;
  bool zero_keep = false;
  // Number of chunks that each rank holds, looped over pp (Narayanan et al.
  // 2021, arXiv:2104.04473): pp * virtual_stages stages in all.
  int virtual_stages = 1;
  // Placement to use instead of the looped one; its size is the number of
  // stages. Empty: looped.
  Placement placement;
  // Dtype of loaded floats, inputs and targets, which a job fills in from its
  // spec. Unset: the input's dtype, or f32 if that is an integer.
  std::optional<nn::DType> data_dtype;
};

// Returns the name in errors for the size of an axis of PlanOptions::mesh:
// "PlanOptions.mesh.dp".
std::string AxisFieldName(absl::string_view axis);
// Returns `status` with the axes of `mesh` as the fields to blame.
absl::Status WithAxisFields(absl::Status status, const Mesh& mesh);

// Limit on the tensors that a stage receives for a micro-batch.
inline constexpr int kStageTensorsMax = 1024;

// A tensor that a module has stashed for a module of a later stage
// (nn/modules/skip.h). It is sent on with the activation until that stage.
struct SkipPlan {
  std::string name;
  nn::TensorSpec spec;  // shape and dtype for a micro-batch
};

// The parameters of a stage, as lists with an element for each.
struct ParameterLists {
  // Names in order of first use in the forward; then those that it never uses.
  std::vector<std::string> parameters;
  std::vector<std::int64_t> parameter_elems;
  std::vector<nn::DType> parameter_dtypes;
  // Number of elements of each whole parameter, of which ranks along tp have
  // equal pieces of `parameter_elems`; 0: each rank has all of it. Empty: no
  // parameter is split.
  std::vector<std::int64_t> split_elems;
  // Whether ranks along tp have parts of each parameter's gradient, those of
  // their tokens, which are added up before replicas' gradients are. Empty: no
  // gradient is in parts.
  std::vector<bool> partial_grads;
  // The parts of the stage, in the order in which its forward runs them, that
  // use each parameter first and last. Empty: there is one part, or the plan
  // gathers no values (PlanChoices::gathers_values()).
  std::vector<int> first_parts, last_parts;

  // Returns whether ranks along tp have pieces of parameter `i`.
  bool IsSplit(int i) const {
    return i < static_cast<int>(split_elems.size()) && split_elems[i] > 0;
  }
  // Returns whether they have parts of its gradient.
  bool IsPartial(int i) const {
    return i < static_cast<int>(partial_grads.size()) && partial_grads[i];
  }
  int FirstPart(int i) const {
    return first_parts.empty() ? 0 : first_parts[i];
  }
  int LastPart(int i) const { return last_parts.empty() ? 0 : last_parts[i]; }
};

// One stage: a part of the model, and its place.
struct StagePlan : ParameterLists {
  StagePlace place;  // coordinate along pp, and chunk of the ranks there
  // Shapes for a micro-batch; the last one of a step may have fewer samples.
  nn::Shape input;
  nn::Shape output;
  nn::DType input_dtype = nn::DType::kF32;
  nn::DType output_dtype = nn::DType::kF32;
  // Inputs after the first one, if the module before the cut returns several
  // tensors (ForwardMany).
  std::vector<nn::TensorSpec> more_inputs;
  // Tensors received after the inputs, in the order of stashing: those that the
  // stage pops, and those that it passes on. None in the first stage.
  std::vector<SkipPlan> skips;
  double flops = 0;  // FLOPs of the forward of one micro-batch
  // Axes of the mesh along which its layers communicate in the middle of a
  // forward. If there are any, compute actions keep the order of the table.
  std::vector<std::string> layer_axes;
  // Whether all replicas take the buffers of the first one before an evaluation
  // and a checkpoint: there are several, whose buffers differ.
  bool shares_buffers = false;
  // Indices into `parameters`, bucket by bucket, each of one dtype. `frozen`
  // has those that are not trained: frozen, or used by no forward. A parameter
  // that other stages list too is a copy, and lies in the last buckets
  // (pipeline/ties.h).
  std::vector<std::vector<int>> buckets;
  std::vector<int> frozen;

  // Returns whether a bucket has pieces of parameters. It then has no other
  // ones.
  bool IsSplitBucket(int bucket) const { return IsSplit(buckets[bucket][0]); }
  // Returns whether ranks along tp have parts of the bucket's gradients. It
  // then has no whole ones.
  bool IsPartialBucket(int bucket) const {
    return IsPartial(buckets[bucket][0]);
  }

  std::vector<nn::TensorSpec> inputs() const;
  // Number of tensors that the stage before sends for a micro-batch, and their
  // size.
  int received_tensors() const {
    return static_cast<int>(1 + more_inputs.size() + skips.size());
  }
  std::int64_t received_bytes() const;
  // Returns `skips` as meta tensors, for a shape-only forward of the stage.
  absl::StatusOr<nn::StashedTensors> SkipsOn(nn::Device device) const;
};

// The tables of the ranks at one coordinate of pp, over all their chunks.
struct RankPlan {
  StepTable train;
  StepTable evaluate;
  // Whether all collectives run on the compute strand (see inline_bytes).
  bool reduce_inline = false;
};

// A plan is complete: each process runs its ranks from the plan and the model
// alone. One process makes it and sends it as text (pipeline/plan_json.h);
// plans are compared by hash or field by field (pipeline/plan_diff.h), and do
// not change.
//
// Model, loss, optimizer, samples and seed are not part of it: they are the
// same under every plan, and a checkpoint records seed and samples itself.
struct Plan : PlanChoices {
  // Paths of modules from ResolveCuts(): equal places have equal text.
  std::vector<std::string> cuts;
  std::int64_t global_batch_size = 1;
  std::int64_t micro_batch_size = 1;  // most samples of one
  int micro_batches = 1;              // number per rank and step
  bool update_needs_all_buckets = false;
  nn::DType dtype = nn::DType::kF32;       // dtype of the first stage's input
  nn::DType data_dtype = nn::DType::kF32;  // dtype of loaded floats
  nn::Device device;
  std::string reduction_order = kTreeReduction;
  // Values of the options, if replicas gather values: the tables keep to them.
  std::int64_t zero_ahead_bytes = 0;
  bool zero_keep = false;
  std::vector<StagePlan> stages;  // ordered as in the model
  std::vector<RankPlan> ranks;    // indexed by coordinate along pp

  // Returns the first stage of a rank, which is its only one if it has one
  // chunk.
  const StagePlan& StageOf(int rank) const { return stages[StagesOf(rank)[0]]; }
  // Returns the stages of a rank, indexed by chunk.
  std::vector<int> StagesOf(int rank) const {
    return StagesAt(placement(), mesh.CoordOf(rank, kPpAxis));
  }
  const RankPlan& RankPlanOf(int rank) const {
    return ranks[mesh.CoordOf(rank, kPpAxis)];
  }
  // Returns whether ranks along tp have pieces of parameters.
  bool SplitsParameters() const;
  // Returns whether pieces of the rank are gathered for a checkpoint: those of
  // the first copy of its stage.
  bool GathersPieces(int rank) const;
  // Returns whether replicas of the rank take buffers from its group
  // (StagePlan::shares_buffers).
  bool SharesBuffers(int rank) const;
  Placement placement() const;
  // Returns the number of rounds in which buckets are reduced: several under a
  // hook, or one for each micro-batch (ReducesEachMicroBatch()), though one for
  // a bucket that stages share. Ranks whose stages have no parameters reduce
  // nothing.
  int rounds() const;
  // Returns whether replicas keep reduced gradients as slices alone.
  bool SlicesGradients() const {
    return PlanChoices::SlicesGradients(micro_batches);
  }
  // Returns whether the gradients of each micro-batch are reduced, and their
  // slices added up.
  bool ReducesEachMicroBatch() const {
    return SlicesGradients() && micro_batches > 1;
  }
  // Returns the number of elements in the model's parameters; one that several
  // stages share counts once, one that ranks along tp share as a whole.
  std::int64_t parameter_elems() const;
  // Returns the number of samples in the last micro-batch of the largest share
  // of a step, which are those that the others leave.
  std::int64_t last_micro_batch_size() const {
    return LargestShare(global_batch_size, mesh.dp()) -
           (micro_batches - 1) * micro_batch_size;
  }
  // Returns last_micro_batch_size() / micro_batch_size; 1 if all are equal.
  double last_micro_batch_part() const {
    return static_cast<double>(last_micro_batch_size()) /
           static_cast<double>(micro_batch_size);
  }

  // Returns kInvalidArgument that names the field if parts do not fit together,
  // such as a parameter in two buckets, or a table with another number of
  // micro-batches. Linear in the plan. A plan from MakePlan() passes.
  absl::Status Check() const;
  // Several lines: mesh, batches, kernels, stages, buckets, tables.
  std::string ToString() const;
};

// Checks that the ranks along tp can have equal pieces of the model, and, if
// the options say so, share tokens or compute sums in blocks: kInvalidArgument
// with the fields to blame.
absl::Status CheckPieces(const PlanOptions& options,
                         const nn::ModelFactory& factory, nn::Device device);

// Makes a plan. `input`: shape of one sample, without the batch. `dtype`: that
// of the input; the model decides the dtypes of its parameters.
absl::StatusOr<Plan> MakePlan(const PlanOptions& options,
                              const nn::ModelFactory& factory,
                              const nn::Shape& input, nn::DType dtype,
                              nn::Device device);

}  // namespace troupe::pipeline

#endif  // PIPELINE_PLAN_H_
