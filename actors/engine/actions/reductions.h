// LR, NR, AR, RU, AG: one collective each, in the group that the rules name
// (pipeline/table/action_rules.h). A derived class makes the collective, says
// when its range is ready and handles its end; CollectiveAction gives it to the
// Reducer.

#ifndef ACTORS_ENGINE_ACTIONS_REDUCTIONS_H_
#define ACTORS_ENGINE_ACTIONS_REDUCTIONS_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/step_action.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

class CollectiveAction : public StepAction {
 public:
  explicit CollectiveAction(const EngineParts& parts) : parts_(parts) {}

  absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                 Dispatcher& dispatcher) final;

 protected:
  // Returns the collective; none if nothing is left to do. What it needs of an
  // earlier step it asks the dispatcher for (Dispatcher::FinishEarlier).
  virtual absl::StatusOr<std::optional<comm::Collective>> Make(
      const pipeline::Action& action, StepInFlight& step,
      Dispatcher& dispatcher) = 0;
  // Returns the event after which the collective's range may be read.
  virtual base::Event Ready(const pipeline::Action& action,
                            const StepInFlight& step,
                            const Dispatcher& dispatcher) const = 0;

  const EngineParts& parts_;
};

// LR: sums the losses of a step over all ranks.
class ReduceLossAction : public CollectiveAction {
 public:
  using CollectiveAction::CollectiveAction;
  absl::Status End(int id, StepInFlight& step, Dispatcher& dispatcher,
                   const base::Event& done) override;

 protected:
  absl::StatusOr<std::optional<comm::Collective>> Make(
      const pipeline::Action& action, StepInFlight& step,
      Dispatcher& dispatcher) override;
  base::Event Ready(const pipeline::Action& action, const StepInFlight& step,
                    const Dispatcher& dispatcher) const override;
};

// NR: sums the findings in all gradients (findings.h) over the stages.
class ReduceFindingsAction : public CollectiveAction {
 public:
  using CollectiveAction::CollectiveAction;
  absl::Status End(int id, StepInFlight& step, Dispatcher& dispatcher,
                   const base::Event& done) override;

 protected:
  absl::StatusOr<std::optional<comm::Collective>> Make(
      const pipeline::Action& action, StepInFlight& step,
      Dispatcher& dispatcher) override;
  base::Event Ready(const pipeline::Action& action, const StepInFlight& step,
                    const Dispatcher& dispatcher) const override;
};

// AR: reduces the gradients of a bucket over the replicas, as the bucket's
// BucketReduction says: one collective for each of its rounds.
class ReduceBucketAction : public CollectiveAction {
 public:
  using CollectiveAction::CollectiveAction;
  absl::Status End(int id, StepInFlight& step, Dispatcher& dispatcher,
                   const base::Event& done) override;

 protected:
  absl::StatusOr<std::optional<comm::Collective>> Make(
      const pipeline::Action& action, StepInFlight& step,
      Dispatcher& dispatcher) override;
  base::Event Ready(const pipeline::Action& action, const StepInFlight& step,
                    const Dispatcher& dispatcher) const override;

 private:
  // Begins the next round, or ends the reduction after its `last` one.
  absl::Status EndRound(const pipeline::Action& action, bool last,
                        const base::Event& done);
};

// RU: does the same and updates the bucket, in one pass over memory.
class ReduceUpdateAction : public ReduceBucketAction {
 public:
  using ReduceBucketAction::ReduceBucketAction;
  absl::Status End(int id, StepInFlight& step, Dispatcher& dispatcher,
                   const base::Event& done) override;

 protected:
  absl::StatusOr<std::optional<comm::Collective>> Make(
      const pipeline::Action& action, StepInFlight& step,
      Dispatcher& dispatcher) override;
};

// AG: brings the slices of a bucket's values together that the replicas have
// updated.
class GatherBucketAction : public CollectiveAction {
 public:
  using CollectiveAction::CollectiveAction;
  absl::Status End(int id, StepInFlight& step, Dispatcher& dispatcher,
                   const base::Event& done) override;

 protected:
  absl::StatusOr<std::optional<comm::Collective>> Make(
      const pipeline::Action& action, StepInFlight& step,
      Dispatcher& dispatcher) override;
  base::Event Ready(const pipeline::Action& action, const StepInFlight& step,
                    const Dispatcher& dispatcher) const override;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_REDUCTIONS_H_
