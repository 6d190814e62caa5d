#include "actors/checkpointer.h"

#include <utility>

#include "actors/job_setup.h"
#include "actors/strand_guard.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

absl::StatusOr<Saved> Save(const ProcessContext& process,
                           const SaveRequest& request) {
  TrainerState state;
  state.step = request.step;
  state.seed = process.spec->seed;
  state.sampler = process.span->SamplerStateAt(request.step);
  state.plan = process.plan->ToString();
  state.versions["troupe"] = kTroupeVersion;
  std::vector<CheckpointShard> shards;
  for (const SnapshotPtr& stage : request.stages) {
    shards.push_back(stage->tensors);
  }
  Saved saved;
  saved.step = request.step;
  const CheckpointOptions& options = process.spec->checkpoint;
  TROUPE_ASSIGN_OR_RETURN(
      saved.path, WriteCheckpoint(*process.files, options.dir, state, shards,
                                  options.keep));
  return saved;
}

}  // namespace

CheckpointerActor::behavior_type CheckpointerBehavior(
    CheckpointerActor::stateful_pointer<CheckpointerState> self,
    ProcessContextPtr process, SupervisorActor supervisor) {
  GuardStrand(self, supervisor, /*rank=*/-1, "checkpointer");
  return {[=](const SaveRequest& request) -> caf::result<Saved> {
    absl::StatusOr<Saved> saved = Save(*process, request);
    if (saved.ok()) return *std::move(saved);
    return ToError(saved.status());
  }};
}

}  // namespace troupe::actors
