// Assigns the parameters of all stages of a plan to buckets
// (pipeline/buckets.h). Parameters that stages share have separate buckets.
//
//   // trained[stage][i]: its forward uses parameter i, which is not frozen.
//   FillBuckets({options.buckets, options.grad_dtype}, trained, plan.stages);
//
// A bucket has one dtype, and pieces of parameters that are split along tp, or
// whole ones: ranks along tp have different gradients of pieces, and the same
// ones of the others. Buckets are ordered by when their last gradient is
// complete; then come those of delayed parameters, one for each dtype, and last
// those of the stage's ties (pipeline/ties.h).

#ifndef PIPELINE_STAGE_BUCKETS_H_
#define PIPELINE_STAGE_BUCKETS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nn/tensor/dtype.h"
#include "pipeline/buckets.h"
#include "pipeline/plan.h"

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

}  // namespace troupe::pipeline

#endif  // PIPELINE_STAGE_BUCKETS_H_
