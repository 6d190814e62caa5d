// A plan of parameters alone, for a training loop that a program writes itself:
// buckets and mesh, without batches, cuts or a loss. What reads a plan's
// buckets works on it unchanged (actors/chunks/chunk_parameters.h, GroupsOf).
//
//   ParameterPlanOptions options;
//   options.mesh = Mesh(/*dp=*/2);
//   TROUPE_ASSIGN_OR_RETURN(
//       Plan plan, MakeParameterPlan(options, model.Parameters(), device));
//   plan.stages[0].buckets;         // indices into the parameters, by bucket
//   LoopTable(/*buckets=*/2, {}).ToString();       // "AR0 AR1 UP0 UP1"
//
// Buckets are in reverse order of declaration, as in PyTorch's DDP before its
// first step: the order in which a backward completes most models' gradients.
// They follow from names, sizes, dtypes and options alone, so ranks with the
// same model have the same plan; PlanHash() compares them.
//
// The plan has one stage, and none of the tables of a job: Plan::Check() does
// not accept it, and RankPlan::train is empty.
//
// Errors: kInvalidArgument that names the axis of the mesh, or the parameter; a
// delayed parameter that does not exist, with the nearest names.
// Cost: linear in the parameters.

#ifndef PIPELINE_PARAMETER_PLAN_H_
#define PIPELINE_PARAMETER_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/autograd/parameter.h"
#include "nn/tensor/device.h"
#include "nn/tensor/dtype.h"
#include "pipeline/buckets.h"
#include "pipeline/mesh.h"
#include "pipeline/plan.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

struct ParameterPlanOptions {
  Mesh mesh;  // replicas alone
  BucketOptions buckets;
  // Limits of the buckets in bytes, of which the last one repeats; empty: those
  // of `buckets`.
  std::vector<std::int64_t> bucket_limits;
  // Names of parameters whose gradients are reduced after all others: they have
  // the last bucket, one for each dtype.
  std::vector<std::string> delayed;
  // Dtype of the gradients; unset: that of the parameters.
  std::optional<nn::DType> grad_dtype;
  // Dtype in which they are added up over replicas; unset: their own.
  std::optional<nn::DType> reduction_dtype;
  // Limit on the bytes of all gradients up to which a rank reduces them on its
  // compute strand (RankPlan::reduce_inline).
  std::int64_t inline_bytes = 0;
};

// `parameters`: those of the whole model in declaration order, with their names
// (nn::Module::Parameters). One with requires_grad false is frozen.
absl::StatusOr<Plan> MakeParameterPlan(
    const ParameterPlanOptions& options,
    absl::Span<nn::Parameter* const> parameters, nn::Device device);

// Returns the number of the plan's last buckets that have the parameters of
// ParameterPlanOptions::delayed.
int DelayedBuckets(const Plan& plan, const std::vector<std::string>& delayed);

struct LoopTableOptions {
  bool updates = true;  // false: gradients are reduced, and nothing else
  // Whether LR adds up the loss statistics, whose count then divides the
  // gradients.
  bool reduce_loss = false;
  bool update_needs_all_buckets = false;  // Optimizer::NeedsAllBuckets()
  // The buckets in the order of their reductions; empty: by number.
  std::vector<int> order;
};

// Returns "LR AR0 AR1 UP0 UP1", the part of a step that follows the gradients:
// what a loop's own code does has no actions. Updates need kStepAsked.
StepTable LoopTable(int buckets, const LoopTableOptions& options);

}  // namespace troupe::pipeline

#endif  // PIPELINE_PARAMETER_PLAN_H_
