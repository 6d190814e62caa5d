// One rank of the job: it turns grants and loaded batches into runs of its
// compute strand, and reports to the supervisor for all strands of the rank.
//
// Takes  Grant {until}              from the supervisor: credits
//        StepsDone                  from its compute strand
//        Evaluate {step}            -> Evaluated to the supervisor
//        TakeSnapshot {step}        -> SnapshotTaken to the supervisor, after
//                                      replicas have shared their buffers
//        SaveShard {step, folder}   -> WriteShard to its checkpoint writer
//        AskWaits                   -> RankWaits to the sender
//        EndRank                    from the supervisor: the job has ended
// Gives  Progress, Alive, Evaluated, SnapshotTaken to the supervisor;
//        LoadRequest to its loader; RunSteps to its compute strand; WriteShard
//        to the checkpoint writer of its process
// Fails  when the loader's response is an error or times out, when a strand of
//        the rank ends, or when a step is to be saved that was not copied
//
// Credits: at most kRunsMax runs are with the compute strand, and the loader is
// at most prefetch_steps ahead (or two requests' steps, if that is more), in
// training and in evaluation.
//
// A rank that fails or ends also ends its strands and, unless the job has
// succeeded, aborts its groups. A failed rank stays until EndRank, and still
// answers AskWaits.

#ifndef ACTORS_STRANDS_RANK_H_
#define ACTORS_STRANDS_RANK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "actors/protocol/messages.h"
#include "actors/protocol/strand_guard.h"
#include "actors/setup/rank_context.h"
#include "actors/strands/boundary_trace.h"
#include "actors/strands/evaluation_run.h"
#include "actors/strands/load_window.h"
#include "actors/strands/wait_report.h"

namespace troupe::actors {

// The strands that a rank uses. The checkpointer belongs to the process, the
// others to the rank.
struct RankStrands {
  LoaderActor loader;
  ComputeActor compute;
  CommActor comm;
  CheckpointerActor checkpointer;
};

class RankState {
 public:
  static inline const char* name = "rank";
  using Self = RankActor::stateful_pointer<RankState>;

  ~RankState();
  void Init(Self self, RankContextPtr context, SupervisorActor supervisor,
            RankStrands strands);

  void OnGrant(const Grant& grant);
  void OnStepsDone(const StepsDone& done);
  void OnEvaluate(const Evaluate& evaluate);
  void OnTakeSnapshot(const TakeSnapshot& take);
  void OnSaveShard(const SaveShard& save);
  void OnAskWaits(const AskWaits& ask);
  void OnEndRank(const EndRank& end);
  void OnDown(const caf::down_msg& down);

 private:
  bool IsCurrent(std::int32_t generation) const {
    return generation == context_->generation;
  }
  LoadWindow* WindowOf(StepKind kind);
  void LoadAhead(StepKind kind);
  void OnLoaded(StepKind kind, Loaded& loaded, std::int64_t asked);
  void Dispatch();
  void OnBatchesEvaluated(const StepsDone& done);
  void EndEvaluationIfDone();
  // Brings together what this rank and others have apart
  // (actors/engine/share_state.h); OnShared() follows.
  void Share(StepKind kind, std::int64_t step);
  void OnShared(StepKind kind);
  // Copies the rank's shard, if it holds one, and reports.
  void CopyShard(const TakeSnapshot& take);
  void EndStrands(const absl::Status& status);
  void Fail(const std::string& actor, const absl::Status& status);
  // Sets RankWaits::doing and busy of a rank that has failed, or whose compute
  // strand has no step to run.
  void DescribeRest(RankWaits& answer) const;

  static constexpr int kRunsMax = 2;

  Self self_ = nullptr;
  RankContextPtr context_;
  std::optional<BoundaryTrace> trace_;
  SupervisorActor supervisor_;
  RankStrands strands_;
  std::optional<WaitReport> report_;
  bool ended_ = false;   // whether EndStrands() was called
  bool failed_ = false;  // whether a failure was reported

  std::int64_t granted_ = 0;  // limit below which steps may run
  std::optional<LoadWindow> training_;
  int runs_ = 0;  // number of runs with the compute strand

  std::optional<EvaluationRun> evaluation_;  // the one under way

  std::optional<TakeSnapshot> taking_;  // waits until buffers are shared
  SnapshotPtr snapshot_;                // kept until SaveShard
};

RankActor::behavior_type RankBehavior(RankState::Self self,
                                      RankContextPtr context,
                                      SupervisorActor supervisor,
                                      RankStrands strands);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_RANK_H_
