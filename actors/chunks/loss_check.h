// What a step's losses say, once the host may look at them: whether the job is
// to stop, and what travels to the supervisor.
//
//   TROUPE_RETURN_IF_ERROR(
//       CheckFinite(step, /*micro_batch=*/0, stats.data<double>()));
//   TROUPE_RETURN_IF_ERROR(CheckStep(step, nn::ScalarsIn(scalars), checks));
//   const LossBits loss = LossIn(nn::ScalarsIn(scalars));
//
// On the host a StepLoss looks at once; where the device works later, a
// LossReader does.

#ifndef ACTORS_CHUNKS_LOSS_CHECK_H_
#define ACTORS_CHUNKS_LOSS_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "actors/chunks/step_types.h"
#include "nn/kernels/step_scalars.h"

namespace troupe::actors {

// kFailedPrecondition where the statistics of a micro-batch's loss are not
// finite; names step and micro-batch.
absl::Status CheckFinite(std::int64_t step, int micro_batch,
                         const double* stats);

// What a job asks of a whole step.
struct StepChecks {
  bool counted = false;       // some target counts
  double loss_scale_min = 0;  // the next step's scale is no less
};

// kFailedPrecondition where no target of the step counts, so that its mean loss
// is no number (a sum is 0), or where its gradients are not finite at the least
// scale; names the step.
absl::Status CheckStep(std::int64_t step, const nn::StepScalars& scalars,
                       const StepChecks& checks);

// The loss in a step's scalars, and the norm of its gradients.
LossBits LossIn(const nn::StepScalars& scalars);

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_LOSS_CHECK_H_
