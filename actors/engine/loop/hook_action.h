// AR of a loop with a communication hook: calls the hook (bucket_hook.h) in
// place of the all-reduce.
//
//   actions[static_cast<int>(pipeline::ActionKind::kReduceBucket)] =
//       std::make_unique<HookAction>(parts, &hook);
//
// On a device with queues the hook is called when the gradients' work has been
// enqueued: what it enqueues on the compute queue, and collectives after that
// queue, come between the gradients and the update.
//
// Errors: those of the hook.

#ifndef ACTORS_ENGINE_LOOP_HOOK_ACTION_H_
#define ACTORS_ENGINE_LOOP_HOOK_ACTION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/loop/bucket_hook.h"
#include "actors/engine/step_action.h"
#include "base/event.h"

namespace troupe::actors {

class HookAction : public StepAction {
 public:
  // Both outlive it.
  HookAction(const EngineParts& parts, BucketHook* hook)
      : parts_(parts), hook_(hook) {}

  absl::StatusOr<Progress> Begin(int id, StepInFlight& step,
                                 Dispatcher& dispatcher) override;
  absl::Status End(int id, StepInFlight& step, Dispatcher& dispatcher,
                   const base::Event& done) override;
  bool recordable() const override { return false; }

 private:
  const EngineParts& parts_;
  BucketHook* const hook_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_LOOP_HOOK_ACTION_H_
