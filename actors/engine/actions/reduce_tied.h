// TR: adds up the gradients of a bucket that several stages share: first the
// copies of this rank, then in one collective those of the other ranks that
// have the bucket (tied_sums.h). The TRs of all copies end together.

#ifndef ACTORS_ENGINE_ACTIONS_REDUCE_TIED_H_
#define ACTORS_ENGINE_ACTIONS_REDUCE_TIED_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/engine/actions/tied_sums.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/step_action.h"
#include "base/event.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class ReduceTiedAction : public StepAction {
 public:
  explicit ReduceTiedAction(const EngineParts& parts)
      : parts_(parts), sums_(*parts.setup.plan, parts.setup.rank) {}

  absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                 Dispatcher& dispatcher) override;
  absl::Status End(int id, StepInFlight& step, Dispatcher& dispatcher,
                   const base::Event& done) override;

 private:
  nn::Tensor GradsOf(const TiedSums::Copy& copy) const {
    return parts_.chunks[copy.chunk]->parameters().UnpaddedGrads(copy.bucket);
  }
  // Copies the sum to the other copies, and makes all ready to be reduced.
  absl::Status PassOn(const TiedSums::Sum& sum, const base::Event& done);

  const EngineParts& parts_;
  TiedSums sums_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_REDUCE_TIED_H_
