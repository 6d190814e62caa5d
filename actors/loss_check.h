// What a step's losses say, once the host may look at them: whether the job is
// to stop, and what travels to the supervisor.
//
//   TROUPE_RETURN_IF_ERROR(
//       CheckFinite(step, /*micro_batch=*/0, stats.data<double>()));
//   TROUPE_RETURN_IF_ERROR(CheckCounted(step, nn::ScalarsIn(scalars)));
//   const LossBits loss = LossIn(nn::ScalarsIn(scalars));
//
// On the host a StepLoss looks at once; where the device works later, a
// LossReader does.

#ifndef ACTORS_LOSS_CHECK_H_
#define ACTORS_LOSS_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "actors/step_types.h"
#include "nn/kernels/step_scalars.h"

namespace troupe::actors {

// kFailedPrecondition where the statistics of a micro-batch's loss are not
// finite; names step and micro-batch.
absl::Status CheckFinite(std::int64_t step, int micro_batch,
                         const double* stats);

// kFailedPrecondition where no target of a whole step counts, so that its loss
// is no number; names the step.
absl::Status CheckCounted(std::int64_t step, const nn::StepScalars& scalars);

// The loss in a step's scalars.
LossBits LossIn(const nn::StepScalars& scalars);

}  // namespace troupe::actors

#endif  // ACTORS_LOSS_CHECK_H_
