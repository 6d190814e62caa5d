// Assigns the parameters of all stages of a plan to buckets
// (pipeline/buckets.h). Parameters that stages share have separate buckets.
//
//   // trained[stage][i]: its forward uses parameter i, which is not frozen.
//   FillBuckets({options.buckets, options.grad_dtype}, trained, plan.stages);
//
// A bucket has one dtype, and pieces of parameters that are split along tp, or
// whole ones: ranks along tp have different gradients of pieces, and the same
// ones of the others; or parts of these, which are added up, in buckets of
// their own. Buckets are ordered by when their last gradient is
// complete; then come those of delayed parameters, one for each dtype, and last
// those of the stage's ties (pipeline/ties.h).
//
// Where values are gathered before their uses (pipeline/table/add_gathers.h),
// the plan also says when a forward reads each bucket:
//
//   FillParts(*module, record, parameters, stage);   // of a shape-only forward
//   GatherBeforeUses(options, plan, /*stages=*/{0}, reductions, rank_plan);
//
// The parts of a stage are the modules of its Sequentials, whose parameters are
// there while the module runs; a Sequential that is recomputed is one part, and
// so is a stage that is no Sequential. A bucket is read by the parts that have
// its parameters.

#ifndef PIPELINE_STAGE_BUCKETS_H_
#define PIPELINE_STAGE_BUCKETS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn/autograd/context.h"
#include "nn/autograd/parameter.h"
#include "nn/modules/module.h"
#include "nn/tensor/dtype.h"
#include "pipeline/buckets.h"
#include "pipeline/plan.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

struct StageBucketOptions {
  BucketOptions buckets;
  // Dtype of the gradients; unset: that of the parameters.
  std::optional<nn::DType> grad_dtype;
  // Limits of the buckets in bytes, of which the last one repeats; empty: those
  // of `buckets`.
  std::vector<std::int64_t> limits = {};
  // Names of parameters whose buckets come after the others.
  std::set<std::string> delayed = {};
};

// Sets StagePlan::buckets and frozen from the stages' lists of parameters. A
// parameter that several stages list is trained in all of them if it is trained
// in one.
void FillBuckets(const StageBucketOptions& options,
                 std::vector<std::vector<bool>> trained,
                 std::vector<StagePlan>& stages);

// Checks that each bucket of a stage has pieces of parameters, or whole ones;
// that it has parts of gradients, or whole ones; and that pieces are equal.
// `field`: the stage in errors.
absl::Status CheckSplits(const std::string& field, const StagePlan& stage,
                         int tp);

// Sets StagePlan::first_parts and last_parts. `parameters`: those of the plan.
void FillParts(const nn::Module& module, const nn::ShapeRecord& record,
               absl::Span<nn::Parameter* const> parameters, StagePlan& stage);

// Returns the options of a rank's reductions. `stages`: those of the rank, by
// chunk. `reduce_inline`: RankPlan::reduce_inline.
ReductionOptions ReductionsOf(const PlanOptions& options, const Plan& plan,
                              const std::vector<int>& stages,
                              bool reduce_inline);

// Adds gathers to the tables of a rank, if the plan gathers values. `stages`:
// those of the rank, by chunk. `reductions`: options of its training table.
void GatherBeforeUses(const PlanOptions& options, const Plan& plan,
                      const std::vector<int>& stages,
                      const ReductionOptions& reductions, RankPlan& rank);

// Returns the largest number of bytes that the ranks at coordinate `pp` have
// gathered at a time; 0 if the plan gathers no values.
std::int64_t MostGathered(const Plan& plan, int pp);

}  // namespace troupe::pipeline

#endif  // PIPELINE_STAGE_BUCKETS_H_
