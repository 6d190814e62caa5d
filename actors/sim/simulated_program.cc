#include "actors/sim/simulated_program.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/program/program_device.h"
#include "actors/program/program_strand.h"
#include "actors/program/run_program.h"
#include "actors/setup/group_makers.h"
#include "actors/sim/seeded_scheduler.h"

namespace troupe::actors {
namespace {

// Small reductions have several chunks, so that ranks interleave in them.
GroupMaker InSmallChunks(comm::GroupFactory make_group) {
  return [make_local = LocalGroupsBy(std::move(make_group))](
             comm::FabricGroupOptions options) {
    options.chunk_bytes = 1;
    return make_local(options);
  };
}

}  // namespace

SimulatedRun SimulateProgram(const ProgramSpec& spec,
                             const ProgramSimulation& options) {
  SimulatedRun run;
  run.status = CheckProgram(spec);
  if (run.status.ok() && spec.cluster.has_value()) {
    run.status = absl::InvalidArgumentError(
        "a simulated program has all ranks in one process; leave "
        "ProgramSpec.cluster out");
  }
  if (run.status.ok()) run.status = CheckProgramDevices(spec, spec.ranks);
  const absl::StatusOr<bool> by_nccl = GroupsAreOfNccl(spec);
  if (run.status.ok()) run.status = by_nccl.status();
  if (!run.status.ok()) return run;
  SimulatedConfig config;
  AddMessageTypes(config);
  caf::actor_system system(config);
  SeededScheduler scheduler(system, {options.seed, options.message_time_max});
  GroupMaker make_group =
      InSmallChunks(options.make_group == nullptr ? GroupsOn(spec.device)
                                                  : options.make_group);
  if (*by_nccl && options.make_group == nullptr) {
    make_group = LocalGroupsByNccl(spec.timeout, /*generation=*/0,
                                   std::move(make_group));
  }
  const auto context =
      std::make_shared<ProgramContext>(spec, std::move(make_group));
  context->by_nccl = *by_nccl;
  context->inline_bytes = std::max<std::int64_t>(0, spec.inline_bytes);
  std::vector<ProgramActor> ranks = SpawnProgram(system, context);
  while (!context->outcome.has_ended()) {
    if (++run.messages <= options.messages_max && scheduler.Step()) continue;
    // Nothing runs and no timer is set, or there is no end in sight.
    context->outcome.Fail(absl::AbortedError(
        run.messages > options.messages_max
            ? absl::StrCat("no end after ", options.messages_max, " messages")
            : "the program stands still and no timer is set"));
    context->groups.Abort(absl::AbortedError("the simulation has ended"));
    while (!context->outcome.has_ended() && scheduler.Step()) {
    }
    break;
  }
  // Runs the strands until they have read their exit messages.
  ranks.clear();
  while (!scheduler.idle()) scheduler.Step();
  run.trace_hash = scheduler.hash();
  run.status = context->outcome.status();
  return run;
}

}  // namespace troupe::actors
