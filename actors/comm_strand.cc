#include "actors/comm_strand.h"

#include <utility>

#include "actors/strand_guard.h"

namespace troupe::actors {
namespace {

comm::Communicator& GroupOf(CommState& state, GroupKind group) {
  return group == GroupKind::kWorld ? *state.context->world
                                    : *state.context->dp;
}

Launched Done(const Launch& launch, const absl::Status& status) {
  Launched done;
  done.step = launch.step;
  done.action = launch.action;
  done.code = status.raw_code();
  done.message = std::string(status.message());
  return done;
}

void Start(CommState& state, const Launch& launch) {
  absl::StatusOr<comm::Event> event =
      GroupOf(state, launch.group).Start(launch.collective, comm::Event());
  const ComputeActor compute = state.compute;
  if (!event.ok()) {
    caf::anon_send(compute, Done(launch, event.status()));
    return;
  }
  // Runs in whichever rank's thread does the last chunk. The weak handle lets
  // a job end while collectives are in flight.
  event->OnReady([launch, weak = caf::actor_cast<caf::weak_actor_ptr>(compute)](
                     const absl::Status& status) {
    if (auto strong = weak.lock()) {
      caf::anon_send(caf::actor_cast<ComputeActor>(strong),
                     Done(launch, status));
    }
  });
}

// One chunk of any group; false when there is no work now.
bool Drive(CommState& state) {
  return GroupOf(state, GroupKind::kWorld).Progress() ||
         GroupOf(state, GroupKind::kDp).Progress();
}

}  // namespace

CommState::~CommState() {
  if (!woken) return;
  context->world->SetWakeup(nullptr);
  context->dp->SetWakeup(nullptr);
}

CommActor::behavior_type CommBehavior(
    CommActor::stateful_pointer<CommState> self, RankContextPtr context,
    SupervisorActor supervisor, ComputeActor compute) {
  GuardStrand(self, supervisor, context->rank, "comm");
  CommState& state = self->state;
  state.context = std::move(context);
  state.compute = std::move(compute);
  const auto weak = caf::actor_cast<caf::weak_actor_ptr>(CommActor(self));
  const auto wakeup = [weak, driving = state.driving] {
    if (driving->exchange(true)) return;
    if (auto strong = weak.lock()) {
      caf::anon_send(caf::actor_cast<CommActor>(strong), drive_atom::value);
    }
  };
  const bool simulated = IsSimulated(self->system());
  // A rank that reduces inline drives its groups on its compute strand, and one
  // strand at a time may touch them.
  const pipeline::Plan& plan = *state.context->plan;
  state.woken = simulated || !plan.StageOf(state.context->rank).reduce_inline;
  if (state.woken) {
    state.context->world->SetWakeup(wakeup);
    state.context->dp->SetWakeup(wakeup);
  }
  return {
      [=](const Launch& launch) { Start(self->state, launch); },
      [=](drive_atom) {
        self->state.driving->store(false);
        if (!simulated) {
          while (Drive(self->state)) {
          }
        } else if (Drive(self->state) && !self->state.driving->exchange(true)) {
          self->send(self, drive_atom::value);
        }
      }};
}

}  // namespace troupe::actors
