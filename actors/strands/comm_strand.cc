#include "actors/strands/comm_strand.h"

#include <functional>
#include <utility>

#include "actors/protocol/strand_guard.h"

namespace troupe::actors {
namespace {

// Limit on the chunks that one drive message runs before the strand handles
// other messages, which may start further collectives.
constexpr int kChunksPerDrive = 64;

void Start(CommState& state, const Launch& launch) {
  if (launch.generation != state.context->generation) return;
  absl::StatusOr<comm::Event> event =
      state.context->groups.Of(launch.group)
          .Start(launch.collective, launch.after);
  const ComputeActor compute = state.compute;
  if (!event.ok() || launch.answer_at_once) {
    Launched answer = AnswerTo(launch, event.status());
    if (event.ok()) answer.done = *event;
    caf::anon_send(compute, std::move(answer));
    return;
  }
  // The callback runs in the thread, of any rank, that runs the last chunk. The
  // weak handle lets a job end while collectives are in flight.
  event->OnReady([launch, weak = caf::actor_cast<caf::weak_actor_ptr>(compute)](
                     const absl::Status& status) {
    if (auto strong = weak.lock()) {
      caf::anon_send(caf::actor_cast<ComputeActor>(strong),
                     AnswerTo(launch, status));
    }
  });
}

// Runs one chunk of any group. Returns false if there is no work now.
bool Drive(CommState& state) {
  bool progress = false;
  state.context->groups.ForEachOfTable([&](comm::Communicator& group) {
    progress = progress || group.Progress();
  });
  return progress;
}

// Sets the function that all groups of the rank call when there is work.
void SetWakeups(const RankContext& context,
                const std::function<void()>& wakeup) {
  context.groups.ForEachOfTable(
      [&](comm::Communicator& group) { group.SetWakeup(wakeup); });
}

}  // namespace

Launched AnswerTo(const Launch& launch, const absl::Status& status) {
  Launched done;
  done.generation = launch.generation;
  done.step = launch.step;
  done.action = launch.action;
  done.code = status.raw_code();
  done.message = std::string(status.message());
  return done;
}

CommState::~CommState() {
  if (woken) SetWakeups(*context, nullptr);
}

CommActor::behavior_type CommBehavior(
    CommActor::stateful_pointer<CommState> self, RankContextPtr context,
    SupervisorActor supervisor, ComputeActor compute) {
  GuardStrand(self, FailureSource{supervisor, context->generation,
                                  context->rank, "comm"});
  CommState& state = self->state;
  state.context = std::move(context);
  state.compute = std::move(compute);
  state.calls = DriveCalls(CommActor(self));
  // A rank that reduces inline drives its groups on its compute strand, and
  // only one strand at a time may use them.
  const pipeline::Plan& plan = *state.context->plan;
  state.woken = !plan.RankPlanOf(state.context->rank).reduce_inline;
  if (state.woken) SetWakeups(*state.context, state.calls.call());
  // Strands that share a thread interleave after every chunk.
  const int chunks_max = IsSimulated(self->system()) ? 1 : kChunksPerDrive;
  return {[=](const Launch& launch) { Start(self->state, launch); },
          [=](drive_atom) {
            const DriveCalls& calls = self->state.calls;
            calls.Taken();
            int chunks = 0;
            while (chunks < chunks_max && Drive(self->state)) ++chunks;
            if (chunks == chunks_max) calls.call()();
          }};
}

}  // namespace troupe::actors
