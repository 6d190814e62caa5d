#include "actors/sim/simulation.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/setup/job_setup.h"
#include "actors/setup/rank_setup.h"
#include "actors/sim/preemption_points.h"
#include "actors/sim/seeded_scheduler.h"
#include "actors/sim/slow_links.h"
#include "actors/supervision/spawn_crew.h"
#include "base/check.h"
#include "base/files/file_system.h"

namespace troupe::actors {
namespace {

// Smallest size of a reduction's chunks, so that small reductions have several.
constexpr std::size_t kChunkBytes = 1;

comm::GroupFactory InSmallChunks(comm::GroupFactory make_group,
                                 nn::Device device) {
  if (make_group == nullptr) make_group = GroupsOn(device);
  return [make_group](comm::LocalGroupOptions options) {
    options.chunk_bytes = kChunkBytes;
    return make_group(options);
  };
}

Failure NoEnd(const ProcessContext& process, std::int64_t messages,
              std::int64_t messages_max) {
  Failure failure;
  failure.generation = process.generation;
  failure.actor = "simulation";
  failure.code = static_cast<int>(absl::StatusCode::kAborted);
  failure.message =
      messages > messages_max
          ? absl::StrCat("no end after ", messages_max, " messages")
          : "the job stands still and no timer is set";
  return failure;
}

}  // namespace

Simulation::Simulation(const JobSpec& spec, SimulationOptions options)
    : spec_(spec), options_(std::move(options)) {
  spec_.trace = &recorder_;
  // A measurement would find nothing, since time stands still.
  if (spec_.plan.inline_bytes < 0) spec_.plan.inline_bytes = 0;
}

absl::StatusOr<JobResult> Simulation::Run(JobObserver* observer) {
  SimulatedConfig config;
  AddMessageTypes(config);
  caf::actor_system system(config);
  SeededScheduler scheduler(system, {options_.seed, options_.message_time_max});
  PreemptionPoints points(scheduler);
  SlowLinks links(system, scheduler);
  JobSpec spec = spec_;
  spec.train = points.In(spec.train);
  spec.test = points.In(spec.test);
  base::PosixFileSystem disk;
  spec.checkpoint.files = points.In(
      spec.checkpoint.files == nullptr ? &disk : spec.checkpoint.files);
  TestHooks hooks;
  hooks.edit_table = options_.edit_table;
  // Groups of GPUs have no chunks, so the plan's own are used.
  if (options_.make_group || spec_.device.type != nn::DeviceType::kCuda) {
    hooks.make_group = InSmallChunks(options_.make_group, spec_.device);
  }
  hooks.wrap_link = [&](auto link) { return links.Over(std::move(link)); };
  hooks.window_max = 1 + scheduler.draws().Bits32() % 4;
  hooks.checkpointers = 1 + scheduler.draws().Bits32() % 3;
  hooks.mailbox_rounds = [&scheduler] {
    return static_cast<int>(scheduler.draws().Bits32() % 4);
  };
  hooks.after_step = [&](int rank, std::int64_t step,
                         const nn::ParameterArena& arena) {
    if (arena.values().host_accessible()) {
      scheduler.Mix(
          parameters_.Note(rank, step, arena, plan_.gathers_values()));
    }
    if (options_.after_step) options_.after_step(rank, step, arena);
  };
  TROUPE_ASSIGN_OR_RETURN(JobSetup setup,
                          SetUpJob(spec, points.In(observer), &hooks));
  const ProcessContextPtr& process = setup.process;
  plan_ = *process->plan;
  first_step_ = process->span->first_step;
  AnnounceJob(*process, observer);
  SupervisorActor supervisor =
      SpawnCrew(system, process, std::move(setup.checkpoint));
  while (!process->outcome.HasBeenSet()) {
    if (messages_ == options_.stop_after_messages) {
      caf::anon_send(supervisor, halt_atom::value);
    }
    if (++messages_ <= options_.messages_max && scheduler.Step()) continue;
    caf::anon_send(supervisor,
                   NoEnd(*process, messages_, options_.messages_max));
    while (!process->outcome.HasBeenSet() && scheduler.Step()) {
    }
  }
  // Runs the actors until they have read their exit messages.
  supervisor = nullptr;
  while (!scheduler.idle()) scheduler.Step();
  trace_hash_ = scheduler.hash();
  result_ = process->outcome.Wait();
  return result_;
}

absl::Status Simulation::Check() const {
  TROUPE_RETURN_IF_ERROR(result_.status());
  TROUPE_RETURN_IF_ERROR(
      CheckInvariants(recorder_, plan_, first_step_, result_->steps));
  return parameters_.status();
}

}  // namespace troupe::actors
