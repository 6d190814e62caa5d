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
#include "nn/modules/module.h"
#include "pipeline/buckets.h"
#include "pipeline/mesh.h"
#include "pipeline/schedule.h"

namespace troupe::pipeline {

// The compute actions (F, B, or F, I, W) of one stage of `mesh` for so many
// micro-batches; transfers and reductions are added to it.
using ScheduleFn =
    std::function<StepTable(const Mesh& mesh, int stage, int micro_batches)>;

struct PlanOptions {
  Mesh mesh;
  std::vector<int> cuts;  // pp - 1 of them; children of the Sequential
  std::int64_t global_batch_size = 64;
  // Samples of one forward of one stage; 0: the rank's whole share.
  std::int64_t micro_batch_size = 0;
  // Null: DataParallelTable for one stage, GPipeTable for several.
  ScheduleFn schedule;
  BucketOptions buckets;
  // A rank whose gradients are no larger reduces them on its compute strand:
  // handing them to the communication strand would cost more than the work.
  // Below 0: a job measures it (actors/calibrate.h); 0: never inline.
  std::int64_t inline_bytes = -1;
  // Where reductions are inline, reduces and updates a bucket in one pass over
  // memory (RU): the same bits, sooner. A job switches it off where its
  // optimizer is not elementwise.
  bool fuse_updates = true;
  int threads_per_rank = 1;
  // Of the gradients; unset: that of the parameters.
  std::optional<nn::DType> grad_dtype;
  ReductionOptions reductions;
};

// What errors call the size of an axis of PlanOptions::mesh:
// "PlanOptions.mesh.dp".
std::string AxisFieldName(absl::string_view axis);
// `status` with the axes of `mesh` as the fields to blame.
absl::Status WithAxisFields(absl::Status status, const Mesh& mesh);

// One stage: what each of its ranks holds and does.
struct StagePlan {
  nn::Shape input;   // of a micro-batch
  nn::Shape output;  // of a micro-batch
  nn::DType input_dtype = nn::DType::kF32;
  nn::DType output_dtype = nn::DType::kF32;
  double flops = 0;  // of one forward of a micro-batch
  // Axes of the mesh along which its layers communicate in the middle of a
  // forward; where there are any, compute actions keep the order of the table.
  std::vector<std::string> layer_axes;
  // Names in order of first use in the forward.
  std::vector<std::string> parameters;
  std::vector<std::int64_t> parameter_elems;
  // Numbers into `parameters`, bucket by bucket, each of one dtype; then those
  // without gradients.
  std::vector<std::vector<int>> buckets;
  std::vector<int> frozen;
  StepTable train;
  StepTable evaluate;
  // All collectives run on the compute strand (see inline_bytes).
  bool reduce_inline = false;
};

struct Plan {
  Mesh mesh;
  std::vector<int> cuts;
  std::int64_t global_batch_size = 1;
  std::int64_t micro_batch_size = 1;
  int micro_batches = 1;  // per rank and step
  int threads_per_rank = 1;
  std::optional<nn::DType> grad_dtype;  // unset: that of the parameters
  std::vector<StagePlan> stages;

  const StagePlan& StageOf(int rank) const {
    return stages[mesh.CoordsOf(rank).pp];
  }
  std::int64_t parameter_elems() const;
  // Several lines: mesh, batches, stages, buckets, tables.
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
