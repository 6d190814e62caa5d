#include "actors/checkpointer.h"

#include <utility>

#include "actors/strand_guard.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

absl::StatusOr<Saved> Save(const JobRuntime& runtime,
                           const SaveRequest& request) {
  TrainerState state;
  state.step = request.step;
  state.seed = runtime.spec.seed;
  state.sampler = runtime.SamplerStateAt(request.step);
  state.plan = runtime.plan.ToString();
  state.versions["troupe"] = kTroupeVersion;
  std::vector<CheckpointShard> shards;
  for (const SnapshotPtr& stage : request.stages) {
    shards.push_back(stage->tensors);
  }
  Saved saved;
  saved.step = request.step;
  const CheckpointOptions& options = runtime.spec.checkpoint;
  TROUPE_ASSIGN_OR_RETURN(
      saved.path, WriteCheckpoint(*runtime.files, options.dir, state, shards,
                                  options.keep));
  return saved;
}

}  // namespace

CheckpointerActor::behavior_type CheckpointerBehavior(
    CheckpointerActor::stateful_pointer<CheckpointerState> self,
    JobRuntimePtr runtime, SupervisorActor supervisor) {
  GuardStrand(self, supervisor, /*rank=*/-1, "checkpointer");
  return {[=](const SaveRequest& request) -> caf::result<Saved> {
    absl::StatusOr<Saved> saved = Save(*runtime, request);
    if (saved.ok()) return *std::move(saved);
    return ToError(saved.status());
  }};
}

}  // namespace troupe::actors
