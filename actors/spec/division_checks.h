// Refuses jobs in which ranks have parts of the parameters, or of the
// optimizer's states, and which need the whole ones.
//
//   TROUPE_RETURN_IF_ERROR(CheckOwners(options, *optimizer));
//   TROUPE_ASSIGN_OR_RETURN(pipeline::Plan plan, MakeJobPlan(spec, options));
//   TROUPE_RETURN_IF_ERROR(CheckPieces(plan, *optimizer, *kernels));
//
// Errors name the field (base/field_error.h) and what to set in its place.

#ifndef ACTORS_SPEC_DIVISION_CHECKS_H_
#define ACTORS_SPEC_DIVISION_CHECKS_H_

#include "absl/status/status.h"
#include "nn/kernels/kernels.h"
#include "nn/optim/optimizer.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Checks that replicas may share the optimizer's states (ZeRO).
absl::Status CheckOwners(const pipeline::PlanOptions& options,
                         const nn::Optimizer& optimizer);

// Checks that ranks along tp may have pieces of the plan's parameters, and
// replicas their values only during uses, on the device of `kernels`.
absl::Status CheckPieces(const pipeline::Plan& plan,
                         const nn::Optimizer& optimizer, nn::Kernels& kernels);

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_DIVISION_CHECKS_H_
