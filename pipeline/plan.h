// Everything that is chosen before a run: mesh, stage cuts, tables, buckets,
// and every choice that could change bits. Made once, from a shape-only
// forward, before any parameter has memory; equal on all ranks.
//
//   PlanOptions options;
//   options.mesh = Mesh(/*dp=*/2);
//   options.global_batch_size = 64;
//   TROUPE_ASSIGN_OR_RETURN(
//       Plan plan, MakePlan(options, factory, {28, 28, 1}, dtype, device));
//   plan.ToString();                // mesh, stages, buckets, tables
//   plan.RankPlanOf(/*rank=*/1).train.ToString();   // "F0 LR B0 AR0 UP0"
//
// Errors: kInvalidArgument that names the sizes that do not fit and blames
// their fields (base/field_error.h), or names the module whose shapes do not.

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
#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/loss_scale.h"
#include "nn/modules/module.h"
#include "pipeline/buckets.h"
#include "pipeline/mesh.h"
#include "pipeline/partition.h"
#include "pipeline/placement.h"
#include "pipeline/schedule.h"

namespace troupe::pipeline {

// The compute actions (F, B, or F, I, W) of the ranks at one coordinate of pp,
// over all their chunks, for so many micro-batches; transfers and reductions
// are added to it. With one chunk a rank, the coordinate is the stage.
using ScheduleFn =
    std::function<StepTable(const Mesh& mesh, int pp, int micro_batches)>;

// Names of the orders in which comm/ adds up over ranks: one tree per element,
// whatever carries it (comm/reduction_tree.h); or one that a library chooses,
// with the same result on all ranks (comm/nccl/nccl_group.h).
inline constexpr char kTreeReduction[] = "tree";
inline constexpr char kAnyReduction[] = "any";
// Leaves the choice to the job; a plan of its own has the tree.
inline constexpr char kAutoReduction[] = "auto";

struct PlanOptions {
  Mesh mesh;
  // Where stages begin, the first one left out: stages - 1 of them, by the
  // number or the path of a module (pipeline/partition.h).
  std::vector<Cut> cuts;
  std::int64_t global_batch_size = 64;
  // Samples of one forward of one stage; 0: the rank's whole share. Where that
  // is no multiple of it, the last micro-batch is smaller.
  std::int64_t micro_batch_size = 0;
  // What a plan makes of the two; at least 1, whatever they are: sizes that
  // cannot be are told when the plan is made.
  std::int64_t MicroBatchSize() const;
  int MicroBatches() const;
  // Null: DataParallelTable for one stage, GPipeTable for several.
  ScheduleFn schedule;
  BucketOptions buckets;
  // A rank whose gradients are no larger reduces them on its compute strand:
  // handing them to the communication strand would cost more than the work.
  // Below 0: a job measures it (actors/planning/calibrate.h); 0: never inline.
  std::int64_t inline_bytes = -1;
  // Where reductions are inline, reduces and updates a bucket in one pass over
  // memory (RU): the same bits, sooner. A job switches it off where its
  // optimizer is not elementwise.
  bool fuse_updates = true;
  // A step's forward begins on the buckets that are updated while others of the
  // step before are on their way, and those that it reads first go first on
  // the wire. The same bits. It changes nothing where reductions are inline,
  // where an update needs all buckets, and on a device that works later than
  // it is told.
  bool cross_step = false;
  std::string reduction_order = kAutoReduction;
  // Whether a rank may run what a message has come for before what its table
  // has first. The same bits.
  Dispatch dispatch = Dispatch::kArrival;
  int threads_per_rank = 1;
  // Dtype of the gradients; unset: that of the parameters.
  std::optional<nn::DType> grad_dtype;
  // Dtype in which gradients are added up over replicas; unset: that of the
  // gradients. Another one needs a copy of them, and no update is fused.
  std::optional<nn::DType> reduction_dtype;
  ReductionOptions reductions;
  // Chunks that each rank holds, looped over pp (Narayanan et al. 2021,
  // arXiv:2104.04473): pp * virtual_stages stages in all.
  int virtual_stages = 1;
  // Another placement than the looped one; it says the number of stages.
  Placement placement;
  // A job fills in the next five itself, from its kernels and its spec.
  // What the kernel set says of itself (nn::Kernels::Describe), since other
  // kernels may give other bits. "" where nobody has opened one.
  std::string kernels;
  // What all gradients are multiplied by until the update; in the first step,
  // where it is dynamic.
  double loss_scale = 1;
  std::optional<nn::LossScaleRule> dynamic_loss_scale;
  // What loaded floats become, inputs and targets; unset: the input's dtype, or
  // f32 where that is an integer.
  std::optional<nn::DType> data_dtype;
  // Algorithms that are chosen already (nn::KernelChoices::Known()).
  nn::ChoicesByDevice algorithms;
};

// What errors call the size of an axis of PlanOptions::mesh:
// "PlanOptions.mesh.dp".
std::string AxisFieldName(absl::string_view axis);
// `status` with the axes of `mesh` as the fields to blame.
absl::Status WithAxisFields(absl::Status status, const Mesh& mesh);

// Limit on the tensors that a stage may be sent of a micro-batch.
inline constexpr int kStageTensorsMax = 1024;

// A tensor that a module has stashed for one of a later stage
// (nn/modules/skip.h), and that travels with the activation until then.
struct SkipPlan {
  std::string name;
  nn::TensorSpec spec;  // of a micro-batch
};

// One stage: a part of the model, and where it lies.
struct StagePlan {
  StagePlace place;  // coordinate along pp, and chunk of the ranks there
  // Of a micro-batch; the last one of a step may have fewer samples.
  nn::Shape input;
  nn::Shape output;
  nn::DType input_dtype = nn::DType::kF32;
  nn::DType output_dtype = nn::DType::kF32;
  // Where the module before the cut gives several tensors (ForwardMany): those
  // behind `input`.
  std::vector<nn::TensorSpec> more_inputs;
  // What comes behind the inputs, in the order of stashing: tensors that the
  // stage pops, and those that it passes on. None in the first stage.
  std::vector<SkipPlan> skips;
  double flops = 0;  // of one forward of such a micro-batch
  // Axes of the mesh along which its layers communicate in the middle of a
  // forward; where there are any, compute actions keep the order of the table.
  std::vector<std::string> layer_axes;
  // Names in order of first use in the forward; then those that it leaves out.
  std::vector<std::string> parameters;
  std::vector<std::int64_t> parameter_elems;
  std::vector<nn::DType> parameter_dtypes;
  // Numbers into `parameters`, bucket by bucket, each of one dtype; then those
  // that are not trained: frozen, or used by no forward. What other stages list
  // too is a copy, and lies in the last buckets (pipeline/ties.h).
  std::vector<std::vector<int>> buckets;
  std::vector<int> frozen;

  std::vector<nn::TensorSpec> inputs() const;
  // How many tensors come from the stage before, and how large they are.
  int received_tensors() const {
    return static_cast<int>(1 + more_inputs.size() + skips.size());
  }
  std::int64_t received_bytes() const;
  // `skips` as meta tensors, for a shape-only forward of the stage.
  absl::StatusOr<nn::StashedTensors> SkipsOn(nn::Device device) const;
};

// What the ranks at one coordinate of pp do, over all their chunks.
struct RankPlan {
  StepTable train;
  StepTable evaluate;
  // All collectives run on the compute strand (see inline_bytes).
  bool reduce_inline = false;
};

// Complete: whoever has the plan and the model does what all others do. Made
// by one, sent as text (pipeline/plan_json.h), compared by hash or field by
// field (pipeline/plan_diff.h), and constant from then on.
//
// What is learned is not in it: model, loss, optimizer, samples and seed are
// the same under every plan, and a checkpoint names seed and samples by itself.
struct Plan {
  Mesh mesh;
  // Paths of modules, as ResolveCuts() has them: one text for one place.
  std::vector<std::string> cuts;
  std::int64_t global_batch_size = 1;
  std::int64_t micro_batch_size = 1;  // of all but the last
  int micro_batches = 1;              // per rank and step
  int threads_per_rank = 1;
  std::int64_t inline_bytes = -1;
  bool fuse_updates = true;
  bool cross_step = false;
  bool update_needs_all_buckets = false;
  nn::DType dtype = nn::DType::kF32;         // of the first stage's input
  std::optional<nn::DType> grad_dtype;       // unset: that of the parameters
  std::optional<nn::DType> reduction_dtype;  // unset: that of the gradients
  nn::DType data_dtype = nn::DType::kF32;    // of loaded floats
  double loss_scale = 1;                     // of the first step
  std::optional<nn::LossScaleRule> dynamic_loss_scale;  // unset: of all steps
  nn::Device device;
  std::string kernels;
  std::string reduction_order = kTreeReduction;
  Dispatch dispatch = Dispatch::kArrival;
  // Which of a library's algorithms computes what, by kind of device, as far as
  // it is known: the rest is measured at the first use of a shape, and is in
  // the plan that lies beside the next checkpoint.
  nn::ChoicesByDevice algorithms;
  std::vector<StagePlan> stages;  // in the order of the model
  std::vector<RankPlan> ranks;    // by coordinate along pp

  // The first stage of a rank: its only one where it has one chunk.
  const StagePlan& StageOf(int rank) const { return stages[StagesOf(rank)[0]]; }
  // The stages of a rank, by chunk.
  std::vector<int> StagesOf(int rank) const {
    return StagesAt(placement(), mesh.CoordOf(rank, kPpAxis));
  }
  const RankPlan& RankPlanOf(int rank) const {
    return ranks[mesh.CoordOf(rank, kPpAxis)];
  }
  Placement placement() const;
  // Of the model: what several stages have counts once.
  std::int64_t parameter_elems() const;
  // Samples of the last micro-batch of a rank's step: what is left for it.
  std::int64_t last_micro_batch_size() const {
    return global_batch_size / mesh.dp() -
           (micro_batches - 1) * micro_batch_size;
  }
  // That as a part of micro_batch_size: 1 where all are alike.
  double last_micro_batch_part() const {
    return static_cast<double>(last_micro_batch_size()) /
           static_cast<double>(micro_batch_size);
  }

  // kInvalidArgument that names the field: what does not fit together, such as
  // a parameter in two buckets, or a table of another number of micro-batches.
  // Linear in the plan. Holds for whatever MakePlan returns.
  absl::Status Check() const;
  // Several lines: mesh, batches, kernels, stages, buckets, tables.
  std::string ToString() const;
};

// `input`: shape of one sample, without the batch. `dtype` is that of the
// input: what the model's floating parameters are is in the model.
absl::StatusOr<Plan> MakePlan(const PlanOptions& options,
                              const nn::ModelFactory& factory,
                              const nn::Shape& input, nn::DType dtype,
                              nn::Device device);

}  // namespace troupe::pipeline

#endif  // PIPELINE_PLAN_H_
