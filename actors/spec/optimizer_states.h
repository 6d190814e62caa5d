// The states that the optimizer of a job keeps for each parameter, and what its
// updates need.
//
//   TROUPE_ASSIGN_OR_RETURN(const auto states,
//                           OptimizerStates(spec, nn::DType::kBF16));
//   states;  // {"exp_avg": f32, "exp_avg_sq": f32, "master_value": f32}

#ifndef ACTORS_SPEC_OPTIMIZER_STATES_H_
#define ACTORS_SPEC_OPTIMIZER_STATES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "nn/optim/optimizer.h"
#include "nn/tensor/dtype.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

// Returns the dtypes of the states for parameters of `dtype`, by the states'
// names. Each state has as many elements as its parameter.
//   kInvalidArgument: the job makes no optimizer.
absl::StatusOr<std::map<std::string, nn::DType>> OptimizerStates(
    const JobSpec& spec, nn::DType dtype);

// Sets what the optimizer's updates need from reductions.
void SetNeedsOfUpdates(const nn::Optimizer& optimizer,
                       pipeline::ReductionOptions& reductions);

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_OPTIMIZER_STATES_H_
