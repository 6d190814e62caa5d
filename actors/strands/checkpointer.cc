#include "actors/strands/checkpointer.h"

#include <utility>

#include "actors/checkpoint/plan_file.h"
#include "actors/protocol/strand_guard.h"
#include "actors/setup/job_setup.h"
#include "actors/strands/boundary_trace.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

TrainerState StateAt(const ProcessContext& process,
                     const CommitCheckpoint& order) {
  TrainerState state;
  state.step = order.step;
  state.seed = process.spec->seed;
  state.sampler = process.span->SamplerStateAt(order.step);
  state.plan = process.plan->ToString();
  state.settings = process.settings;
  state.evaluations = StateOf(order.evaluations);
  state.versions["troupe"] = kTroupeVersion;
  return state;
}

absl::StatusOr<CheckpointOpened> Open(CheckpointerState& state,
                                      const BeginCheckpoint& order) {
  const ProcessContext& process = *state.process;
  TROUPE_ASSIGN_OR_RETURN(
      state.unfinished,
      CreateCheckpointFolder(process.folder.files(),
                             process.spec->checkpoint.dir, order.step));
  return CheckpointOpened{order.generation, order.step, state.unfinished};
}

// Traces a part of saving the state after `step` steps, from its construction
// to the end of the block (RAII).
class SavingScope {
 public:
  SavingScope(const ProcessContext& process, int rank, std::int64_t step,
              const char* name)
      : trace_(process.spec->trace, *process.span, rank,
               TraceTrack::kCheckpointer),
        step_(step),
        name_(name) {
    trace_.Note(TraceKind::kCheckpoint, TracePhase::kBegin, step_, name_);
  }
  ~SavingScope() {
    trace_.Note(TraceKind::kCheckpoint, TracePhase::kEnd, step_, name_);
  }
  SavingScope(const SavingScope&) = delete;
  SavingScope& operator=(const SavingScope&) = delete;

 private:
  const BoundaryTrace trace_;
  const std::int64_t step_;
  const char* const name_;
};

absl::StatusOr<ShardSaved> Write(const CheckpointerState& state,
                                 const WriteShard& shard) {
  const SaveShard& order = shard.order;
  const SavingScope scope(*state.process, shard.snapshot->rank, order.step,
                          "write");
  TROUPE_ASSIGN_OR_RETURN(
      ShardSummary summary,
      WriteCheckpointShard(state.process->folder.files(), order.folder,
                           shard.shard, order.shards, shard.snapshot->tensors,
                           {order.writer, order.writers}));
  return ShardSaved{order.generation, order.step, std::move(summary)};
}

absl::StatusOr<CheckpointSaved> Commit(CheckpointerState& state,
                                       const CommitCheckpoint& order) {
  const ProcessContext& process = *state.process;
  const CheckpointOptions& options = process.spec->checkpoint;
  const SavingScope scope(process, /*rank=*/0, order.step, "commit");
  pipeline::Plan plan = *process.plan;
  const auto& choices = process.spec->kernel_choices;
  if (choices != nullptr) plan.algorithms = choices->InUse();
  TROUPE_RETURN_IF_ERROR(
      WritePlanFile(process.folder.files(), order.folder, plan));
  if (choices != nullptr) choices->Save();
  state.unfinished.clear();  // PublishCheckpoint() renames or removes it
  TROUPE_ASSIGN_OR_RETURN(
      std::string path,
      PublishCheckpoint(process.folder.files(), options.dir, order.folder,
                        StateAt(process, order), order.shards, options.keep,
                        options.keep_best));
  return CheckpointSaved{order.generation, order.step, std::move(path)};
}

// Returns whether ranks of other processes write into the same folder.
bool HasPeers(const CheckpointerState& state) {
  const auto& roster = state.process->links.roster;
  return roster != nullptr && roster->processes() > 1;
}

// Removes the unfinished folder that this actor made, if any.
void RemoveUnfinished(CheckpointerState& state) {
  if (state.unfinished.empty()) return;
  RemoveCheckpointFolder(state.process->folder.files(), state.unfinished);
  state.unfinished.clear();
}

}  // namespace

CheckpointerState::~CheckpointerState() { RemoveUnfinished(*this); }

CheckpointerActor::behavior_type CheckpointerBehavior(
    CheckpointerActor::stateful_pointer<CheckpointerState> self,
    ProcessContextPtr process, SupervisorActor supervisor) {
  const FailureSource source = {supervisor, process->generation, /*rank=*/-1,
                                "checkpointer"};
  GuardStrand(self, source);
  self->state.process = std::move(process);
  const auto answer = [=](auto done, const FailureSource& of) {
    if (done.ok()) {
      self->send(supervisor, *std::move(done));
    } else {
      ReportFailure(self, of, done.status());
    }
  };
  return {[=](const BeginCheckpoint& order) {
            answer(Open(self->state, order), source);
          },
          [=](const WriteShard& shard) {
            FailureSource of_rank = source;
            of_rank.rank = shard.snapshot->rank;
            const auto saved = Write(self->state, shard);
            const bool failed = !saved.ok();
            // The folder is removed before the failure is reported, since the
            // job may end then. With ranks of other processes it is removed
            // afterwards: their errors about a missing folder would arrive
            // before this one.
            if (failed && !HasPeers(self->state)) {
              RemoveCheckpointFolder(self->state.process->folder.files(),
                                     shard.order.folder);
            }
            answer(saved, of_rank);
            if (failed) RemoveUnfinished(self->state);
          },
          [=](const CommitCheckpoint& order) {
            answer(Commit(self->state, order), source);
          }};
}

}  // namespace troupe::actors
