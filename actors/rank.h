// One rank of the job: it turns grants and loaded batches into runs of its
// compute strand, and answers the supervisor for all of them.
//
// Takes  Grant {until}              from the supervisor: credits
//        StepsDone                  from its compute strand
//        (evaluate, step)           -> Evaluated to the supervisor
//        (snapshot, step)           -> SnapshotPtr, by its compute strand
// Gives  Progress, Evaluated to the supervisor; LoadRequest to its loader;
//        RunSteps to its compute strand
// Fails  when a loader's answer is an error or does not come in time
//
// Credits: at most kRunsMax runs are with the compute strand, and the loader is
// at most prefetch_steps (or two chunks, if that is more) ahead.

#ifndef ACTORS_RANK_H_
#define ACTORS_RANK_H_

#include <cstdint>
#include <deque>

#include "actors/messages.h"
#include "actors/rank_context.h"

namespace troupe::actors {

class RankState {
 public:
  static inline const char* name = "rank";
  using Self = RankActor::stateful_pointer<RankState>;

  void Init(Self self, RankContextPtr context, SupervisorActor supervisor,
            LoaderActor loader, ComputeActor compute);

  void OnGrant(const Grant& grant);
  void OnStepsDone(const StepsDone& done);
  void OnEvaluate(std::int64_t step);
  const ComputeActor& compute() const { return compute_; }

 private:
  void LoadAhead();
  void RequestLoad(StepKind kind, std::int64_t first, std::int64_t count);
  void OnLoaded(Loaded& loaded);
  void OnEvaluationLoaded(Loaded& loaded);
  void OnEvaluated(const StepsDone& done);
  void Dispatch();
  void ChooseChunk(const Loaded& loaded);

  static constexpr int kRunsMax = 2;

  Self self_ = nullptr;
  RankContextPtr context_;
  SupervisorActor supervisor_;
  LoaderActor loader_;
  ComputeActor compute_;

  std::int64_t granted_ = 0;    // may run steps below
  std::int64_t requested_ = 0;  // next step to ask the loader for
  std::int64_t ahead_ = 0;      // steps asked for or loaded, not yet run
  std::int64_t chunk_ = 1;      // steps per load
  bool chunk_chosen_ = false;
  std::deque<Loaded> loaded_;
  int runs_ = 0;  // RunSteps with the compute strand

  // An evaluation: sums in the order of batches.
  std::int64_t evaluation_step_ = 0;
  double sum_ = 0, count_ = 0, correct_ = 0;
};

RankActor::behavior_type RankBehavior(RankState::Self self,
                                      RankContextPtr context,
                                      SupervisorActor supervisor,
                                      LoaderActor loader, ComputeActor compute);

}  // namespace troupe::actors

#endif  // ACTORS_RANK_H_
