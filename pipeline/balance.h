// Where to cut a model so that its stages are alike, and what stages cost.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       options.cuts,
//       BalanceCuts(factory, input, Device{}, /*stages=*/4, Balance::kFlops));
//   TROUPE_ASSIGN_OR_RETURN(
//       const StepCosts costs,
//       EstimateCosts(factory, cuts, input, Device{}));
//
// A model may be cut before any child of its Sequential, or of one that lies in
// it. Of all sets of cuts, the one is taken whose largest stage is smallest; of
// those, the one whose stages begin last, so that what costs nothing, such as a
// ReLU, stays with what it follows.
//
// Everything is found by shape-only forwards: nothing is computed, and the
// model need not fit anywhere. Where the parts of a model have been measured,
// cut_search.h finds cuts by their times, for several chunks a rank and within
// a limit of memory.

#ifndef PIPELINE_BALANCE_H_
#define PIPELINE_BALANCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/modules/module.h"
#include "pipeline/partition.h"
#include "pipeline/schedules/step_simulation.h"

namespace troupe::pipeline {

// What is made alike.
enum class Balance {
  kFlops,       // of a forward
  kParameters,  // their number
  kLayers,      // the number of places where the model could be cut
};

// `input`: of a micro-batch.
//   kInvalidArgument: the model has fewer places than stages; says how many.
//   Errors of a shape-only forward.
absl::StatusOr<std::vector<Cut>> BalanceCuts(const nn::ModelFactory& factory,
                                             const nn::TensorSpec& input,
                                             nn::Device device, int stages,
                                             Balance balance);

// The paths of all modules before which the model can be cut, in order; the
// first one begins the model.
//   kInvalidArgument: there are none, since the model is no Sequential.
absl::StatusOr<std::vector<std::string>> CutPlaces(
    const nn::ModelFactory& factory);

// Costs of the stages that begin at `begins`, in FLOPs and bytes: a backward
// takes twice a forward, half of that for gradients of inputs, and keeps what a
// rank is expected to keep of a micro-batch (nn/modules/recompute.h).
absl::StatusOr<StepCosts> EstimateCosts(const nn::ModelFactory& factory,
                                        absl::Span<const std::string> begins,
                                        const nn::TensorSpec& input,
                                        nn::Device device);

}  // namespace troupe::pipeline

#endif  // PIPELINE_BALANCE_H_
