// Finds cuts that balance a model's stages, and estimates the stages' costs.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       options.cuts,
//       BalanceCuts(factory, input, Device{}, /*stages=*/4, Balance::kFlops));
//   TROUPE_ASSIGN_OR_RETURN(
//       const StepCosts costs,
//       EstimateCosts(factory, cuts, input, Device{}));
//
// A model may be cut before any child of its Sequential, or of a nested one.
// The result is the set of cuts whose largest stage is smallest; among equal
// sets, the one whose stages begin last, so that a module that costs nothing,
// such as a ReLU, stays with the one before it.
//
// Costs come from shape-only forwards: no tensor has memory, so the model may
// be larger than any device. If the parts of a model have been measured,
// cut_search.h finds cuts by their times, for several chunks a rank and within
// a memory limit.

#ifndef PIPELINE_BALANCE_H_
#define PIPELINE_BALANCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/autograd/sharding.h"
#include "nn/modules/module.h"
#include "pipeline/partition.h"
#include "pipeline/schedules/step_simulation.h"

namespace troupe::pipeline {

using Places = absl::Span<const nn::AxisPlace>;

// Quantity that is balanced over stages.
enum class Balance {
  kFlops,       // FLOPs of a forward
  kParameters,  // number of parameters
  kLayers,      // number of places where the model could be cut
};

// `input`: shape and dtype of a micro-batch. `places`: those of BuildStage().
//   kInvalidArgument: the model has fewer places than stages; says how many.
//   Errors of a shape-only forward.
absl::StatusOr<std::vector<Cut>> BalanceCuts(const nn::ModelFactory& factory,
                                             const nn::TensorSpec& input,
                                             nn::Device device, int stages,
                                             Balance balance,
                                             Places places = {});

// Returns the paths of all modules before which the model can be cut, in order;
// the first one begins the model.
//   kInvalidArgument: the model is no Sequential, so it has no such place.
absl::StatusOr<std::vector<std::string>> CutPlaces(
    const nn::ModelFactory& factory);

// Returns the costs of the stages that begin at `begins`, in FLOPs and bytes. A
// backward counts as twice a forward, half of it for gradients of inputs.
// Activations are what a rank is expected to keep for a micro-batch
// (nn/modules/recompute.h).
absl::StatusOr<StepCosts> EstimateCosts(const nn::ModelFactory& factory,
                                        absl::Span<const std::string> begins,
                                        const nn::TensorSpec& input,
                                        nn::Device device, Places places = {});

}  // namespace troupe::pipeline

#endif  // PIPELINE_BALANCE_H_
