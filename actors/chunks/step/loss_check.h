// Checks a step's losses, once they are on the host, for errors at which the
// job stops, and converts them for the message to the supervisor.
//
//   TROUPE_RETURN_IF_ERROR(
//       CheckFinite(step, /*micro_batch=*/0, stats.data<double>()));
//   TROUPE_RETURN_IF_ERROR(CheckStep(step, nn::ScalarsIn(scalars), checks));
//   const LossBits loss = LossIn(nn::ScalarsIn(scalars));
//
// A StepLoss calls these at once on the CPU; on a device with queues a
// LossReader calls them later.

#ifndef ACTORS_CHUNKS_STEP_LOSS_CHECK_H_
#define ACTORS_CHUNKS_STEP_LOSS_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "actors/chunks/step/step_types.h"
#include "nn/kernels/step_scalars.h"

namespace troupe::actors {

// Checks the statistics of a micro-batch's loss.
//   kFailedPrecondition: its sum is not finite; names step and micro-batch.
absl::Status CheckFinite(std::int64_t step, int micro_batch,
                         const double* stats);

// Checks that a job makes on a whole step.
struct StepChecks {
  bool counted = false;       // whether some target must count
  double loss_scale_min = 0;  // lower limit of the next step's loss scale
};

// Makes `checks` on a step.
//   kFailedPrecondition: no target of the step counts, so that its mean loss is
//   NaN (a sum is 0); or its gradients are not finite, and half its loss scale
//   is below the limit. Names the step.
absl::Status CheckStep(std::int64_t step, const nn::StepScalars& scalars,
                       const StepChecks& checks);

// Returns the loss in a step's scalars, and the norm of its gradients.
LossBits LossIn(const nn::StepScalars& scalars);

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_LOSS_CHECK_H_
